"""PIX-2: pixels equal torchvision v2's on uint8 tensors, antialias on, within 1 of 255."""

import pytest
import torch

import forebay
from forebay import transforms as T
from images import jpeg, photo, pillow_rgb, png

V = pytest.importorskip("torchvision.transforms.v2")
F = V.functional
SIZES = [(37, 53), (64, 64), (120, 81), (200, 31), (9, 300)]


@pytest.fixture
def compare(make_loader, tmp_path):
    """Batches of our recipe and what torchvision makes of the same pixels."""

    def compare(own, peer, tolerance, encode=jpeg):
        datas = [encode(photo(*size, seed=number)) for number, size in enumerate(SIZES)]
        paths = []
        for number, data in enumerate(datas):
            paths.append(tmp_path / f"{number}.img")
            paths[-1].write_bytes(data)
        loader = make_loader(forebay.FileList(paths), transforms=own, batch_size=len(paths))
        images = next(iter(loader))
        for image, data in zip(images, datas, strict=True):
            expected = V.Compose(peer)(torch.from_numpy(pillow_rgb(data).copy()).permute(2, 0, 1))
            assert image.dtype == expected.dtype
            difference = (image.float() - expected.float()).abs().max()
            assert difference <= tolerance, (tuple(expected.shape), float(difference))

    return compare


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(24, 24), (100, 40), (17, 230)])
@pytest.mark.parametrize("encode", [jpeg, png])
def test_t22_resize(compare, size, interpolation, encode):
    mode = V.InterpolationMode(interpolation)
    compare(
        [T.Resize(size, interpolation=interpolation)],
        [V.Resize(size, interpolation=mode, antialias=True)],
        1,
        encode,
    )


@pytest.mark.parametrize("interpolation", ["nearest", "nearest-exact"])
def test_nearest_is_exact(compare, interpolation):
    mode = V.InterpolationMode(interpolation)
    compare(
        [T.Resize((40, 24), interpolation=interpolation)],
        [V.Resize((40, 24), interpolation=mode)],
        0,
    )


@pytest.mark.parametrize(("short", "crop"), [(32, 28), (28, (28, 20)), (40, 33)])
def test_the_validation_recipe(compare, short, crop):
    compare([T.Resize(short), T.CenterCrop(crop)], [V.Resize(short), V.CenterCrop(crop)], 1)


@pytest.mark.parametrize("size", [16, (50, 20), 250])
def test_center_crop_is_exact_and_pads(compare, size):
    compare([T.CenterCrop(size)], [V.CenterCrop(size)], 0)


@pytest.mark.parametrize("place", [(2, 3, 5, 4), (-4, 10, 30, 200), (30, -7, 40, 20)])
def test_crop_is_exact_and_pads(compare, place):
    top, left, height, width = place
    peer = [V.Lambda(lambda image: F.crop(image, top, left, height, width))]
    compare([T.Crop(*place)], peer, 0)
    resized = [V.Resize(48), *peer]
    compare([T.Resize(48), T.Crop(*place)], resized, 1)


def test_normalize_implies_float_and_scale(compare):
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    own = [T.Resize((24, 24)), T.Normalize(mean, std)]
    peer = [V.Resize((24, 24)), V.ToDtype(torch.float32, scale=True), V.Normalize(mean, std)]
    compare(own, peer, 1.001 / 255 / min(std))


@pytest.mark.parametrize(("own", "peer"), [
    (T.RandomHorizontalFlip(1), V.RandomHorizontalFlip(1)),
    (T.RandomVerticalFlip(1), V.RandomVerticalFlip(1)),
    (T.ColorJitter(brightness=(1.5, 1.5)), V.ColorJitter(brightness=(1.5, 1.5))),
    (T.ColorJitter(saturation=(0.3, 0.3)), V.ColorJitter(saturation=(0.3, 0.3))),
    (T.ColorJitter(contrast=(0.6, 0.6)), V.ColorJitter(contrast=(0.6, 0.6))),
    (T.ColorJitter(hue=(0.2, 0.2)), V.ColorJitter(hue=(0.2, 0.2))),
])  # fmt: skip
def test_fixed_flips_and_colors(compare, own, peer):
    tolerance = 0 if "Flip" in type(own).__name__ else 1
    compare([T.CenterCrop(24), own], [V.CenterCrop(24), peer], tolerance)
