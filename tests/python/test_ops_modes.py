"""T14 to T16: images in grey, with alpha, and as the file stores them."""

import io
import struct

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
    with pytest.raises(
        NotImplementedError, match="JPEG of four inks in mode UNCHANGED is not decoded"
    ):
        decode(inks, "UNCHANGED")
    assert decode(inks, "RGB_ALPHA").shape == (4, 20, 30)


def with_alpha():
    image = Image.fromarray(photo(20, 30))
    image.putalpha(Image.fromarray(photo(20, 30, 3)).convert("L"))
    return image


def bmp_of_masks(image, order):
    """A BMP whose header says where in 32 bits red, green, blue and alpha lie."""
    pixels = np.asarray(image)[::-1][..., ["RGBA".index(channel) for channel in order]].tobytes()
    masks = [0xFF << 8 * order.index(channel) for channel in "RGBA"]
    width, height = image.size
    header = struct.pack("<IiiHHIIiiII4I", 108, width, height, 1, 32, 3, 0, 0, 0, 0, 0, *masks)
    header += bytes(108 - len(header))
    return b"BM" + struct.pack("<IHHI", 122 + len(pixels), 0, 0, 122) + header + pixels


OTHERS = {
    "WebP": lambda image: saved(image.convert("RGB"), "WEBP"),
    "WebP with alpha": lambda image: saved(image, "WEBP", alpha_quality=60),
    "WebP with lossless alpha": lambda image: saved(image, "WEBP", lossless=True, exact=True),
    "WebP of frames": lambda image: saved(
        image, "WEBP", save_all=True, append_images=[image.rotate(90)]
    ),
    "GIF": lambda image: saved(image.convert("RGB"), "GIF"),
    "GIF with transparency": lambda image: saved(
        image.convert("RGB").quantize(64), "GIF", transparency=9
    ),
    "BMP": lambda image: saved(image.convert("RGB"), "BMP"),
    "BMP of two colours": lambda image: saved(image.convert("1"), "BMP"),
    "BMP with greys": lambda image: saved(image.convert("L"), "BMP"),
    "BMP with a palette": lambda image: saved(image.convert("RGB").quantize(64), "BMP"),
    "BMP with alpha": lambda image: bmp_of_masks(image, "BGRA"),
    "BMP with alpha first": lambda image: bmp_of_masks(image, "ABGR"),
    "TIFF": lambda image: saved(image.convert("RGB"), "TIFF"),
    "TIFF with alpha": lambda image: saved(image, "TIFF", compression="tiff_lzw"),
    "TIFF of grey with alpha": lambda image: saved(image.convert("LA"), "TIFF"),
    "TIFF with a palette": lambda image: saved(image.convert("RGB").quantize(64), "TIFF"),
    "PPM": lambda image: saved(image.convert("RGB"), "PPM"),
    "PGM": lambda image: saved(image.convert("L"), "PPM"),
    "TIFF of two indices": lambda image: saved(image.convert("RGB").quantize(2), "TIFF"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats_in_any_mode_are_pillows(name):
    data = OTHERS[name](with_alpha())
    own = Image.open(io.BytesIO(data))
    rgb = own.convert("RGB")
    assert torch.equal(decode(data, "RGB"), planes(rgb))
    assert torch.equal(decode(data, "GRAY"), planes(rgb.convert("L")))
    assert torch.equal(decode(data, "RGB_ALPHA"), planes(own.convert("RGBA")))
    assert torch.equal(decode(data, "UNCHANGED"), planes(own).to(torch.uint8))


def test_a_webps_alpha_is_told_by_the_image():
    """Flags of the file may leave it out."""
    image = with_alpha()
    simple = saved(image, "WEBP", lossless=True, exact=True)
    size = struct.pack("<I", image.width - 1)[:3] + struct.pack("<I", image.height - 1)[:3]
    chunks = b"VP8X" + struct.pack("<II", 10, 0) + size + simple[12:]
    data = b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks
    own = Image.open(io.BytesIO(data))
    for mode, pillows in (("RGB_ALPHA", "RGBA"), ("UNCHANGED", own.mode), ("RGB", "RGB")):
        assert torch.equal(decode(data, mode), planes(own.convert(pillows)))


def test_run_lengths_of_a_bmp_are_indices():
    codes = bytes([2, 1, 0, 0, 4, 2, 0, 0, 1, 2, 0, 2, 1, 0, 2, 1, 0, 1])
    palette = bytes([10, 20, 30, 0, 40, 50, 60, 0, 70, 80, 90, 0])
    header = struct.pack("<IiiHHIIiiII", 40, 4, 3, 1, 8, 1, 0, 0, 0, 3, 0)
    file = b"BM" + struct.pack("<IHHI", 0, 0, 0, 66) + header + palette + codes
    own = Image.open(io.BytesIO(file))
    assert torch.equal(decode(file, "UNCHANGED"), planes(own))
    assert torch.equal(decode(file, "RGB_ALPHA"), planes(own.convert("RGBA")))


@pytest.mark.parametrize("colours", [2, 64, 256])
def test_a_tiff_with_a_palette_gives_its_indices(colours):
    image = Image.fromarray(photo(20, 30)).quantize(colours)
    data = saved(image, "TIFF")
    assert torch.equal(decode(data, "UNCHANGED"), planes(image))
    for mode in MODES:
        assert torch.equal(decode(data, mode), planes(image.convert("RGB").convert(MODES[mode])))


def test_16_bits_of_a_tiff_stay():
    values = np.arange(600, dtype=np.uint16).reshape(20, 30) * 100
    data = saved(Image.fromarray(values), "TIFF")
    unchanged = decode(data, "UNCHANGED")
    assert unchanged.dtype == torch.uint16 and np.array_equal(unchanged.numpy()[0], values)
    assert torch.equal(decode(data, "GRAY")[0], torch.from_numpy((values >> 8).astype(np.uint8)))


def test_a_tiff_of_four_inks_is_refused_as_it_is():
    data = saved(Image.fromarray(photo(20, 30)).convert("CMYK"), "TIFF")
    with pytest.raises(NotImplementedError, match="TIFF of four inks"):
        decode(data, "UNCHANGED")
    assert decode(data, "RGB_ALPHA").shape == (4, 20, 30)


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
