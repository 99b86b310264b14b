"""T14 to T16: images in grey, with alpha, and as the file stores them."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from forebay import ops
from images import jpeg, photo, png

MODES = {"RGB": "RGB", "GRAY": "L", "RGB_ALPHA": "RGBA"}


def tensor(data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def decode(data, mode, **keywords):
    return ops.decode_image(tensor(data), mode=mode, **keywords)


def saved(image, kind="PNG", **keywords):
    buffer = io.BytesIO()
    image.save(buffer, kind, **keywords)
    return buffer.getvalue()


def planes(image):
    """Pillow's pixels as (C, H, W)."""
    array = np.asarray(image)
    return torch.from_numpy(np.atleast_3d(array).transpose(2, 0, 1).copy())


def stored(mode):
    """A PNG of one of Pillow's modes, with some transparency where there may be any."""
    image = Image.fromarray(photo(20, 31)).convert(mode)
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.fromarray(photo(20, 31, 9)).convert("L"))
    return saved(image)


@pytest.mark.parametrize("kind", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_t14_any_png_in_any_mode_is_pillows(kind):
    data = stored(kind)
    for mode, pillows in MODES.items():
        expected = Image.open(io.BytesIO(data)).convert("RGB" if mode == "GRAY" else pillows)
        expected = expected.convert("L") if mode == "GRAY" else expected
        assert torch.equal(decode(data, mode), planes(expected)), mode
    unchanged = decode(data, "UNCHANGED")
    assert unchanged.shape[0] == {"LA": 2, "RGB": 3, "RGBA": 4}.get(kind, 1)
    own = Image.open(io.BytesIO(data))
    own = own.convert("L") if kind == "1" else own
    assert torch.equal(unchanged, planes(own))


@pytest.mark.parametrize("transparency", [0, 100, b"\x00\x50\xff"])
def test_transparent_colours_become_alpha(transparency):
    image = Image.fromarray(photo(20, 31)).quantize(64)
    data = saved(image, transparency=transparency)
    expected = Image.open(io.BytesIO(data)).convert("RGBA")
    assert torch.equal(decode(data, "RGB_ALPHA"), planes(expected))
    assert torch.equal(decode(data, "UNCHANGED"), planes(image))
    grey = saved(Image.fromarray(photo(20, 31)).convert("L"), transparency=77)
    expected = Image.open(io.BytesIO(grey)).convert("RGBA")
    assert torch.equal(decode(grey, "RGB_ALPHA"), planes(expected))


def test_t15_16_bits_stay():
    values = (np.arange(64 * 64, dtype=np.uint32) * 16).astype(np.uint16).reshape(64, 64)
    data = saved(Image.fromarray(values))
    unchanged = decode(data, "UNCHANGED")
    assert unchanged.dtype == torch.uint16 and unchanged.shape == (1, 64, 64)
    assert np.array_equal(unchanged.numpy()[0], values)
    assert torch.equal(decode(data, "GRAY")[0], torch.from_numpy((values >> 8).astype(np.uint8)))


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_t16_palette_indices_are_kept(bits):
    classes = np.random.default_rng(0).integers(0, min(19, 2**bits), (23, 37)).astype(np.uint8)
    mask = Image.fromarray(classes, "P")
    mask.putpalette([*range(256)] * 3)
    data = saved(mask, bits=bits)
    assert np.array_equal(decode(data, "UNCHANGED").numpy()[0], classes)
    assert torch.equal(decode(data, "RGB"), planes(mask.convert("RGB")))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["GRAY", "RGB_ALPHA", "UNCHANGED"])
def test_pixels_are_upright(mode, orientation):
    data = jpeg(photo(33, 20), orientation=orientation)
    upright = decode(data, "RGB")
    as_stored = decode(data, "RGB", orientation="ignore")
    for keywords, rgb in (({}, upright), ({"orientation": "ignore"}, as_stored)):
        got = decode(data, mode, **keywords)
        pixels = Image.fromarray(rgb.permute(1, 2, 0).numpy())
        assert torch.equal(got, planes(pixels.convert(MODES.get(mode, "RGB"))))


