"""Formats, colours and orientations through the Loader: Pillow's pixels, whatever the name."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

import forebay
from forebay import ops
from forebay import transforms as T
from images import jpeg, photo, pillow_rgb, png
from sampled import sampled_jpeg

HEIGHT, WIDTH = 20, 30
WHOLE = T.CenterCrop((HEIGHT, WIDTH))


@pytest.fixture
def load(make_loader, tmp_path, device):
    """The pixels (H, W, 3) of each file, from one batch."""

    def load(datas, transforms=(WHOLE,), **keywords):
        paths = []
        for number, data in enumerate(datas):
            paths.append(tmp_path / f"{number}.img")
            paths[-1].write_bytes(data)
        keywords = {"transforms": transforms, "batch_size": len(paths), "device": device} | keywords
        images = next(iter(make_loader(forebay.FileList(paths), **keywords)))
        return images.permute(0, 2, 3, 1).cpu().numpy()

    return load


def tensor(data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def encoded(image, kind, **save):
    buffer = io.BytesIO()
    image.save(buffer, kind, **save)
    return buffer.getvalue()


def test_t04_png_bytes_in_a_file_named_jpeg(make_loader, tmp_path):
    folder = tmp_path / "n02105855"
    folder.mkdir()
    pixels = photo(HEIGHT, WIDTH)
    (folder / "n02105855_2933.JPEG").write_bytes(png(pixels))
    (folder / "n02105855_2934.png").write_bytes(jpeg(pixels))
    source = forebay.ImageFolder(tmp_path)
    images, labels = next(iter(make_loader(source, transforms=[WHOLE], batch_size=2)))
    images = images.permute(0, 2, 3, 1).numpy()
    np.testing.assert_array_equal(images[0], pixels)
    np.testing.assert_array_equal(images[1], pillow_rgb(jpeg(pixels)))
    assert labels.tolist() == [0, 0]


MODES = ["L", "RGB", "RGBA", "LA", "1", "P"]


def test_t14_png_modes_in_one_batch_become_rgb(load):
    picture = Image.fromarray(photo(HEIGHT, WIDTH))
    alpha = Image.fromarray(photo(HEIGHT, WIDTH, 1)[..., 0])
    datas = []
    for mode in MODES:
        image = picture.convert(mode)
        if mode.endswith("A"):
            image.putalpha(alpha)  # RGB is kept as stored, transparent or not
        datas.append(encoded(image, "PNG"))
    indexed = picture.convert("P")
    datas.append(encoded(indexed, "PNG", transparency=5))
    images = load(datas)
    assert images.shape == (len(datas), HEIGHT, WIDTH, 3)
    for image, data in zip(images, datas, strict=True):
        np.testing.assert_array_equal(image, pillow_rgb(data))


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_modes_become_rgb(load, mode, progressive):
    image = Image.fromarray(photo(HEIGHT, WIDTH)).convert(mode)
    data = encoded(image, "JPEG", quality=90, progressive=progressive)
    np.testing.assert_allclose(load([data])[0], pillow_rgb(data), atol=1, rtol=0)


def adobe(data, transform):
    """The same JPEG with another transform in its APP14 segment, or without the segment."""
    at = data.index(b"Adobe")
    if transform is None:
        length = int.from_bytes(data[at - 2 : at], "big")
        return data[: at - 4] + data[at - 2 + length :]
    return data[: at + 11] + bytes([transform]) + data[at + 12 :]


@pytest.mark.parametrize("transform", [0, None])
def test_t13_cmyk_is_what_pillow_makes_of_it(load, transform):
    inks = Image.new("CMYK", (WIDTH, HEIGHT), (200, 40, 10, 30))
    data = adobe(encoded(inks, "JPEG", quality=100), transform)
    for image in (load([data])[0], ops.decode_image(tensor(data)).permute(1, 2, 0).numpy()):
        np.testing.assert_allclose(image.reshape(-1, 3) - [[49.0, 190, 216]], 0, atol=1)
        np.testing.assert_allclose(image, pillow_rgb(data), atol=1, rtol=0)


def test_t13_ycck_is_not_inverted(load):
    """As Adobe stores it, Y, Cb and Cr of the inks and K inverted: the same picture as CMYK's."""
    cyan, magenta, yellow, black = 200, 40, 10, 30
    luma = 0.299 * cyan + 0.587 * magenta + 0.114 * yellow
    ycck = [luma, 128 + (yellow - luma) / 1.772, 128 + (cyan - luma) / 1.402, 255 - black]
    # Pillow inverts what it writes, so values that are inverted here are stored as they are meant.
    values = tuple(255 - round(value) for value in ycck)
    image = Image.new("CMYK", (WIDTH, HEIGHT), values)
    data = adobe(encoded(image, "JPEG", quality=100), 2)
    np.testing.assert_allclose(load([data])[0].reshape(-1, 3) - [[49.0, 190, 216]], 0, atol=1)
    np.testing.assert_allclose(load([data])[0], pillow_rgb(data), atol=1, rtol=0)


