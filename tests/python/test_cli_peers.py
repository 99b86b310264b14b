"""The peers of ``forebay bench``: the same work by each, and what is said when one is missing."""

import dataclasses

import numpy as np
import pytest
import torch

from forebay.cli import main, peers, recipes
from forebay.cli.pictures import camera_pictures, large_pictures, subsampled_pictures
from images import jpeg, photo, write_list

# Levels of 255 by which a peer's pixels may differ from Pillow's on average, and why.
ALLOWED = {
    "forebay": 0.1,
    "torch-pil": 0.1,
    "torch-v2": 0.5,
    "torch-opencv": 1.5,  # a box instead of a triangle
    "dali": 1.0,
    "spdl": 1.5,
}
STD_LEVELS = 255 * 0.225


@pytest.fixture(params=list(peers.PEERS))
def name(request):
    """Each peer that is installed; the others are skipped with what they need."""
    try:
        peers.require([request.param])
    except ImportError as error:
        pytest.skip(str(error))
    return request.param


@pytest.fixture
def cameras(tmp_path):
    """Smooth pictures of the cameras' size, so that a row too high or low shows."""
    paths = []
    for number in range(2):
        path = tmp_path / f"{number}.jpg"
        path.write_bytes(jpeg(photo(900, 1600, number), quality=93))
        paths.append(str(path))
    return paths


def first_images(name, files, recipe, batch_size=2, device="cpu"):
    workers = 0 if name != "dali" else 1
    batch = next(iter(peers.peer(name).make(files, recipe, batch_size, workers, device)))
    images = batch[0] if isinstance(batch, (tuple, list)) else batch
    assert images.device.type == device
    return images.cpu().clone()


def add_recipe(monkeypatch, **changes):
    still = dataclasses.replace(recipes.RECIPES["multicam"], shuffle=False, **changes)
    monkeypatch.setitem(recipes.RECIPES, "still", still)


def test_multicam_shows_the_same_part_in_every_loader(monkeypatch, cameras, name, device):
    pytest.importorskip("torchvision")
    add_recipe(monkeypatch, jitter=None, flip=0.0)
    images = first_images(name, cameras, "still", device=device)
    assert images.shape == (2, 3, 372, 1024)
    assert images.dtype == torch.float32
    assert images.is_contiguous()
    expected = first_images("torch-pil", cameras, "still")
    assert (images - expected).abs().mean() * STD_LEVELS < ALLOWED[name]


def test_multicam_keeps_the_lowest_rows(monkeypatch, cameras):
    add_recipe(monkeypatch, jitter=None, flip=0.0)
    from PIL import Image

    whole = np.asarray(Image.open(cameras[0]).resize((1024, 576), Image.Resampling.BILINEAR))
    images = first_images("forebay", cameras, "still")
    mean, std = torch.tensor(recipes.MEAN), torch.tensor(recipes.STD)
    pixels = (images[0].permute(1, 2, 0) * std + mean) * 255
    assert (pixels - torch.from_numpy(whole[204:576].copy())).abs().mean() < 0.1


def test_flips_and_jitter_are_drawn_for_each_image(monkeypatch, cameras, name, device):
    add_recipe(monkeypatch)
    images = first_images(name, [cameras[0]] * 6, "still", batch_size=6, device=device)
    assert len({image.sum().item() for image in images}) > 1
    assert torch.isfinite(images).all()


@pytest.mark.parametrize("recipe", ["imagenet-train", "imagenet-val", "imagenet-randaugment"])
def test_imagenet_recipes_give_batches_of_one_kind(tmp_path, name, device, recipe):
    if name not in (recipes.RECIPES[recipe].peers or [name]):
        pytest.skip(f"{name} does not carry out {recipe}")
    images = first_images(name, write_list(tmp_path, 4), recipe, batch_size=4, device=device)
    assert images.shape == (4, 3, 224, 224)
    assert images.dtype == torch.float32
    assert images.is_contiguous()


