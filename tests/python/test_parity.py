"""PIX-2: pixels equal torchvision v2's on uint8 tensors, antialias on, within 1 of 255."""

import math

import pytest
import torch

import forebay
from forebay import transforms as T
from images import flat, jpeg, photo, pillow_rgb, png

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


def test_t20_antialiasing_is_on(make_loader, tmp_path):
    stripes = flat(256, 256, 0)
    stripes[:, ::8] = 255
    path = tmp_path / "stripes.png"
    path.write_bytes(png(stripes))
    image = next(iter(make_loader(forebay.FileList([path]), transforms=[T.Resize((32, 32))])))
    assert 20 <= image.min() <= image.max() <= 36
    assert abs(float(image.float().mean()) - 31.75) < 0.5


def test_t24_crops_follow_torchvisions_distribution(make_loader, tmp_path):
    """The crop is read off a picture whose red and green are the coordinates."""
    side, draws = 256, 2000
    picture = flat(side, side, 0)
    picture[..., 0] = torch.arange(side).numpy()[None, :]
    picture[..., 1] = torch.arange(side).numpy()[:, None]
    path = tmp_path / "coordinates.png"
    path.write_bytes(png(picture))
    recipe = [T.RandomResizedCrop(2, interpolation="nearest")]
    loader = make_loader(forebay.FileList([path] * draws), transforms=recipe, batch_size=draws)
    images = next(iter(loader)).double()
    # Pixel centres stand at a quarter and three quarters of the crop, so they are half apart.
    width = 2 * (images[:, 0, 0, 1] - images[:, 0, 0, 0])
    height = 2 * (images[:, 1, 1, 0] - images[:, 1, 0, 0])
    crop, like = V.RandomResizedCrop(2), [torch.empty(3, side, side)]
    drawn = [crop.make_params(like) for _ in range(draws)]
    peer = torch.tensor([[params["width"], params["height"]] for params in drawn]).double()
    area = width * height / side**2, peer[:, 0] * peer[:, 1] / side**2
    aspect = (width / height).log(), (peer[:, 0] / peer[:, 1]).log()
    for own, theirs in (area, aspect):
        assert kolmogorov_smirnov(own, theirs) < 1.95 * math.sqrt(2 / draws)  # p about 0.001


def kolmogorov_smirnov(first, second):
    values = torch.cat([first, second]).sort().values
    first, second = first.sort().values, second.sort().values
    below = torch.searchsorted(first, values, right=True) / len(first)
    return float((below - torch.searchsorted(second, values, right=True) / len(second)).abs().max())


def test_flips_come_half_the_time(make_loader, tmp_path):
    picture = flat(8, 8, 0)
    picture[:, :4] = 255
    path = tmp_path / "left.png"
    path.write_bytes(png(picture))
    recipe = [T.CenterCrop(8), T.RandomHorizontalFlip(0.3)]
    loader = make_loader(forebay.FileList([path] * 2000), transforms=recipe, batch_size=2000)
    share = float((next(iter(loader))[:, 0, 0, 0] == 0).double().mean())
    assert abs(share - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 2000)