def test_jpegs_keep_their_channels():
    grey = jpeg(photo(20, 30)[:, :, 0])
    assert decode(grey, "UNCHANGED").shape == (1, 20, 30)
    assert torch.equal(decode(grey, "UNCHANGED"), decode(grey, "GRAY"))
    assert decode(jpeg(photo(20, 30)), "UNCHANGED").shape == (3, 20, 30)
    inks = saved(Image.fromarray(photo(20, 30)).convert("CMYK"), "JPEG")
    with pytest.raises(NotImplementedError, match="JPEG of four inks"):
        decode(inks, "UNCHANGED")
    assert decode(inks, "RGB_ALPHA").shape == (4, 20, 30)


@pytest.mark.parametrize("kind", ["WEBP", "TIFF", "BMP", "GIF"])
def test_other_formats_refuse_what_they_would_lose(kind):
    image = Image.fromarray(photo(20, 30))
    plain = saved(image, kind)
    for mode in MODES:
        pixels = Image.open(io.BytesIO(plain)).convert("RGB").convert(MODES[mode])
        assert torch.equal(decode(plain, mode), planes(pixels))
    if kind == "GIF":
        with pytest.raises(NotImplementedError, match="GIF with a palette"):
            decode(plain, "UNCHANGED")
    else:
        assert torch.equal(decode(plain, "UNCHANGED"), decode(plain, "RGB"))
    if kind == "BMP":
        return  # Pillow writes none with alpha
    image.putalpha(Image.fromarray(photo(20, 30, 3)).convert("L").point(lambda v: 255 * (v > 99)))
    data = saved(image, kind)
    for mode in ("RGB_ALPHA", "UNCHANGED"):
        with pytest.raises(NotImplementedError, match="with alpha"):
            decode(data, mode)
    assert decode(data, "GRAY").shape == (1, 20, 30)


def test_a_bmp_with_a_palette_is_refused_as_it_is():
    for image in (
        Image.fromarray(photo(20, 30)).quantize(64),
        Image.fromarray(photo(20, 30)[..., 0]),
    ):
        data = saved(image, "BMP")
        with pytest.raises(NotImplementedError, match="BMP with a palette"):
            decode(data, "UNCHANGED")
        assert decode(data, "RGB").shape == (3, 20, 30)


@pytest.mark.parametrize("colours", [2, 64, 256])
def test_a_tiff_with_a_palette_gives_its_indices(colours):
    image = Image.fromarray(photo(20, 30)).quantize(colours)
    data = saved(image, "TIFF")
    assert torch.equal(decode(data, "UNCHANGED"), planes(image))
    for mode in MODES:
        assert torch.equal(decode(data, mode), planes(image.convert("RGB").convert(MODES[mode])))


def test_a_tiff_of_16_bits_is_refused_as_it_is():
    values = np.arange(600, dtype=np.uint16).reshape(20, 30) * 100
    data = saved(Image.fromarray(values), "TIFF")
    with pytest.raises(NotImplementedError, match="TIFF of 16 bits"):
        decode(data, "UNCHANGED")
    assert decode(data, "GRAY").dtype == torch.uint8


@pytest.mark.parametrize("mode", ["RGB", "GRAY", "RGB_ALPHA", "UNCHANGED"])
def test_damage_is_damage_in_every_mode(mode):
    for data in (png(photo(30, 40))[:-400], jpeg(photo(30, 40))[:-300], b"", b"no image"):
        with pytest.raises(ValueError):
            decode(data, mode)


def test_many_images_in_a_mode():
    files = [tensor(stored(kind)) for kind in ("L", "LA", "P", "RGBA")]
    for mode, channels in {"GRAY": 1, "RGB_ALPHA": 4}.items():
        images = ops.decode_images(files, mode=mode)
        expected = [ops.decode_image(file, mode=mode) for file in files]
        assert all(map(torch.equal, images, expected))
        batch, sizes = ops.decode_images(files, mode=mode, layout="padded")
        assert batch.shape == (4, channels, 20, 31) and sizes.tolist() == [[20, 31]] * 4
        broken, ok = ops.decode_images([*files, tensor(b"x")], mode=mode, strict=False)
        assert broken[-1].shape == (channels, 0, 0) and ok.tolist() == [True] * 4 + [False]
    images = ops.decode_images(files, mode="UNCHANGED")
    assert [image.shape[0] for image in images] == [1, 2, 1, 4]
    with pytest.raises(ValueError, match="UNCHANGED"):
        ops.decode_images(files, mode="UNCHANGED", layout="padded")
