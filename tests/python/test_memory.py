"""MEM-1: memory stays where it was, over epochs and over bad samples."""

import gc
from pathlib import Path

import pytest

import forebay
from forebay import transforms as T
from images import jpeg, photo


def resident_mb():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


@pytest.fixture
def mixed(tmp_path):
    paths = []
    for number in range(48):
        height, width = [(60, 80), (300, 400), (900, 1200)][number % 3]
        paths.append(tmp_path / f"{number}.jpg")
        paths[-1].write_bytes(jpeg(photo(height, width, number)))
    return paths


def test_t49_epochs_do_not_grow(make_loader, mixed):
    loaders = [
        make_loader(forebay.FileList(mixed), transforms=[T.RandomResizedCrop(64)]) for _ in "tv"
    ]
    sizes = []
    for _ in range(10):
        for loader in loaders:
            for _ in loader:
                pass
        gc.collect()
        sizes.append(resident_mb())
    assert max(sizes[6:]) - max(sizes[2:5]) < 8, sizes


def test_t03_a_malformed_image_again_and_again(make_loader, tmp_path):
    path = tmp_path / "bad.jpg"
    path.write_bytes(jpeg(photo(200, 300))[:4000])
    source = forebay.FileList([path] * 500)
    loader = make_loader(source, batch_size=50, on_error="skip", fields=("image", "valid"))
    sizes = []
    for _ in range(4):
        for _ in loader:
            pass
        gc.collect()
        sizes.append(resident_mb())
    assert sizes[-1] - sizes[0] < 20, sizes
    assert loader.stats()["bad_samples"] == 2000
