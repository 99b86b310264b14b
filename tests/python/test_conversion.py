"""From 8-bit pixels to the tensor's elements: torchvision v2's conversion, bit for bit."""

import numpy as np
import pytest
import torch

import forebay
from forebay import transforms as T
from images import jpeg, photo, png

V = pytest.importorskip("torchvision.transforms.v2")
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
FORMATS = [torch.contiguous_format, torch.channels_last]
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
# Common ones, those without an exact short formula, and extremes.
STATISTICS = [
    IMAGENET,
    ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    ((0.0, 1.0, 0.1307), (1.0, 0.3081, 1e-3)),
]


def every_value():
    """Pixels (9, 256, 3): every value in every channel, beside different ones."""
    column = np.arange(256)
    rows = [np.stack([column, (column * 7 + row) % 256, column[::-1]], axis=1) for row in range(9)]
    return np.stack(rows).astype(np.uint8)


PIXELS = every_value()


@pytest.fixture
def load(make_loader, tmp_path):
    """The image that a Loader makes of the pixels, or of their first columns."""

    def load(*transforms, width=256, **keywords):
        path = tmp_path / f"{width}.png"
        path.write_bytes(png(PIXELS[:, :width]))
        loader = make_loader(
            forebay.FileList([path] * 3),
            transforms=[T.CenterCrop((9, width)), *transforms],
            batch_size=3,
            num_workers=0,
            **keywords,
        )
        batch = next(iter(loader))
        memory_format = keywords.get("memory_format", torch.contiguous_format)
        assert batch.is_contiguous(memory_format=memory_format)
        assert torch.equal(batch[0], batch[1]) and torch.equal(batch[0], batch[2])
        return batch[0]

    return load


def peer(*transforms, width=256):
    image = torch.from_numpy(PIXELS[:, :width].copy()).permute(2, 0, 1)
    return V.Compose(transforms)(image)


def assert_same_bits(own, expected):
    assert own.dtype == expected.dtype
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[own.element_size()]
    assert torch.equal(own.contiguous().view(bits), expected.contiguous().view(bits))


@pytest.mark.parametrize("memory_format", FORMATS)
def test_uint8_is_untouched(load, memory_format):
    assert_same_bits(load(memory_format=memory_format), peer(V.Identity()))


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("dtype", FLOATS)
def test_to_dtype(load, dtype, scale, memory_format):
    own = load(T.ToDtype(dtype, scale=scale), memory_format=memory_format)
    assert_same_bits(own, peer(V.ToDtype(dtype, scale=scale)))


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_loaders_dtype_scales(load, dtype, memory_format):
    own = load(dtype=dtype, memory_format=memory_format)
    assert_same_bits(own, peer(V.ToDtype(dtype, scale=True)))


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("statistics", STATISTICS)
def test_normalize_in_float32(load, statistics, memory_format):
    expected = peer(V.ToDtype(torch.float32, scale=True), V.Normalize(*statistics))
    for transforms in (
        [T.Normalize(*statistics)],
        [T.ToDtype(torch.float32, scale=True), T.Normalize(*statistics)],
    ):
        assert_same_bits(load(*transforms, memory_format=memory_format), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_normalize_without_scale(load, dtype):
    mean, std = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
    own = load(T.ToDtype(torch.float32), T.Normalize(mean, std), T.ToDtype(dtype))
    expected = peer(V.ToDtype(torch.float32), V.Normalize(mean, std), V.ToDtype(dtype))
    assert_same_bits(own, expected)


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_float32_rounded_once(load, dtype, statistics, memory_format):
    """torchvision's own Normalize on half precision rounds after every step: docs/transforms.md."""
    expected = peer(
        V.ToDtype(torch.float32, scale=True), V.Normalize(*statistics), V.ToDtype(dtype)
    )
    for transforms, keywords in (
        ([T.ToDtype(torch.float32, scale=True), T.Normalize(*statistics), T.ToDtype(dtype)], {}),
        ([T.Normalize(*statistics)], {"dtype": dtype}),
        ([T.ToDtype(dtype, scale=True), T.Normalize(*statistics)], {}),
    ):
        own = load(*transforms, memory_format=memory_format, **keywords)
        assert_same_bits(own, expected)


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("dtype", [torch.uint8, *FLOATS])
def test_every_width_is_written_whole(load, dtype, memory_format):
    """Vector kernels take several pixels at once; what is left over is converted alike."""
    for width in range(1, 68):
        own = load(dtype=dtype, memory_format=memory_format, width=width)
        assert_same_bits(own, peer(V.ToDtype(dtype, scale=True), width=width))


TRAIN = [T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.Normalize(*IMAGENET)]
VALIDATE = [T.Resize(40), T.CenterCrop(32), T.Normalize(*IMAGENET)]


@pytest.fixture(params=["baseline 4:2:0", "progressive 4:4:4", "grey"])
def photos(request, tmp_path):
    """A list of JPEGs of one kind."""
    save = {"subsampling": 2} if request.param.startswith("base") else {"subsampling": 0}
    paths = []
    for number in range(24):
        pixels = photo(60 + number, 90 - number, number)
        pixels = pixels[..., 0] if request.param == "grey" else pixels
        paths.append(tmp_path / f"{number}.jpg")
        progressive = request.param.startswith("progressive")
        paths[-1].write_bytes(jpeg(pixels, progressive=progressive, **save))
    return forebay.FileList(paths)


@pytest.mark.parametrize("recipe", [TRAIN, VALIDATE], ids=["train", "validate"])
@pytest.mark.parametrize("keywords", [{}, {"dtype": torch.bfloat16}, {"num_workers": 0}])
def test_the_common_recipes_are_one_pass_and_keep_nothing(make_loader, photos, recipe, keywords):
    """Counted by the executor: passes run, and bytes written between passes."""
    loader = make_loader(photos, transforms=recipe, memory_format=torch.channels_last, **keywords)
    for epoch in range(1, 3):
        for _ in loader:
            pass
        stats = loader.stats()
        assert (stats["passes"], stats["render"]["count"]) == (24 * epoch, 24 * epoch)
        assert stats["intermediate_bytes"] == 0


def test_what_is_not_one_pass_is_counted(make_loader, photos):
    recipe = [T.CenterCrop(32), T.ColorJitter(contrast=(0.5, 0.5))]
    loader = make_loader(photos, transforms=recipe)
    for _ in loader:
        pass
    stats = loader.stats()
    assert stats["passes"] == 2 * 24
    assert stats["intermediate_bytes"] == 24 * 32 * 32 * 3