CORNERS = [(1, 0), (230, 0), (229, 225), (0, 226), (1, 0), (0, 226), (229, 225), (230, 0)]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_t11_orientation(make_loader, tmp_path, device, orientation):
    y, x = np.mgrid[0:16, 0:24]
    pixels = np.stack([10 * x, 15 * y, np.zeros_like(x)], axis=2).astype(np.uint8)
    data = jpeg(pixels, quality=100, subsampling=0, orientation=orientation)
    (tmp_path / "a.jpg").write_bytes(data)

    def image(size, **keywords):
        loader = make_loader(
            forebay.FileList([tmp_path / "a.jpg"]),
            transforms=[T.CenterCrop(size)],
            fields=("image", "size"),
            device=device,
            **keywords,
        )
        images, sizes = next(iter(loader))
        return images[0].cpu(), tuple(sizes[0].tolist())

    upright = (16, 24) if orientation <= 4 else (24, 16)
    got, size = image(upright)
    assert size == upright
    np.testing.assert_allclose(got[:2, 0, 0], CORNERS[orientation - 1], atol=2)
    assert torch.equal(got, ops.decode_image(tensor(data)))
    got, size = image((16, 24), orientation="ignore")
    assert size == (16, 24)
    assert torch.equal(got, ops.decode_image(tensor(data), orientation="ignore"))
    np.testing.assert_array_equal(got.permute(1, 2, 0), pillow_rgb(data))


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_t18_a_crop_equals_the_crop_of_the_whole(
    make_loader, tmp_path, device, subsampling, progressive
):
    """Odd crops on borders that belong to no MCU, chroma edges included (PIX-1)."""
    data = jpeg(photo(131, 173), subsampling=subsampling, progressive=progressive)
    path = tmp_path / "a.jpg"
    path.write_bytes(data)
    whole = torch.from_numpy(pillow_rgb(data).copy()).permute(2, 0, 1)
    for height, width in [(1, 1), (3, 5), (17, 31), (33, 16), (64, 172), (129, 8), (131, 173)]:
        loader = make_loader(
            forebay.FileList([path]),
            transforms=[T.CenterCrop((height, width))],
            num_workers=0,
            device=device,
        )
        top, left = round((131 - height) / 2.0), round((173 - width) / 2.0)
        expected = whole[:, top : top + height, left : left + width]
        assert torch.equal(next(iter(loader))[0].cpu(), expected), (height, width)


@pytest.mark.parametrize("kind", ["JPEG2000", "AVIF"])
def test_other_formats_are_refused_by_name(make_loader, tmp_path, kind):
    try:
        data = encoded(Image.fromarray(photo(16, 16)), kind)
    except (KeyError, OSError):
        pytest.skip(f"this Pillow cannot write {kind}")
    path = tmp_path / "a.jpg"
    path.write_bytes(data)
    name = {"JPEG2000": "JPEG 2000"}.get(kind, kind)
    with pytest.raises(forebay.SampleError, match=f"{name} is not decoded") as caught:
        next(iter(make_loader(forebay.FileList([path]))))
    assert caught.value.stage == "decode"
    with pytest.raises(NotImplementedError, match=f"{name} is not decoded"):
        ops.decode_image(tensor(data))


