"""PIX-2: pixels equal torchvision v2's on uint8 tensors, antialias on, within 1 of 255."""

import io
import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

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
            upright = ImageOps.exif_transpose(Image.open(io.BytesIO(data)).convert("RGB"))
            expected = V.Compose(peer)(F.pil_to_tensor(upright))
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


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("padding", [3, (5, 2), (1, 0, 7, 4)])
def test_pad_is_exact(compare, padding, mode):
    own, peer = T.Pad(padding, 9, mode), V.Pad(padding, 9, mode)
    compare([own, T.CenterCrop(40)], [peer, V.CenterCrop(40)], 0)
    # In the middle of other geometry, some of which needs passes of its own.
    flip, flipped = T.RandomHorizontalFlip(1), V.RandomHorizontalFlip(1)
    compare([T.CenterCrop(16), flip, own], [V.CenterCrop(16), flipped, peer], 0)
    compare([T.CenterCrop(16), own, flip, own], [V.CenterCrop(16), peer, flipped, peer], 0)
    own_resize = T.Resize((20, 24), interpolation="nearest")
    peer_resize = V.Resize((20, 24), interpolation=V.InterpolationMode.NEAREST)
    compare([own_resize, own, own_resize], [peer_resize, peer, peer_resize], 0)
    turned = [T.CenterCrop(250), own, T.CenterCrop(300), T.RandomInvert(1)]
    peers = [V.CenterCrop(250), peer, V.CenterCrop(300), V.RandomInvert(1)]
    compare(turned, peers, 0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_padding_follows_the_orientation(compare, orientation):
    own, peer = T.Pad((5, 2, 0, 7), padding_mode="reflect"), V.Pad((5, 2, 0, 7), 0, "reflect")
    compare(
        [own, T.CenterCrop(60)],
        [peer, V.CenterCrop(60)],
        0,
        lambda pixels: jpeg(pixels, quality=100, subsampling=0, orientation=orientation),
    )


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_random_crops_of_padded_images_are_parts_of_them(make_loader, tmp_path, mode):
    path = tmp_path / "photo.png"
    path.write_bytes(png(photo(12, 9)))
    crop = T.RandomCrop((14, 10), padding=(1, 2, 3, 4), fill=5, padding_mode=mode)
    [images] = make_loader(forebay.FileList([path] * 400), transforms=[crop], batch_size=400)
    image = torch.from_numpy(pillow_rgb(path.read_bytes()).copy()).permute(2, 0, 1)
    padded = F.pad(image, [1, 2, 3, 4], fill=5, padding_mode=mode)
    parts = padded.unfold(1, 14, 1).unfold(2, 10, 1).permute(1, 2, 0, 3, 4).flatten(0, 1)
    places = Counter(int((parts == each).flatten(1).all(1).nonzero()[0]) for each in images)
    assert len(places) == len(parts) == 5 * 4
    assert all(4 <= count <= 45 for count in places.values())


def test_what_cannot_be_mirrored_is_a_bad_sample(make_loader, tmp_path):
    path = tmp_path / "photo.png"
    path.write_bytes(png(photo(4, 9)))
    for mode, fits in [("reflect", 3), ("symmetric", 4)]:
        for padding in (fits, fits + 1):
            recipe = [T.Pad(padding, padding_mode=mode), T.CenterCrop(8)]
            batches = iter(make_loader(forebay.FileList([path]), transforms=recipe))
            if padding == fits:
                next(batches)
            else:
                with pytest.raises(forebay.SampleError, match=f"{mode}.*sides of at least 5"):
                    next(batches)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("place", ["pixels", "floats", "normalised"])
def test_erased_parts_hold_the_value_and_the_rest_is_as_it_was(
    make_loader, tmp_path, place, memory_format
):
    path = tmp_path / "photo.png"
    path.write_bytes(png(photo(40, 50)))
    erase = T.RandomErasing(0.7, value=(3, 100, 255) if place == "pixels" else (0.5, -2, 0))
    steps = [T.CenterCrop((30, 36)), T.ToDtype(torch.float16, scale=True)]
    steps.append(T.Normalize((0.1, 0.2, 0.3), (0.5, 0.4, 0.3)))
    where = {"pixels": 1, "floats": 2, "normalised": 3}[place]

    def load(recipe, count):
        keywords = {"transforms": recipe, "batch_size": count, "memory_format": memory_format}
        return next(iter(make_loader(forebay.FileList([path] * count), **keywords)))[0:count]

    plain = load(steps, 1)[0]
    images = load([*steps[:where], erase, *steps[where:]], 300)
    value = torch.tensor(erase.value)
    if place == "pixels":
        value = value / 255
    if place != "normalised":
        value = (value - torch.tensor([0.1, 0.2, 0.3])) / torch.tensor([0.5, 0.4, 0.3])
    erased = 0
    for image in images:
        changed = (image != plain).any(0)
        if not changed.any():
            continue
        erased += 1
        rows, columns = changed.any(1).nonzero(), changed.any(0).nonzero()
        part = image[:, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        assert (part.float() - value[:, None, None]).abs().max() < 2e-3
        # Nothing outside: by how the part was found. Its size as drawn, but for rounding.
        height, width = part.shape[1:]
        assert 0.01 < height * width / (30 * 36) < 0.36 and 0.2 < height / width < 4.5
    assert 180 <= erased <= 240


def test_erasing_comes_last(make_loader):
    for recipe, words in [
        ([T.RandomErasing(), T.CenterCrop(8)], "after RandomErasing"),
        ([T.CenterCrop(8), T.RandomErasing(value=0.5)], "whole numbers"),
        ([T.CenterCrop(8), T.RandomApply([T.RandomErasing()])], "left to chance"),
    ]:
        with pytest.raises(ValueError, match=words):
            next(iter(make_loader(transforms=recipe)))
    with pytest.raises(ValueError, match=r'value="random" .* put it behind ToDtype'):
        make_loader(transforms=[T.CenterCrop(8), T.RandomErasing(value="random")])


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("place", ["floats", "normalised"])
def test_erased_parts_may_hold_normal_noise(make_loader, tmp_path, device, place, memory_format):
    path = tmp_path / "flat.png"
    path.write_bytes(png(flat(60, 60, 255)))
    mean, std = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 0.4, 0.3])
    steps = [T.CenterCrop(60), T.ToDtype(torch.float32, scale=True)]
    steps += [T.Normalize(mean.tolist(), std.tolist())]
    erase = T.RandomErasing(1, scale=(0.3, 0.3), value="random")
    steps.insert(2 if place == "floats" else 3, erase)
    loader = make_loader(
        forebay.FileList([path] * 40),
        transforms=steps,
        batch_size=40,
        memory_format=memory_format,
        device=device,
    )
    images = next(iter(loader)).cpu()
    background = ((1 - mean) / std)[:, None, None]
    erased = (images - background).abs().gt(1e-6).any(1)
    assert 0.25 < erased.float().mean() < 0.35
    noise = images.permute(0, 2, 3, 1)[erased]
    if place == "floats":
        noise = noise * std + mean
    count = noise.numel()
    assert count > 100_000
    # Kolmogorov-Smirnov's distance, at p = 0.01.
    values = noise.flatten().double().sort().values
    steps_of = torch.arange(count + 1, dtype=torch.float64) / count
    below = torch.special.ndtr(values)
    distance = torch.maximum((below - steps_of[:-1]).max(), (steps_of[1:] - below).max())
    assert distance < 1.63 / count**0.5
    # Channels and neighbours have nothing to do with each other; five times the deviation.
    pairs = (noise[:, [0, 1, 2]] * noise[:, [1, 2, 0]]).mean(0)
    neighbours = (noise[:-1] * noise[1:]).mean(0)
    assert torch.cat([pairs, neighbours]).abs().max() < 5 / len(noise) ** 0.5
    assert not torch.equal(images[0], images[1])


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
    (T.Grayscale(3), V.Grayscale(3)),
    (T.RandomGrayscale(1), V.RandomGrayscale(1)),
    (T.RandomInvert(1), V.RandomInvert(1)),
    (T.RandomAutocontrast(1), V.RandomAutocontrast(1)),
    (T.RandomEqualize(1), V.RandomEqualize(1)),
    *((T.RandomPosterize(bits, 1), V.RandomPosterize(bits, 1)) for bits in range(9)),
    *((T.RandomSolarize(at, 1), V.RandomSolarize(at, 1)) for at in (0, 0.5, 128, 200.2, 255)),
])  # fmt: skip
def test_fixed_flips_and_colors(compare, own, peer):
    tolerance = 1 if isinstance(own, T.ColorJitter) else 0
    compare([T.CenterCrop(24), own], [V.CenterCrop(24), peer], tolerance)
    # Over padding, which is coloured, too.
    compare([T.CenterCrop(90), own], [V.CenterCrop(90), peer], tolerance)


