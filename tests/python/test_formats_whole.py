"""PNG of 16 bits, WebP, BMP, TIFF, GIF and PNM: Pillow's pixels through the Loader and the ops."""

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

import forebay
from encoded import encoded_tensor
from forebay import ops
from forebay import transforms as T
from images import photo, pillow_rgb

HEIGHT, WIDTH = 37, 53


def encoded(image, kind, **save):
    buffer = io.BytesIO()
    image.save(buffer, kind, **save)
    return buffer.getvalue()


def rgb():
    return Image.fromarray(photo(HEIGHT, WIDTH))


def rgba():
    image = rgb()
    image.putalpha(Image.fromarray(photo(HEIGHT, WIDTH, 1)[..., 0]))
    return image


def grey():
    return rgb().convert("L")


def indexed():
    return rgb().quantize(17)


def bilevel():
    return rgb().convert("1")


def sixteen(channels):
    """Pixels of 16 bits as PNG and TIFF hold them, whose low bytes would round up."""
    high = photo(HEIGHT, WIDTH)[..., :channels].astype(np.uint16)
    return high * 256 + 255


def chunk(kind, content):
    check = zlib.crc32(kind + content).to_bytes(4, "big")
    return len(content).to_bytes(4, "big") + kind + content + check


def png16(pixels, colour):
    """A PNG of 16 bits, which Pillow writes only for grey."""
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    header = WIDTH.to_bytes(4, "big") + HEIGHT.to_bytes(4, "big") + bytes([16, colour, 0, 0, 0])
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def animated(kind, **save):
    others = [Image.fromarray(photo(HEIGHT, WIDTH, seed)) for seed in (5, 6)]
    return encoded(rgb(), kind, save_all=True, append_images=others, duration=40, **save)


def pnm(kind, pixels, most=255):
    """A PGM or PPM whose largest value is ``most``, as text or not; the header has comments."""
    values = pixels.astype(np.uint32) * most // pixels.max()
    header = f"P{kind} # made\n{pixels.shape[1]}\t{pixels.shape[0]}\n# so\n{most}\n".encode()
    if kind in (2, 3):
        return header + b"\n".join(b" ".join(b"%d" % v for v in row.ravel()) for row in values)
    return header + values.astype(">u2" if most > 255 else "u1").tobytes()