@pytest.mark.parametrize("encode", [jpeg, png])
def test_an_accepted_truncated_file_is_counted(make_loader, tmp_path, encode, device):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    data = encode(photo(60, 80))
    whole.write_bytes(data)
    cut.write_bytes(data[: len(data) // 2])
    recipe = [T.CenterCrop((60, 80))]
    # libjpeg warns more than once.
    for paths, least in (([whole] * 3, 0), ([whole, cut, cut], 2)):
        loader = make_loader(
            forebay.FileList(paths), transforms=recipe, truncated="accept", device=device
        )
        images = torch.cat(list(loader))
        assert least <= loader.stats()["warnings"] <= 3 * least
        assert torch.equal(images[0, :, :6], images[-1, :, :6]), "what is there"
    assert not torch.equal(images[0], images[-1])
    with pytest.raises(forebay.SampleError, match=r"truncated|ends early"):
        next(iter(make_loader(forebay.FileList([cut]), transforms=recipe)))


SAMPLINGS = {
    "4:1:1": [(4, 1), (1, 1), (1, 1)],
    "4:4:0": [(1, 2), (1, 1), (1, 1)],
    "4:1:0": [(4, 2), (1, 1), (1, 1)],
    "luma below chroma": [(1, 1), (2, 1), (2, 1)],
    "luma below chroma, both ways": [(1, 1), (2, 2), (2, 2)],
    "one chroma below the other": [(2, 2), (2, 1), (1, 1)],
    "each its own": [(2, 1), (1, 2), (1, 1)],
    "as large as an MCU may be": [(2, 4), (1, 1), (1, 1)],
    "all alike": [(2, 2), (1, 1), (2, 2)],
}


@pytest.mark.parametrize("name", SAMPLINGS)
def test_t07_any_sampling_is_pillows_or_refused(load, name):
    data = sampled_jpeg(93, 61, SAMPLINGS[name])
    with Image.open(io.BytesIO(data)) as image:
        whole = np.asarray(image.convert("RGB"))
    assert whole.std() > 10, "a picture"
    [got] = load([data], [T.CenterCrop((61, 93))])
    np.testing.assert_array_equal(got, whole)
    [part] = load([data], [T.Crop(20, 30, 17, 41)])
    np.testing.assert_array_equal(part, whole[20:37, 30:71])


def test_t07_a_ratio_that_is_no_whole_number_is_refused(load):
    data = sampled_jpeg(93, 61, [(3, 1), (2, 1), (1, 1)])
    refused = r"this kind of JPEG \(Fractional sampling not implemented yet\) is not decoded"
    with pytest.raises(forebay.SampleError, match=refused):
        load([data])


class TestFidelity:
    """``fidelity="fast"``: JPEGs decoded at a fraction of their size."""

    @pytest.fixture
    def photos(self, tmp_path):
        """Three JPEGs of 1200x900 pixels, the last one turned, and a PNG."""
        data = photo(900, 1200)
        turned = Image.Exif()
        turned[0x0112] = 6
        files = {
            "444.jpg": encoded(Image.fromarray(data), "JPEG", quality=92, subsampling=0),
            "progressive.jpg": encoded(Image.fromarray(data), "JPEG", quality=92, progressive=True),
            "turned.jpg": encoded(Image.fromarray(data), "JPEG", quality=92, exif=turned),
            "photo.png": png(data),
        }
        for name, bytes_of in files.items():
            (tmp_path / name).write_bytes(bytes_of)
        return forebay.FileList([tmp_path / name for name in files])

    @pytest.fixture
    def values(self, make_loader, photos, device):
        """Values of 0 to 255 (4, 3, H, W) by keyword."""

        def values(transforms, **keywords):
            loader = make_loader(
                photos, transforms=transforms, batch_size=4, device=device, **keywords
            )
            return next(iter(loader)).cpu().int()

        return values

    @pytest.mark.parametrize("transforms", [[T.RandomResizedCrop(64)], [T.Resize((60, 80))]])
    def test_values_are_near_those_of_all_pixels(self, values, transforms, device):
        full, fast = values(transforms), values(transforms, fidelity="fast")
        differences = (full - fast).abs()
        assert differences.float().mean() < 1.5
        assert (differences <= 16).float().mean() >= 0.999
        assert differences[3].max() == 0, "a PNG has no fraction"
        if device == "cpu":
            changed = differences[:3].flatten(1).any(1)
            assert changed.all(), "decoded whole"
        else:
            assert differences.max() == 0

    def test_one_resize_by_less_than_three_is_exact(self, values):
        transforms = [T.Resize((301, 401))]
        assert torch.equal(values(transforms), values(transforms, fidelity="fast"))

    def test_batches_repeat(self, values):
        transforms = [T.RandomResizedCrop(64), T.ColorJitter(0.3, 0.3, 0.3, 0.1)]
        first = values(transforms, fidelity="fast", num_workers=1)
        assert torch.equal(first, values(transforms, fidelity="fast", num_workers=4))
