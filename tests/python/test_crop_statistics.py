"""T24: what is drawn has torchvision's distribution, read off pictures of coordinates."""

import math

import numpy as np
import pytest
import torch

import forebay
from conftest import full
from forebay import transforms as T
from images import flat, jpeg, photo, pillow_rgb, png

V = pytest.importorskip("torchvision.transforms.v2")
# Draws are a function of the seed, so these tests pass always or never.
P_001 = 1.628  # Kolmogorov's bound for p = 0.01, times sqrt(2 / n)


def coordinates(height, width):
    """A picture whose red is the column and whose green is the row."""
    picture = flat(height, width, 0)
    picture[..., 0] = np.arange(width)[None, :]
    picture[..., 1] = np.arange(height)[:, None]
    return png(picture)


@pytest.fixture
def crops(make_loader, tmp_path):
    """Crops of a picture as (left, top, width, height)."""

    def crops(height, width, transform, draws, seed=0):
        path = tmp_path / "coordinates.png"
        path.write_bytes(coordinates(height, width))
        loader = make_loader(
            forebay.FileList([path] * draws),
            transforms=[transform],
            batch_size=min(draws, 500),
            seed=seed,
        )
        # At least as many output pixels as input ones: the corners show the crop's own pixels.
        found = []
        for images in loader:
            left, right = images[:, 0, 0, 0].long(), images[:, 0, 0, -1].long()
            top, bottom = images[:, 1, 0, 0].long(), images[:, 1, -1, 0].long()
            found.append(torch.stack([left, top, right - left + 1, bottom - top + 1], dim=1))
        return torch.cat(found)

    return crops


def theirs(height, width, transform, draws):
    torch.manual_seed(24)
    like = [torch.empty(3, height, width)]
    drawn = [transform.make_params(like) for _ in range(draws)]
    names = ("left", "top", "width", "height")
    return torch.tensor([[params[name] for name in names] for params in drawn])


def distance(first, second):
    """Kolmogorov and Smirnov's, between two samples."""
    values = torch.cat([first, second])
    below = [
        torch.searchsorted(sample.sort().values, values, right=True).double() / len(sample)
        for sample in (first, second)
    ]
    return float((below[0] - below[1]).abs().max())


@pytest.mark.parametrize("draws", [10_000, full(100_000)])
@pytest.mark.parametrize(
    ("size", "keywords"),
    [
        ((128, 128), {}),
        # Wide, with areas that often do not fit: rejected tries and the fallback take part.
        ((60, 200), {"scale": (0.3, 1.0), "ratio": (0.5, 2.0)}),
    ],
)
def test_t24_crops_have_torchvisions_distribution(crops, size, keywords, draws):
    own = crops(*size, T.RandomResizedCrop(max(size), interpolation="nearest", **keywords), draws)
    peer = theirs(*size, V.RandomResizedCrop(max(size), **keywords), draws)
    statistics = {
        "area": lambda box: (box[:, 2] * box[:, 3]).double() / math.prod(size),
        "log aspect": lambda box: (box[:, 2].double() / box[:, 3]).log(),
        "left": lambda box: box[:, 0].double(),
        "top": lambda box: box[:, 1].double(),
    }
    bound = P_001 * math.sqrt(2 / draws)
    for name, statistic in statistics.items():
        assert distance(statistic(own), statistic(peer)) < bound, name


@pytest.mark.parametrize("size", [(10, 250), (250, 10), (1, 1), (4, 3)])
def test_t24_extreme_aspects_fall_back_to_the_central_crop(crops, size):
    keywords = {"scale": (0.9, 1.0), "ratio": (3 / 4, 4 / 3)}
    if min(size) == 10:
        own = crops(*size, T.RandomResizedCrop(250, interpolation="nearest", **keywords), 50)
        peer = theirs(*size, V.RandomResizedCrop(250, **keywords), 50)
        assert len(peer.unique(dim=0)) == 1, "nothing fits, so nothing is drawn"
        assert torch.equal(own, peer)
    else:
        own = crops(*size, T.RandomResizedCrop(16, interpolation="nearest"), 50)
        assert (own[:, 2:] >= 1).all()
        assert (own[:, 0] + own[:, 2] <= size[1]).all() and (own[:, 1] + own[:, 3] <= size[0]).all()


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize("encode", [jpeg, png])
def test_pix_2_each_crop_is_resized_as_torchvisions(
    crops, make_loader, tmp_path, encode, interpolation
):
    """The places are read off first: draws do not depend on the pixels or on the size."""
    height, width, draws = 120, 200, 40
    boxes = crops(height, width, T.RandomResizedCrop(200, interpolation="nearest"), draws)
    assert len(boxes.unique(dim=0)) == draws
    data = encode(photo(height, width))
    path = tmp_path / "photo.img"
    path.write_bytes(data)
    recipe = [T.RandomResizedCrop((48, 64), interpolation=interpolation)]
    loader = make_loader(forebay.FileList([path] * draws), transforms=recipe, batch_size=draws)
    whole = torch.from_numpy(pillow_rgb(data).copy()).permute(2, 0, 1)
    mode = V.InterpolationMode(interpolation)
    for image, (left, top, w, h) in zip(next(iter(loader)), boxes.tolist(), strict=True):
        expected = V.functional.resized_crop(
            whole, top, left, h, w, [48, 64], interpolation=mode, antialias=True
        )
        assert (image.int() - expected.int()).abs().max() <= 1, (left, top, w, h)


def test_random_crops_cover_all_places_evenly(crops):
    own = crops(8, 9, T.RandomCrop((6, 5)), 6000)
    assert (own[:, 2:] == torch.tensor([5, 6])).all()
    places, counts = own[:, :2].unique(dim=0, return_counts=True)
    assert len(places) == 5 * 3
    assert (counts - 400).abs().max() < 4 * math.sqrt(400)


@pytest.mark.parametrize(("transform", "axis"), [("Horizontal", 2), ("Vertical", 1)])
def test_flips_come_with_their_probability(make_loader, tmp_path, transform, axis):
    path = tmp_path / "a.png"
    path.write_bytes(coordinates(8, 8))
    flip = getattr(T, f"Random{transform}Flip")(0.3)
    loader = make_loader(
        forebay.FileList([path] * 5000), transforms=[T.CenterCrop(8), flip], batch_size=5000
    )
    images = next(iter(loader))
    flipped = images[:, 2 - axis, 0, 0] == 7
    assert abs(float(flipped.double().mean()) - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 5000)
    plain = images[~flipped][0]
    assert torch.equal(images[flipped], plain.flip(axis).expand_as(images[flipped]))


def test_jitter_factors_are_uniform(make_loader, tmp_path):
    path = tmp_path / "grey.png"
    path.write_bytes(png(flat(4, 4, 100)))
    recipe = [T.CenterCrop(4), T.ColorJitter(brightness=(0.5, 1.5))]
    loader = make_loader(
        forebay.FileList([path] * 5000), transforms=recipe, batch_size=5000, seed=3
    )
    values = next(iter(loader))[:, 0, 0, 0].double()
    uniform = torch.linspace(50, 150, 50_001).floor().double()
    assert distance(values, uniform) < P_001 * math.sqrt(1 / 5000 + 1 / 50_000)
