"""Turns, shears, tilts, sharpness, blurs and automatic augmentations equal torchvision v2's."""

import io
import itertools
import math
from collections import Counter

import pytest
import torch
from PIL import Image

import forebay
from forebay import transforms as T
from images import jpeg, photo, png

V = pytest.importorskip("torchvision.transforms.v2")
F = V.functional
SIZES = [(37, 53), (64, 64), (120, 81), (31, 200), (2, 3), (1, 1)]
FILLS = [None, 0, (9, 100, 255)]
# Weights of a row and a column are rounded one after the other; torchvision rounds once.
BLUR = 1


@pytest.fixture
def load(make_loader, tmp_path):
    """Batches of one image each, and the pixels that they are made of."""

    def load(recipe, sizes=SIZES, copies=1):
        paths, pixels = [], []
        for number, size in enumerate(sizes):
            data = png(photo(*size, seed=number))
            path = tmp_path / f"{number}.png"
            path.write_bytes(data)
            paths += [path] * copies
            pixels += [F.pil_to_tensor(Image.open(io.BytesIO(data)).convert("RGB"))] * copies
        recipe = [*recipe, T.CenterCrop(150)]
        loader = make_loader(forebay.FileList(paths), transforms=recipe, batch_size=1)
        images = [batch[0] for batch in loader]
        assert len(images) == len(pixels)
        return images, pixels

    return load


def mode(name):
    return V.InterpolationMode(name)


def framed(image):
    return F.center_crop(image, [150, 150])


def equal(got, expected):
    assert all(map(torch.equal, got, map(framed, expected)))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("angle", [0, 33.3, 90, -90, 135.5, 180, 270, 359])
def test_rotation_is_exact(load, angle, expand, fill, interpolation):
    own = T.RandomRotation((angle, angle), interpolation, expand, fill=fill)
    got, pixels = load([own])
    expected = [F.rotate(image, angle, mode(interpolation), expand, fill=fill) for image in pixels]
    equal(got, expected)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("center", [None, (3.5, 20)])
def test_affine_is_exact(load, center, fill, interpolation):
    cases = [(0, 1, 0, 0), (20, 1.3, 10, 0), (-70, 0.6, -25, 15), (5, 1, 0, -40)]
    for angle, scale, across, down in cases:
        shear = (across, across, down, down)
        own = T.RandomAffine(
            (angle, angle), None, (scale, scale), shear, interpolation, fill, center
        )
        got, pixels = load([own])
        equal(
            got,
            [
                F.affine(
                    image,
                    angle,
                    [0, 0],
                    scale,
                    [across, down],
                    mode(interpolation),
                    fill,
                    center and list(center),
                )
                for image in pixels
            ],
        )


def test_translations_are_whole_pixels_in_range(load):
    sizes = [(20, 30)]
    got, pixels = load([T.RandomAffine(0, translate=(0.1, 0.2))], sizes, copies=300)
    moves = {
        (x, y): framed(F.affine(pixels[0], 0, [x, y], 1, [0, 0], fill=0))
        for x, y in itertools.product(range(-3, 4), range(-4, 5))
    }
    seen = Counter(
        next(move for move, moved in moves.items() if torch.equal(image, moved)) for image in got
    )
    assert len(seen) > 50, "of 63"
    ends = sum(count for (x, _), count in seen.items() if abs(x) == 3)
    assert 20 < ends < 90, "half as many as others: rounded"


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("fill", FILLS)
def test_perspective_is_exact(load, fill, interpolation):
    """Every corner goes one pixel in, at most, in either direction."""
    width, height = 9, 8
    own = T.RandomPerspective(0.3, 1, interpolation, fill)
    got, pixels = load([own], [(height, width)], copies=60)
    right, bottom = width - 1, height - 1
    corners = [[0, 0], [right, 0], [right, bottom], [0, bottom]]
    inwards = [(1, 1), (-1, 1), (-1, -1), (1, -1)]
    possible = []
    for moves in itertools.product([0, 1], repeat=8):
        ends = [
            [x + across * moves[2 * i], y + down * moves[2 * i + 1]]
            for i, ((x, y), (across, down)) in enumerate(zip(corners, inwards, strict=True))
        ]
        possible.append(F.perspective(pixels[0], corners, ends, mode(interpolation), fill))
    for image in got:
        assert any(torch.equal(image, framed(candidate)) for candidate in possible)
    assert len({image.numpy().tobytes() for image in got}) > 30


