"""Loaders of grey images: one channel, from Pillow's values on, through every transform (T14)."""

import io
import itertools

import numpy as np
import pytest
import torch
from PIL import Image

import forebay
from forebay import transforms as T
from images import KINDS, jpeg, photo, png, write_mixed

V = pytest.importorskip("torchvision.transforms.v2")
F = V.functional
SIZES = [(37, 53), (64, 64), (120, 81), (31, 200), (6, 5)]
# What is done to an image, torchvision's, and by how much a value may differ.
CASES = {
    "nothing": (T.RandomInvert(0), lambda image: image, 0),
    "resize": (T.Resize((40, 33)), lambda image: F.resize(image, [40, 33]), 1),
    "nearest": (
        T.Resize((9, 70), "nearest"),
        lambda image: F.resize(image, [9, 70], V.InterpolationMode.NEAREST),
        0,
    ),
    "rotation": (
        T.RandomRotation((30, 30), "bilinear", fill=7),
        lambda image: F.rotate(image, 30, V.InterpolationMode.BILINEAR, fill=[7.0]),
        0,
    ),
    "padding": (T.Pad(3, fill=[9]), lambda image: F.pad(image, 3, 9), 0),
    "blur": (T.GaussianBlur(5, (1, 1)), lambda image: F.gaussian_blur(image, 5, 1.0), 1),
    "sharpness": (T.RandomAdjustSharpness(2, 1), lambda image: F.adjust_sharpness(image, 2), 0),
    "autocontrast": (T.RandomAutocontrast(1), F.autocontrast, 0),
    "equalize": (T.RandomEqualize(1), F.equalize, 0),
    "posterize": (T.RandomPosterize(3, 1), lambda image: F.posterize(image, 3), 0),
    "solarize": (T.RandomSolarize(99, 1), lambda image: F.solarize(image, 99), 0),
    "invert": (T.RandomInvert(1), F.invert, 0),
    "grayscale": (T.Grayscale(1), lambda image: F.rgb_to_grayscale(image, 1), 0),
    "random grayscale": (T.RandomGrayscale(1), lambda image: image, 0),
    "contrast twice": (
        T.RandomOrder([T.ColorJitter(contrast=(1.5, 1.5)), T.ColorJitter(contrast=(1.5, 1.5))]),
        lambda image: F.adjust_contrast(F.adjust_contrast(image, 1.5), 1.5),
        0,
    ),
    "brightness": (
        T.ColorJitter(brightness=(1.3, 1.3)),
        lambda image: F.adjust_brightness(image, 1.3),
        0,
    ),
    "contrast": (
        T.ColorJitter(contrast=(0.6, 0.6)),
        lambda image: F.adjust_contrast(image, 0.6),
        0,
    ),
    "saturation": (
        T.ColorJitter(saturation=(2, 2)),
        lambda image: F.adjust_saturation(image, 2.0),
        0,
    ),
    "hue": (T.ColorJitter(hue=(0.2, 0.2)), lambda image: F.adjust_hue(image, 0.2), 0),
}


def gray(data):
    """Pillow's grey values of a file."""
    return F.pil_to_tensor(Image.open(io.BytesIO(data)).convert("RGB").convert("L"))


@pytest.fixture
def files(tmp_path):
    """JPEGs and PNGs of some sizes."""
    made = []
    for number, (height, width) in enumerate(SIZES):
        pixels = photo(height, width, number)
        for kind, data in (("jpg", jpeg(pixels)), ("png", png(pixels))):
            path = tmp_path / f"{number}.{kind}"
            path.write_bytes(data)
            made.append(path)
    return made


def make(make_loader, files, recipe, **options):
    source = forebay.FileList(files, labels=list(range(len(files))))
    options = {"batch_size": 1, "mode": "GRAY"} | options
    return make_loader(source, transforms=recipe, **options)


def load(*args, **options):
    return [images for images, _ in make(*args, **options)]