def bmp16(masks=None):
    """A BMP of 16 bits a pixel, with every value of a channel: of 5 bits, or of masks."""
    values = np.arange(WIDTH * HEIGHT, dtype=np.uint32).reshape(HEIGHT, WIDTH) * 31
    stride = (2 * WIDTH + 3) // 4 * 4
    rows = np.zeros((HEIGHT, stride // 2), "<u2")
    rows[:, :WIDTH] = values[::-1] & (0xFFFF if masks else 0x7FFF)
    fields = struct.pack("<3I", *masks) if masks else b""
    header = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, 16, 3 if masks else 0, 0, 0, 0, 0, 0)
    return (
        b"BM" + struct.pack("<IHHI", 0, 0, 0, 54 + len(fields)) + header + fields + rows.tobytes()
    )


TIFF_COMPRESSIONS = ["raw", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits"]
EXACT = {
    "png 16": lambda: png16(sixteen(3), 2),
    "png 16 alpha": lambda: png16(np.concatenate([sixteen(3), sixteen(1)], 2), 6),
    "png animated": lambda: animated("PNG"),
    "webp lossless": lambda: encoded(rgb(), "WEBP", lossless=True),
    "webp lossless alpha": lambda: encoded(rgba(), "WEBP", lossless=True, exact=True),
    "webp animated": lambda: animated("WEBP", lossless=True),
    "bmp": lambda: encoded(rgb(), "BMP"),
    "bmp 555": bmp16,
    "bmp 555 by masks": lambda: bmp16((0x7C00, 0x3E0, 0x1F)),
    "bmp 565": lambda: bmp16((0xF800, 0x7E0, 0x1F)),
    "bmp alpha": lambda: encoded(rgba(), "BMP"),
    "bmp grey": lambda: encoded(grey(), "BMP"),
    "bmp palette": lambda: encoded(indexed(), "BMP"),
    "bmp bilevel": lambda: encoded(bilevel(), "BMP"),
    "tiff alpha": lambda: encoded(rgba(), "TIFF"),
    "tiff grey": lambda: encoded(grey(), "TIFF"),
    "tiff grey alpha": lambda: encoded(rgba().convert("LA"), "TIFF"),
    "tiff bilevel": lambda: encoded(bilevel(), "TIFF"),
    "tiff cmyk": lambda: encoded(rgb().convert("CMYK"), "TIFF"),
    "tiff palette": lambda: encoded(indexed(), "TIFF"),
    "tiff palette big": lambda: encoded(indexed(), "TIFF", big_tiff=True),
    "tiff palette alpha": lambda: encoded(indexed().convert("PA"), "TIFF"),
    "tiff palette lzw": lambda: encoded(indexed(), "TIFF", compression="tiff_lzw"),
    "tiff fax": lambda: encoded(bilevel(), "TIFF", compression="group4"),
    "tiff fax strips": lambda: encoded(bilevel(), "TIFF", compression="group4", strip_size=40),
    "tiff jpeg": lambda: encoded(rgb(), "TIFF", compression="jpeg"),
    "tiff jpeg strips": lambda: encoded(rgb(), "TIFF", compression="jpeg", strip_size=2000),
    "tiff jpeg ycbcr": lambda: encoded(rgb().convert("YCbCr"), "TIFF", compression="jpeg"),
    "tiff jpeg grey": lambda: encoded(grey(), "TIFF", compression="jpeg"),
    "tiff jpeg cmyk": lambda: encoded(rgb().convert("CMYK"), "TIFF", compression="jpeg"),
    "tiff pages": lambda: animated("TIFF"),
    "tiff big": lambda: encoded(rgb(), "TIFF", big_tiff=True),
    "gif": lambda: encoded(indexed(), "GIF"),
    "gif interlaced": lambda: encoded(indexed(), "GIF", interlace=True),
    "gif transparent": lambda: encoded(indexed(), "GIF", transparency=3),
    "gif grey": lambda: encoded(grey(), "GIF"),
    "gif animated": lambda: animated("GIF"),
    "ppm": lambda: encoded(rgb(), "PPM"),
    "pgm": lambda: encoded(grey(), "PPM"),
    "pbm": lambda: encoded(bilevel(), "PPM"),
    "pbm text": lambda: (
        b"P1 %d %d\n" % (WIDTH, HEIGHT)
        + b" ".join(b"%d" % bit for bit in np.asarray(bilevel()).ravel())
    ),
    "ppm text": lambda: pnm(3, photo(HEIGHT, WIDTH)),
    "pgm text": lambda: pnm(2, photo(HEIGHT, WIDTH)[..., 0]),
    "ppm 16": lambda: pnm(6, sixteen(3), 65_535),
    **{
        f"ppm to {most}": lambda most=most: pnm(6, photo(HEIGHT, WIDTH), most)
        for most in (1, 2, 7, 34, 100, 254)
    },
    "pgm to 34": lambda: pnm(5, photo(HEIGHT, WIDTH)[..., 0], 34),
} | {
    f"tiff {compression}": lambda compression=compression: encoded(
        rgb(), "TIFF", compression=compression
    )
    for compression in TIFF_COMPRESSIONS
}


def test_files_of_any_name_become_pillows_pixels_in_one_batch(make_loader, tmp_path, device):
    datas = [make() for make in EXACT.values()]
    paths = []
    for number, data in enumerate(datas):
        paths.append(tmp_path / f"{number}.jpg")
        paths[-1].write_bytes(data)
    loader = make_loader(
        forebay.FileList(paths),
        transforms=[T.CenterCrop((HEIGHT, WIDTH))],
        batch_size=len(paths),
        device=device,
    )
    images = next(iter(loader)).permute(0, 2, 3, 1).cpu().numpy()
    for name, image, data in zip(EXACT, images, datas, strict=True):
        np.testing.assert_array_equal(image, pillow_rgb(data), err_msg=name)
    crops = ops.decode_resized_crop(
        [encoded_tensor(data) for data in datas],
        torch.tensor([[7, 5, 37, 25]] * len(datas)),
        size=(20, 30),
    )
    for name, crop, data in zip(EXACT, crops, datas, strict=True):
        expected = pillow_rgb(data)[5:25, 7:37]
        np.testing.assert_array_equal(crop.permute(1, 2, 0), expected, err_msg=name)


@pytest.mark.parametrize("quality", [1, 30, 75, 100])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (16, 16), (37, 53), (130, 257)])
@pytest.mark.parametrize("alpha", [False, True])
def test_lossy_webp_is_exact_too(quality, size, alpha):
    image = Image.fromarray(photo(*size))
    if alpha:
        image.putalpha(Image.fromarray(photo(*size, 1)[..., 0]))
    data = encoded(image, "WEBP", quality=quality)
    decoded = ops.decode_image(encoded_tensor(data)).permute(1, 2, 0)
    np.testing.assert_array_equal(decoded, pillow_rgb(data))


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_grey_of_16_bits_is_the_high_byte(kind):
    """Pillow clips all above 255 to white, which leaves nothing of most pictures."""
    pixels = sixteen(1)[..., 0]
    data = encoded(Image.fromarray(pixels), kind)
    for channel in ops.decode_image(encoded_tensor(data)):
        np.testing.assert_array_equal(channel, pixels >> 8)


