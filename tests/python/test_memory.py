"""MEM-1: memory stays within the budget and where it was, over epochs and over bad samples."""

import json

import pytest
import torch

import forebay
import memory
from conftest import full
from forebay import ops
from forebay import transforms as T
from images import jpeg, photo, png, smooth_jpeg

MB = 1_000_000
MIXED = (100, 140, 200, 300, 420, 600, 850, 1200, 1700, 2400, 3400, 6000)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """12 JPEGs of widths from 100 to 6000."""
    root = tmp_path_factory.mktemp("mixed")
    for width in MIXED:
        (root / f"{width}.jpg").write_bytes(smooth_jpeg(2 * width // 3, width))
    return [str(root / f"{width}.jpg") for width in MIXED]


# Prints the resident size after each epoch and the peak at the end, in a process of its own.
EPOCHS = """
    import gc, json, sys
    import forebay, memory
    from forebay import transforms as T

    images, epochs, names, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    norm = T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    recipes = {
        "train": [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), norm],
        "val": [T.Resize(256), T.CenterCrop(224), norm],
    }
    source = forebay.FileList((paths * images)[:images])
    loaders = [
        forebay.Loader(source, transforms=recipes[name], batch_size=32, num_workers=2,
                       shuffle=name == "train")
        for name in names.split("+")
    ]
    after = []
    for _ in range(epochs):
        for loader in loaders:
            for batch in loader:
                pass
        del batch
        gc.collect()
        after.append((memory.resident(), memory.peak()))
    print(json.dumps(after))
"""


@pytest.fixture
def run_epochs(run_python, mixed):
    def run_epochs(images, epochs, names):
        limit = 120 + images * epochs / 10
        process = run_python(EPOCHS, str(images), str(epochs), names, *mixed, timeout=limit)
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    return run_epochs


# Less than a tenth: a heap that creeps gains six per cent in 14 epochs of these.
@pytest.mark.parametrize(("images", "alone", "together"), [(156, 14, 5), full(2000, 50, 50)])
def test_t49_epochs_do_not_grow_and_a_second_loader_costs_little(
    run_epochs, images, alone, together
):
    one = run_epochs(images, alone, "train")
    both = run_epochs(images, together, "train+val")
    for epochs in (one, both):
        for sizes in zip(*epochs[2:], strict=True):  # resident, and the peak so far
            assert max(sizes) - sizes[0] <= 0.02 * sizes[0], sizes
    assert both[-1][1] < 1.3 * one[-1][1]


def cut(data):
    return data[: len(data) // 2]


def scan_header(data):
    """Damage that libjpeg finds after it has taken memory for the whole image."""
    at = data.rindex(b"\xff\xda")
    return data[: at + 5] + b"\x09" + data[at + 6 :]


MALFORMED = {
    "cut jpeg": lambda: cut(jpeg(photo(300, 400))),
    "bad progressive scan": lambda: scan_header(jpeg(photo(300, 400), progressive=True)),
    "cut png": lambda: cut(png(photo(300, 400))),
    "bad deflate": lambda: png(photo(300, 400)).replace(b"IDAT", b"IDAT\xff\xff", 1),
}


# Prints for each file by how much the resident size grew after a warm-up.
PASSES = """
    import gc, json, sys
    import forebay, memory
    from forebay import transforms as T

    passes, grown = int(sys.argv[1]), []
    for path in sys.argv[2:]:
        with forebay.Loader(
            forebay.FileList([path] * 100), transforms=[T.RandomResizedCrop(32)], batch_size=20,
            num_workers=2, on_error="skip", fields=("image", "valid")
        ) as loader:
            for number in range(3 + passes // 100):
                assert not any(valid.any() for _, valid in loader)
                if number == 2:
                    gc.collect()
                    warm = memory.resident()
            gc.collect()
            grown.append(memory.resident() - warm)
            assert loader.stats()["bad_samples"] == passes + 300
    print(json.dumps(grown))
"""


@pytest.mark.parametrize("passes", [1000, full(10_000)])
def test_t03_a_malformed_image_again_and_again(run_python, tmp_path, passes):
    for kind, make in MALFORMED.items():
        (tmp_path / kind).write_bytes(make())
    paths = [str(tmp_path / kind) for kind in MALFORMED]
    process = run_python(PASSES, str(passes), *paths, timeout=120 + passes / 20)
    assert process.returncode == 0, process.stderr
    grown = dict(zip(MALFORMED, json.loads(process.stdout), strict=True))
    assert max(grown.values()) < 20 * MB, grown


def huge_jpeg(side=65_500):
    data = bytearray(jpeg(photo(64, 64)))
    start = data.index(b"\xff\xc0") + 5
    data[start : start + 4] = side.to_bytes(2, "big") * 2
    return bytes(data)


def huge_png(side=65_500):
    data = bytearray(png(photo(64, 64)))
    start = data.index(b"IHDR") + 4
    data[start : start + 8] = side.to_bytes(4, "big") * 2
    return bytes(data)


@pytest.mark.parametrize("make", [huge_jpeg, huge_png])
def test_t05_a_huge_declared_size_takes_no_memory(make_loader, tmp_path, make):
    path = tmp_path / "huge.img"
    path.write_bytes(make())
    loader = make_loader(forebay.FileList([path]), batch_size=1)
    memory.reset_peak()
    before = memory.resident()
    with pytest.raises(forebay.SampleError) as caught:
        next(iter(loader))
    encoded = torch.frombuffer(bytearray(make()), dtype=torch.uint8)
    with pytest.raises(ValueError) as refused:
        ops.decode_image(encoded)
    assert caught.value.stage == "decode"
    for text in (caught.value.reason, str(refused.value)):
        assert "65500x65500" in text and "178956970" in text and "max_pixels" in text
    assert memory.peak() - before < 20 * MB


def test_t05_the_limit_is_the_users(make_loader, tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(photo(30, 40)))
    source = forebay.FileList([path])
    with pytest.raises(forebay.SampleError, match=r"40x30 pixels exceed the limit of 1199"):
        next(iter(make_loader(source, max_pixels=1199)))
    assert len(next(iter(make_loader(source, max_pixels=1200)))) == 1


def holds(path, pixels, encode):
    """Bytes for an image that the recipe shows whole: a JPEG is decoded in bands; a PNG exists as
    it is stored and, cropped, once more.
    """
    return path.stat().st_size + (6 * pixels if encode is png else 0)


@pytest.mark.parametrize("encode", [jpeg, png])
def test_an_image_larger_than_the_budget_is_processed_alone(make_loader, tmp_path, encode):
    small, large = tmp_path / "small.img", tmp_path / "large.img"
    small.write_bytes(encode(photo(40, 50)))
    large.write_bytes(encode(photo(600, 800)))
    # The large one first: the largest record seen stands for those that are not there yet.
    source = forebay.FileList([large, small, small, large, small, large, small, small] * 3)
    keywords = {"transforms": [T.Resize((24, 24))], "batch_size": 4}
    expected = torch.cat(list(make_loader(source, **keywords)))
    held = holds(large, 600 * 800, encode)
    slab = 4 * 3 * 24 * 24
    assert held > 100_000
    for budget in (1, 100_000):
        loader = make_loader(source, memory_budget=budget, num_workers=3, **keywords)
        for _ in range(2):
            assert torch.equal(torch.cat(list(loader)), expected)
        stats = loader.stats()
        assert stats["peak_bytes"] <= budget + held + slab, "one at a time"
        assert stats["held_bytes"] == 0


@pytest.mark.parametrize("encode", [jpeg, png])
def test_the_budget_bounds_what_is_held(make_loader, tmp_path, encode):
    path = tmp_path / "large.img"
    path.write_bytes(encode(photo(1500, 2000)))
    one = holds(path, 1500 * 2000, encode)
    budget = 3 * one
    loader = make_loader(
        forebay.FileList([path] * 60),
        transforms=[T.Resize((64, 64))],
        batch_size=4,
        num_workers=3,
        memory_budget=budget,
        prefetch_factor=8,
    )
    for _ in loader:
        pass
    assert loader.stats()["peak_bytes"] <= budget + one


def test_batches_that_are_kept_do_not_count(make_loader):
    size = 8 * 3 * 32 * 32
    loader = make_loader(memory_budget=2 * size, prefetch_factor=1)
    kept = [batch for _ in range(4) for batch in loader]
    assert len(kept) == 32
    assert loader.stats()["held_bytes"] == 0