@pytest.mark.parametrize("fill", FILLS)
def test_tilts_beyond_the_horizon_are_torchvisions(load, fill):
    """Corners anywhere in a tiny image: some of its pixels lie nowhere at all."""
    got, pixels = load([T.RandomPerspective(1, 1, fill=fill)], [(3, 3)], copies=200)
    possible = {framed(pixels[0]).numpy().tobytes()}  # corners that fall together
    corners = [[0, 0], [2, 0], [2, 2], [0, 2]]
    for moves in itertools.product([0, 1], repeat=8):
        ends = [
            [abs(x - moves[2 * i]), abs(y - moves[2 * i + 1])] for i, (x, y) in enumerate(corners)
        ]
        try:
            made = F.perspective(pixels[0], corners, ends, mode("bilinear"), fill)
        except RuntimeError:
            continue
        possible.add(framed(made).numpy().tobytes())
    assert all(image.numpy().tobytes() in possible for image in got)


def test_a_turn_makes_no_more_pixels_than_an_image_may_have(load):
    with pytest.raises(forebay.SampleError, match=r"RandomRotation makes 2.*pixels"):
        load([T.RandomRotation((45, 45), expand=True)], [(1, 40_000)])


@pytest.mark.parametrize("factor", [0, 0.3, 1, 1.7, 6])
def test_sharpness_is_exact(load, factor):
    got, pixels = load([T.RandomAdjustSharpness(factor, 1)])
    equal(got, [F.adjust_sharpness(image, factor) for image in pixels])


@pytest.mark.parametrize(("kernel", "sigma"), [(3, 0.1), (5, 1.0), ((7, 1), 2.0), (23, 4.0)])
def test_gaussian_blur_is_within_one(load, kernel, sigma):
    sizes = [(37, 53), (64, 64), (120, 81), (12, 200)]
    got, pixels = load([T.GaussianBlur(kernel, sigma)], sizes)
    for image, original in zip(got, pixels, strict=True):
        sides = [kernel, kernel] if isinstance(kernel, int) else list(kernel)
        expected = framed(F.gaussian_blur(original, sides, [sigma, sigma])).int()
        difference = (image.int() - expected).abs()
        assert difference.max() <= BLUR and difference.float().mean() < 0.3


def test_a_blur_is_no_pass_of_its_own_where_it_need_not_be(make_loader):
    blur, turn = T.GaussianBlur(3), T.RandomRotation((5, 5))
    crop, flip = T.CenterCrop(20), T.RandomHorizontalFlip(1)
    for recipe, passes in (
        ([blur, crop], 1),
        ([crop, flip, blur, T.RandomInvert(1)], 1),
        ([T.Resize((20, 20)), blur], 2),
        ([crop, blur, blur], 2),
        ([crop, turn, blur], 2),
        ([crop, T.Pad(2), blur], 2),
    ):
        loader = make_loader(transforms=recipe)
        list(loader)
        stats = loader.stats()
        assert stats["passes"] == passes * stats["samples"] > 0, recipe


def test_a_kernel_larger_than_the_image_is_a_bad_sample(load):
    with pytest.raises(forebay.SampleError, match="kernel_size 23 needs sides of at least 12"):
        load([T.GaussianBlur(23)], [(11, 40)])