@pytest.mark.parametrize("name", ["forebay", "dali"])
def test_batches_may_be_float16(tmp_path, name, device):
    try:
        peers.require([name])
    except ImportError as error:
        pytest.skip(str(error))
    files = write_list(tmp_path, 4)
    made = peers.peer(name).make(files, "imagenet-train", 4, 1, device, dtype="float16")
    batch = next(iter(made))
    images = batch[0] if isinstance(batch, (tuple, list)) else batch
    assert images.dtype == torch.float16
    assert torch.isfinite(images).all()


def test_versions_are_told(name):
    versions = peers.peer(name).versions()
    assert versions["torch"] == torch.__version__
    assert all(isinstance(version, str) and version for version in versions.values())


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_colour_by_opencv_is_torchvisions(factor):
    pytest.importorskip("cv2")
    functional = pytest.importorskip("torchvision.transforms.v2.functional")
    from forebay.cli.peers import opencv

    pixels = photo(64, 96)
    tensor = torch.from_numpy(pixels).permute(2, 0, 1)
    for ours, theirs, value in (
        (opencv._brighter, functional.adjust_brightness, factor),
        (opencv._contrast, functional.adjust_contrast, factor),
        (opencv._saturation, functional.adjust_saturation, factor),
        (opencv._hue, functional.adjust_hue, (factor - 1) / 3),
    ):
        got = torch.from_numpy(ours(pixels, value)).permute(2, 0, 1)
        assert (got.int() - theirs(tensor, value).int()).abs().float().mean() < 1.0, ours


@pytest.mark.parametrize(
    ("loader", "sentence"),
    [
        (
            "torch-opencv",
            "torch-opencv needs opencv-python-headless: pip install opencv-python-headless",
        ),
        ("dali", "dali needs nvidia-dali-cuda130: pip install nvidia-dali-cuda130"),
        (
            "spdl",
            "spdl needs spdl and opencv-python-headless: pip install spdl opencv-python-headless",
        ),
    ],
)
def test_a_missing_peer_is_named_with_the_command(tmp_path, monkeypatch, capsys, loader, sentence):
    monkeypatch.setattr(peers, "_installed", lambda module: module in ("torchvision", "PIL"))
    write_list(tmp_path, 1)
    for words in (["--loader", loader], ["--compare", f"forebay,torch-pil,{loader}"]):
        assert main(["bench", "--data", str(tmp_path), *words]) == 1
        output = capsys.readouterr()
        assert sentence in output.err
        assert output.out == ""


def test_camera_pictures_are_made_once(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = write_list(tmp_path / "photos", 3)
    pictures = camera_pictures(files)
    assert len(pictures) == 3
    for picture in pictures:
        with Image.open(picture) as opened:
            assert opened.size == (1600, 900)
            assert opened.layer[0][1:3] == (2, 2)  # 4:2:0
    made = [(tmp_path / picture).stat().st_mtime_ns for picture in pictures]
    assert camera_pictures(files) == pictures
    assert [(tmp_path / picture).stat().st_mtime_ns for picture in pictures] == made
    (tmp_path / "photos" / "0000.jpg").write_bytes(jpeg(photo(50, 60, 9)))
    assert camera_pictures(files)[0] != pictures[0]


def test_photos_as_420_keep_their_sizes(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = write_list(tmp_path / "photos", 3)
    pictures = subsampled_pictures(files)
    for file, picture in zip(files, pictures, strict=True):
        with Image.open(file) as photo, Image.open(picture) as opened:
            assert opened.size == photo.size
            assert opened.layer[0][1:3] == (2, 2)


def test_large_pictures_are_noisy(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (picture,) = large_pictures(write_list(tmp_path / "photos", 1))
    with Image.open(picture) as opened:
        assert opened.size == (4000, 3000)
        pixels = np.asarray(opened).astype(float)
    assert 2 < (pixels[:, 1:] - pixels[:, :-1]).std() / 2**0.5 < 8


def test_at_most_96_pictures_from_all_over_the_files(monkeypatch):
    monkeypatch.setattr("forebay.cli.pictures._digest", lambda *_: "name")
    monkeypatch.setattr("forebay.cli.pictures._made", lambda files, *_: files)
    files = [str(number) for number in range(400)]
    chosen = camera_pictures(files)
    assert len(chosen) == 96
    assert int(chosen[-1]) >= 380