def test_a_png_without_its_palette_has_indices_only():
    data = encoded(indexed(), "PNG")
    start = data.index(b"PLTE") - 4
    data = data[:start] + data[start + 12 + int.from_bytes(data[start : start + 4], "big") :]
    for mode in ("RGB", "GRAY", "RGB_ALPHA"):
        with pytest.raises(ValueError, match="Missing palette"):
            ops.decode_image(encoded_tensor(data), mode=mode)
    stored = ops.decode_image(encoded_tensor(data), mode="UNCHANGED")
    np.testing.assert_array_equal(stored[0], np.asarray(indexed()))


def test_half_a_tiff_is_truncated():
    data = encoded(rgb(), "TIFF")
    with pytest.raises(ValueError, match="truncated"):
        ops.decode_image(encoded_tensor(data[: len(data) // 2]))


def test_grey_of_16_bits_of_a_pnm_is_rounded_as_colour():
    data = pnm(5, sixteen(1), 65_535)
    stored = ops.decode_image(encoded_tensor(data), mode="UNCHANGED")
    assert stored.dtype == torch.uint16
    np.testing.assert_array_equal(stored[0], np.asarray(Image.open(io.BytesIO(data))))
    rounded = (stored[0].to(torch.int32) + 128) // 257
    for channel in ops.decode_image(encoded_tensor(data)):
        np.testing.assert_array_equal(channel, rounded)


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        (b"P6 20 20 255\n" + bytes(1199), ValueError, "truncated"),
        (b"P6 900 900 255\n" + bytes(9), ValueError, "truncated: 24 bytes for 900x900 pixels"),
        (b"P6 60000 60000 255\n", ValueError, "exceed the limit"),
        (b"P4 9 2\n\0\0\0", ValueError, "truncated"),
        (b"P2 3 1 255\n1 2", ValueError, "truncated|damaged PNM"),
        (b"P3 1 1 255\n1 2 x", ValueError, "damaged PNM"),
        (b"P5 0 3 255\n", ValueError, "damaged PNM: size 0x3"),
        (b"P5 3 3 0\n" + bytes(9), ValueError, "damaged PNM"),
        (b"P5 3 3 70000\n" + bytes(18), ValueError, "damaged PNM"),
        (b"P7\nWIDTH 1\n", NotImplementedError, "PAM is not decoded"),
    ],
)
def test_broken_maps_are_told(data, error, words):
    with pytest.raises(error, match=words):
        ops.decode_image(encoded_tensor(data))


@pytest.mark.parametrize("kind", ["WEBP", "PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied(kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    save = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(rgb(), kind, exif=exif, **save)
    plain = ops.decode_image(encoded_tensor(data), orientation="ignore")
    np.testing.assert_array_equal(plain.permute(1, 2, 0), photo(HEIGHT, WIDTH))
    with Image.open(io.BytesIO(data)) as image:
        # Of a TIFF Pillow turns the pixels when it loads them, and takes the tag away.
        image.load()
        upright = np.asarray(ImageOps.exif_transpose(image))
    decoded = ops.decode_image(encoded_tensor(data)).permute(1, 2, 0)
    np.testing.assert_array_equal(decoded, upright)


@pytest.mark.parametrize("kind", ["WEBP", "BMP", "TIFF", "GIF"])
def test_half_a_file_is_a_bad_sample(make_loader, tmp_path, kind):
    data = encoded(rgb(), kind)
    half = data[: len(data) // 2]
    with pytest.raises(ValueError, match=r"truncated|damaged"):
        ops.decode_image(encoded_tensor(half))
    path = tmp_path / "half"
    path.write_bytes(half)
    for truncated in ("error", "accept"):
        loader = make_loader(forebay.FileList([path]), truncated=truncated)
        with pytest.raises(forebay.SampleError) as caught:
            next(iter(loader))
        assert caught.value.stage == "decode"


@pytest.mark.parametrize("kind", ["WEBP", "BMP", "TIFF", "GIF"])
def test_sizes_beyond_the_limit_are_refused(make_loader, tmp_path, kind):
    path = tmp_path / "large"
    path.write_bytes(encoded(rgb(), kind))
    pixels = HEIGHT * WIDTH
    loader = make_loader(forebay.FileList([path]), max_pixels=pixels - 1)
    with pytest.raises(forebay.SampleError, match=f"limit of {pixels - 1}; raise max_pixels"):
        next(iter(loader))


@pytest.mark.parametrize(
    ("save", "reason"),
    [
        ({"compression": "group3"}, "TIFF with CCITT group 3 compression"),
        ({"compression": "tiff_ccitt"}, "TIFF with CCITT modified Huffman compression"),
    ],
)
def test_tiff_that_is_not_decoded_is_named(save, reason):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = encoded(bilevel(), "TIFF", **save)
    with pytest.raises(NotImplementedError, match=reason):
        ops.decode_image(encoded_tensor(data))