@pytest.mark.parametrize("name", CASES)
def test_transforms_of_grey_are_torchvisions(make_loader, files, device, name):
    own, peer, bound = CASES[name]
    got = load(make_loader, files, [own, T.CenterCrop(150)], device=device)
    for image, file in zip(got, files, strict=True):
        expected = F.center_crop(peer(gray(file.read_bytes())), [150, 150])
        assert image.shape == (1, 1, 150, 150) and image.dtype == torch.uint8
        assert image.device.type == device
        off = (image[0].cpu().int() - expected.int()).abs().max()
        assert off <= bound, f"{file.name}: {off}"


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_elements_are_normalised_by_one_number(make_loader, files, device, dtype, layout):
    recipe = [T.CenterCrop((20, 30)), T.Normalize([0.4], [0.2])]
    options = {"device": device, "dtype": dtype, "memory_format": layout, "batch_size": 4}
    got = torch.cat([batch.cpu() for batch in load(make_loader, files, recipe, **options)])
    pixels = [F.center_crop(gray(file.read_bytes()), [20, 30]) for file in files]
    floats = F.normalize(F.to_dtype(torch.stack(pixels), torch.float32, scale=True), [0.4], [0.2])
    assert got.shape == (len(files), 1, 20, 30)
    assert torch.equal(got, floats.to(dtype))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_becomes_grey(make_loader, tmp_path, device, kind):
    files = write_mixed(tmp_path, 2, [kind])
    decode = forebay.ops.decode_image
    got = load(make_loader, files, [T.CenterCrop(64)], device=device)
    for image, file in zip(got, files, strict=True):
        data = torch.from_numpy(np.fromfile(file, np.uint8))
        assert torch.equal(image[0].cpu(), F.center_crop(decode(data, mode="GRAY"), [64, 64]))


RECIPES = {
    "train": [T.RandomResizedCrop(48), T.RandomHorizontalFlip(), T.Normalize(0.5, 0.2)],
    "augmented": [T.RandomResizedCrop(48), T.AugMix(), T.RandAugment(), T.RandomErasing(1.0)],
    "policies": [T.AutoAugment(), T.TrivialAugmentWide(), T.RandomPhotometricDistort(), T.Pad(2),
                 T.RandomCrop(30, pad_if_needed=True)],
    "mixed": [T.RandomResizedCrop(48), T.Normalize(0.5, 0.2), T.MixUp(num_classes=10), T.CutMix()],
}  # fmt: skip


@pytest.mark.parametrize("name", RECIPES)
def test_grey_batches_do_not_depend_on_threads_and_go_on(make_loader, files, name):
    options = {"batch_size": 3, "seed": 5}
    expected = load(make_loader, files, RECIPES[name], num_workers=0, **options)
    loader = make(make_loader, files, RECIPES[name], num_workers=2, **options)
    got = [next(iter(loader))[0]]
    other = make(make_loader, files, RECIPES[name], num_workers=1, **options)
    other.load_state_dict(loader.state_dict())
    got += [images for images, _ in other]
    assert expected[0].shape[1] == 1
    assert all(itertools.starmap(torch.equal, zip(got, expected, strict=True)))


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("name", RECIPES)
def test_grey_batches_of_a_gpu_are_the_cpus(make_loader, files, name):
    options = {"batch_size": 4, "seed": 3}
    source = [*files] * 3
    got = load(make_loader, source, RECIPES[name], device="cuda", **options)
    expected = load(make_loader, source, RECIPES[name], **options)
    assert all(torch.equal(a.cpu(), b) for a, b in zip(got, expected, strict=True))


def test_a_state_of_colours_is_not_one_of_greys(make_loader, files):
    colours = make(make_loader, files, [T.CenterCrop(30)], mode="RGB")
    greys = make(make_loader, files, [T.CenterCrop(30)])
    next(iter(colours))
    with pytest.raises(ValueError, match="recipe"):
        greys.load_state_dict(colours.state_dict())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"transforms": [T.Normalize([1, 2, 3], 1)]}, ValueError, ["Normalize", "mean", "one"]),
        ({"transforms": [T.Pad(1, fill=(1, 2, 3))]}, ValueError, ["Pad: fill", "(1, 2, 3)"]),
        ({"transforms": [T.Grayscale(3)]}, ValueError, ["Grayscale", "must be 1", "got 3"]),
        ({"transforms": [T.RandomApply([T.RandomRotation(9, fill=(1, 2, 3))])]}, ValueError,
         ["RandomRotation: fill"]),
        ({"decoders": {"cuda": 0.5}, "device": "cuda"}, ValueError, ["decoders", "threads"]),
    ],
)  # fmt: skip
def test_what_does_not_go_with_one_channel_is_refused(make_loader, files, options, error, words):
    recipe = [*options.pop("transforms", []), T.CenterCrop(9)]
    with pytest.raises(error) as caught:
        iter(make(make_loader, files, recipe, **options))
    assert all(word in str(caught.value) for word in words), caught.value


@pytest.mark.parametrize("step", [T.Grayscale(), V.Grayscale()])
def test_one_channel_of_colours_points_to_the_mode(make_loader, files, step):
    with pytest.raises(NotImplementedError, match='mode="GRAY"'):
        make(make_loader, files, [step, T.CenterCrop(9)], mode="RGB")
    (image,) = {tuple(batch.shape) for batch in load(make_loader, files, [step, T.CenterCrop(9)])}
    assert image == (1, 1, 9, 9)