@pytest.mark.parametrize("name", ["RandomAutocontrast", "RandomEqualize"])
def test_levels_of_flat_narrow_and_tiny_images(make_loader, tmp_path, name):
    """Where there is nothing to stretch, or few values, or fewer pixels than values."""
    narrow = photo(30, 40) // 16 + 100
    two = np.where(photo(30, 40) > 128, 7, 9).astype(np.uint8)
    channels = np.stack([narrow[..., 0], flat(30, 40, 3)[..., 0], two[..., 2]], -1)
    for number, pixels in enumerate([flat(30, 40, 77), narrow, two, channels]):
        for size in [(30, 40), (2, 3), (1, 1)]:
            path = tmp_path / f"{number}.png"
            path.write_bytes(png(pixels))
            own = [T.CenterCrop(size), getattr(T, name)(1), getattr(T, name)(1)]
            [[image]] = make_loader(forebay.FileList([path]), transforms=own)
            peer = V.Compose([V.CenterCrop(size), getattr(V, name)(1), getattr(V, name)(1)])
            assert torch.equal(image, peer(torch.from_numpy(pixels).permute(2, 0, 1)))


def test_photometric_distortion_takes_every_form(make_loader, tmp_path):
    """Which changes, in which order, with which channels: all that torchvision may draw."""
    path = tmp_path / "photo.png"
    path.write_bytes(png(photo(16, 16)))
    image = torch.from_numpy(pillow_rgb(path.read_bytes()).copy()).permute(2, 0, 1)
    fixed = {"brightness": (1.1, 1.1), "contrast": (0.7, 0.7), "saturation": (1.3, 1.3)}
    distort = T.RandomPhotometricDistort(**fixed, hue=(0.04, 0.04))
    source = forebay.FileList([path] * 1500)
    [images] = make_loader(source, transforms=[T.CenterCrop(16), distort], batch_size=1500)
    names, peers = [], []
    steps = [
        lambda image: F.adjust_brightness(image, 1.1),
        lambda image: F.adjust_contrast(image, 0.7),
        lambda image: F.adjust_saturation(image, 1.3),
        lambda image: F.adjust_hue(image, 0.04),
    ]
    for chosen in range(16):
        for order in ([0, 1, 2, 3], [0, 2, 3, 1]):
            changed = image
            for step in order:
                changed = steps[step](changed) if chosen >> step & 1 else changed
            for channels in itertools.permutations(range(3)):
                names.append((chosen, channels))
                peers.append(changed[list(channels)])
    stacked = torch.stack(peers).short()
    drawn: Counter = Counter()
    for each in images:
        differences = (stacked - each.short()).abs().flatten(1).amax(1)
        nearest = int(differences.argmin())
        # One of 255 for each change.
        assert differences[nearest] <= 4
        drawn[names[nearest]] += 1
    # Every second image keeps its channels, and one in six others draws that order, too.
    kept = sum(count for (_, channels), count in drawn.items() if channels == (0, 1, 2))
    assert 750 <= kept <= 1000
    by_choice: Counter = Counter()
    for (chosen, _), count in drawn.items():
        by_choice[chosen] += count
    assert len(by_choice) == 16 and all(50 <= count <= 150 for count in by_choice.values())


def test_the_table_of_parity_is_written_and_sees_differences(tmp_path, monkeypatch, capsys):
    parity = pytest.importorskip("parity")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(jpeg(photo(60, 50)))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- parity:begin -->\nold\n<!-- parity:end -->\nafter\n")
    arguments = ["parity.py", str(tmp_path / "photos"), "--write", str(page)]
    monkeypatch.setattr("sys.argv", arguments)
    monkeypatch.setattr(parity, "cases", lambda: [parity.same(0, "flip", "RandomInvert", p=1)])
    assert parity.main() == 0
    written = page.read_text()
    assert written.startswith("before\n") and written.endswith("after\n") and "old" not in written
    assert "1 photos, " in written and "| flip | 0 | 0.0000 | 0 |" in written
    wrong = parity.Case("wrong", T.RandomInvert(1), V.RandomSolarize(128, p=1), 3)
    monkeypatch.setattr(parity, "cases", lambda: [wrong])
    assert parity.main() == 1
    assert "beyond their bounds: wrong" in capsys.readouterr().err