def test_other_steps_around_them_change_nothing(load):
    """Passes are split and merged; turned photos are told apart by their names elsewhere."""
    recipes = [
        (
            [T.Resize((60, 50)), T.RandomRotation((30, 30)), T.RandomHorizontalFlip(1)],
            [V.Resize((60, 50)), V.RandomRotation((30, 30)), V.RandomHorizontalFlip(1)],
        ),
        (
            [T.RandomVerticalFlip(1), T.RandomAdjustSharpness(2, 1), T.RandomInvert(1)],
            [V.RandomVerticalFlip(1), V.RandomAdjustSharpness(2, 1), V.RandomInvert(1)],
        ),
        (
            [T.RandomEqualize(1), T.RandomRotation((9, 9)), T.RandomAutocontrast(1)],
            [V.RandomEqualize(1), V.RandomRotation((9, 9)), V.RandomAutocontrast(1)],
        ),
        (
            [T.CenterCrop(90), T.RandomAdjustSharpness(0, 1), T.RandomRotation((5, 5)), T.Pad(3)],
            [V.CenterCrop(90), V.RandomAdjustSharpness(0, 1), V.RandomRotation((5, 5)), V.Pad(3)],
        ),
    ]
    for own, peer in recipes:
        got, pixels = load(own, SIZES[:4])
        for image, original in zip(got, pixels, strict=True):
            difference = (image.int() - framed(V.Compose(peer)(original)).int()).abs()
            # A pixel that a resize rounds the other way may be moved anywhere.
            assert difference.max() <= (1 if isinstance(own[0], T.Resize) else 0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_photo_is_turned_first(make_loader, tmp_path, orientation):
    data = jpeg(photo(30, 44), quality=100, subsampling=0, orientation=orientation)
    path = tmp_path / "turned.jpg"
    path.write_bytes(data)
    recipe = [T.RandomRotation((20, 20)), T.CenterCrop(30)]
    image = next(iter(make_loader(forebay.FileList([path]), transforms=recipe, batch_size=1)))[0]
    upright = forebay.ops.decode_image(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    expected = V.Compose([V.RandomRotation((20, 20)), V.CenterCrop(30)])(upright)
    assert torch.equal(image, expected)


def applied(augmentation, image, place, bins):
    """What each of torchvision's transforms makes of the image, with either sign."""
    found = {}
    height, width = image.shape[-2:]
    for name, (magnitudes, signed) in augmentation._AUGMENTATION_SPACE.items():
        scale = magnitudes(bins, height, width)
        magnitude = 0.0 if scale is None else float(scale[place])
        for sign in (1, -1) if signed else (1,):
            found[name, sign] = augmentation._apply_image_or_video_transform(
                image, name, sign * magnitude, augmentation.interpolation, augmentation._fill
            )
    return found


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("fill", FILLS)
def test_every_form_of_randaugment_is_torchvisions(load, fill, interpolation):
    size = (41, 60)
    for place in (0, 9, 30):
        own = T.RandAugment(1, place, 31, interpolation, fill)
        got, pixels = load([own], [size], copies=150)
        peer = V.RandAugment(1, place, 31, mode(interpolation), fill)
        forms = {name: framed(of) for name, of in applied(peer, pixels[0], place, 31).items()}
        seen = set()
        for image in got:
            equals = {name for name, form in forms.items() if torch.equal(form, image)}
            assert equals, "none of torchvision's"
            seen |= equals
        assert seen == forms.keys()


def test_every_form_of_trivialaugment_is_torchvisions(load):
    got, pixels = load([T.TrivialAugmentWide(4)], [(41, 60)], copies=1200)
    peer = V.TrivialAugmentWide(4)
    forms = {
        (*name, place): framed(form)
        for place in range(4)
        for name, form in applied(peer, pixels[0], place, 4).items()
    }
    seen = set()
    for image in got:
        equals = {name for name, form in forms.items() if torch.equal(form, image)}
        assert equals
        seen |= equals
    assert seen == forms.keys()


@pytest.mark.parametrize("policy", ["imagenet", "cifar10", "svhn"])
def test_every_form_of_autoaugment_is_torchvisions(load, policy):
    peer = V.AutoAugment(V.AutoAugmentPolicy(policy))
    got, pixels = load([T.AutoAugment(policy)], [(23, 30)], copies=400)
    image = pixels[0]
    forms = {}
    for number, pair in enumerate(peer._policies):
        choices = []
        for name, probability, place in pair:
            magnitudes, signed = peer._AUGMENTATION_SPACE[name]
            scale = magnitudes(10, *image.shape[-2:])
            magnitude = 0.0 if scale is None else float(scale[place])
            signs = (1, -1) if signed else (1,)
            does = [(name, sign * magnitude) for sign in signs] if probability > 0 else []
            choices.append(does + ([None] if probability < 1 else []))
        for chosen in itertools.product(*choices):
            made = image
            for name, magnitude in filter(None, chosen):
                made = peer._apply_image_or_video_transform(
                    made, name, magnitude, peer.interpolation, peer._fill
                )
            forms[framed(made).numpy().tobytes()] = (number, chosen)
    seen = [forms[image.numpy().tobytes()] for image in got]
    assert len({number for number, _ in seen}) > 15, "of 25 pairs, some of which look alike"


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize(("width", "all_ops"), [(1, True), (3, False)])
def test_every_form_of_augmix_is_torchvisions(load, fill, interpolation, width, all_ops):
    """With such an ``alpha`` one image counts for all: the one given, or what one chain makes."""
    severity, alpha = 3, 1e-6
    own = T.AugMix(severity, width, 1, alpha, all_ops, interpolation, fill)
    got, pixels = load([own], [(41, 60)], copies=1500)
    peer = V.AugMix(severity, width, 1, alpha, all_ops, mode(interpolation), fill)
    forms = mixed_forms(peer, pixels[0], severity)
    forms["image"] = framed(pixels[0])
    seen = set()
    for image in got:
        equals = {name for name, form in forms.items() if torch.equal(form, image)}
        assert equals, "none of torchvision's"
        seen |= equals
    assert seen == forms.keys()


def mixed_forms(peer, image, severity):
    """What each transform of an AugMix makes of the image, at each place."""
    names = peer._AUGMENTATION_SPACE if peer.all_ops else peer._PARTIAL_AUGMENTATION_SPACE
    return {
        (*name, place): framed(form)
        for place in range(severity)
        for name, form in applied(peer, image, place, 10).items()
        if name[0] in names
    }


def test_augmix_adds_images_up_as_torchvision_does(load):
    got, pixels = load([T.AugMix(mixture_width=1, chain_depth=1)], [(41, 60)], copies=200)
    base = framed(pixels[0]).double()
    forms = mixed_forms(V.AugMix(), pixels[0], 3)
    sums = 0
    for image in got:
        fits = [possible_weights(image.double(), base, form.double()) for form in forms.values()]
        assert any(least <= most for least, most in fits), "a sum of none of torchvision's"
        sums += bool((image != base).any())
    assert sums > 120


def possible_weights(image, base, form):
    """The least and the most weight of ``form`` in a sum with ``base`` that is rounded to this.

    Sums of float32 may be off by a little, and weights of both add up to 1 but for as much.
    """
    off = 1e-3
    change = form - base
    least, most = image - off - base, image + 1 + off - base
    still = change == 0
    if (least[still] > 0).any() or (most[still] < 0).any():
        return 1.0, 0.0
    bounds = torch.stack((least, most))[:, ~still] / change[~still]
    if not bounds.numel():
        return 0.0, 1.0
    return max(0.0, float(bounds.amin(0).max())), min(1.0, float(bounds.amax(0).min()))


def test_t32_nearest_makes_no_new_values(make_loader, tmp_path):
    values = torch.tensor([0, 100, 220], dtype=torch.uint8)
    drawn = torch.randint(3, (60, 80), generator=torch.Generator().manual_seed(0))
    path = tmp_path / "mask.png"
    path.write_bytes(png(values[drawn][..., None].expand(-1, -1, 3).numpy()))
    recipe = [T.RandomResizedCrop(40, interpolation="nearest"), T.RandomRotation(90, fill=7)]
    source = forebay.FileList([path] * 1000)
    seen = {int(v) for images in make_loader(source, transforms=recipe) for v in images.unique()}
    assert seen == {0, 7, 100, 220}


def test_t56_frequencies_are_those_asked_for(load):
    """RandAugment draws 14 transforms alike, a blur is done as often as it should be.

    Of those only that look like no other can be counted.
    """
    count = 3000
    sigma = math.sqrt(0.3 * 0.7 / count)
    recipe = [T.RandomApply([T.GaussianBlur(3, 1.0)], 0.3)]
    got, pixels = load(recipe, [(12, 13)], copies=count)
    blurred = sum(not torch.equal(image, framed(pixels[0])) for image in got) / count
    assert abs(blurred - 0.3) < 3 * sigma
    got, pixels = load([T.RandAugment(1, 30)], [(41, 60)], copies=count)
    forms = {
        name: framed(form)
        for name, form in applied(V.RandAugment(1, 30), pixels[0], 30, 31).items()
    }
    alike = {
        one[0]
        for one, other in itertools.permutations(forms, 2)
        if one[0] != other[0] and torch.equal(forms[one], forms[other])
    }
    tally = Counter(
        next(name for (name, sign), form in forms.items() if torch.equal(form, image))
        for image in got
    )
    sigma = math.sqrt(count / 14 * (1 - 1 / 14))
    counted = {name: times for name, times in tally.items() if name not in alike}
    assert len(counted) >= 11
    assert all(abs(times - count / 14) < 3.5 * sigma for times in counted.values()), tally
    again, _ = load([T.RandAugment(1, 30)], [(41, 60)], copies=count)
    assert all(map(torch.equal, got, again)), "the same seed"
