"""Transforms are torchvision v2's by name, argument and default, checked when they are made."""

import dataclasses
import inspect
import json
import math
import pickle

import numpy as np
import pytest
import torch

from forebay import transforms as T
from forebay.recipe import checked_transforms

V = pytest.importorskip("torchvision.transforms.v2")
V1 = pytest.importorskip("torchvision.transforms")
# Crop is torchvision's functional.crop as a transform; it has no class of that name.
NAMES = [name for name in T.__all__ if name not in ("Transform", "Crop")]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_torchvisions(name):
    own = inspect.signature(getattr(T, name)).parameters
    peer = inspect.signature(getattr(V, name)).parameters
    assert list(own) == list(peer)
    for argument, parameter in own.items():
        default = peer[argument].default
        # Older releases hold the enum whose value is the word.
        assert parameter.default == getattr(default, "value", default), argument


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (T.Resize(256), {"size": [256], "max_size": None, "interpolation": "bilinear"}),
        (T.Resize([256]), {"size": [256]}),
        (T.Resize((10, 20)), {"size": [10, 20]}),
        (T.Resize(256, interpolation=V.InterpolationMode.BICUBIC), {"interpolation": "bicubic"}),
        (T.Resize(256, interpolation=3), {"interpolation": "bicubic"}),
        (T.RandomResizedCrop(224), {"size": [224, 224], "scale": [0.08, 1.0], "antialias": True}),
        (T.RandomCrop(8, padding=(1, 2)), {"padding": [1, 2, 1, 2], "fill": [0, 0, 0]}),
        (T.RandomCrop(8, padding=4, fill=(1, 2, 3)), {"padding": [4] * 4, "fill": [1, 2, 3]}),
        (T.ColorJitter(0.4), {"brightness": [0.6, 1.4], "contrast": None}),
        (T.ColorJitter(brightness=2), {"brightness": [0.0, 3.0]}),
        (T.ColorJitter(hue=0.1), {"hue": [-0.1, 0.1]}),
        (T.ColorJitter(contrast=0), {"contrast": None}),
        (T.ToDtype(torch.bfloat16, scale=True), {"dtype": "bfloat16", "scale": True}),
        (T.Normalize([0.5], [0.5]), {"mean": [0.5] * 3, "std": [0.5] * 3}),
    ],
)
def test_become_plain_data(transform, expected):
    data = json.loads(json.dumps(transform.to_dict()))
    assert data["name"] == type(transform).__name__
    assert {name: data[name] for name in expected} == expected


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue"])
@pytest.mark.parametrize("value", [0.25, (0.1, 0.3)])
def test_color_ranges_are_torchvisions(name, value):
    own = getattr(T.ColorJitter(**{name: value}), name)
    assert own == getattr(V.ColorJitter(**{name: value}), name)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: T.Resize(0), ["Resize", "size", "0"]),
        (lambda: T.Resize((1, 2, 3)), ["Resize", "size"]),
        (lambda: T.Resize(10, max_size=5), ["max_size", "above size 10"]),
        (lambda: T.Resize((10, 10), max_size=20), ["max_size"]),
        (lambda: T.Resize(10, interpolation="lanczos"), ["interpolation", "lanczos", "bicubic"]),
        (lambda: T.RandomResizedCrop(10, scale=(1, 0.1)), ["scale", "ascending"]),
        (lambda: T.RandomResizedCrop(10, ratio=(0, 1)), ["ratio"]),
        (lambda: T.CenterCrop("8"), ["CenterCrop", "size", "'8'"]),
        (lambda: T.RandomCrop(8, padding=(1, 2, 3)), ["padding"]),
        (lambda: T.RandomCrop(8, padding_mode="wrap"), ["padding_mode", "wrap"]),
        (lambda: T.RandomCrop(8, fill=300), ["fill", "300", "0..255"]),
        (lambda: T.RandomHorizontalFlip(1.5), ["p", "1.5"]),
        (lambda: T.ColorJitter(hue=0.6), ["hue", "0.5"]),
        (lambda: T.ColorJitter(brightness=-1), ["brightness", "-1"]),
        (lambda: T.Normalize([0, 0], [1, 1]), ["Normalize", "mean"]),
        (lambda: T.Normalize([0, 0, 0], [1, 0, 1]), ["std", "above 0"]),
        (lambda: T.ToDtype(torch.int32), ["ToDtype", "dtype", "int32"]),
        (lambda: T.RandomRotation(-1), ["RandomRotation", "degrees", "-1"]),
        (lambda: T.RandomRotation((2, 1)), ["degrees", "ascending"]),
        (lambda: T.RandomRotation(1, "bicubic"), ["interpolation", "nearest or bilinear"]),
        (lambda: T.RandomRotation(1, fill=0.5), ["fill", "0.5", "whole numbers"]),
        (lambda: T.RandomRotation(1, center=(1, float("nan"))), ["center", "finite"]),
        (lambda: T.RandomAffine(0, translate=(0.1, 2)), ["RandomAffine", "translate", "0..1"]),
        (lambda: T.RandomAffine(0, scale=(0, 1)), ["scale", "above 0"]),
        (lambda: T.RandomAffine(0, shear=(1, 2, 3)), ["shear", "2 numbers"]),
        (lambda: T.RandomPerspective(1.5), ["distortion_scale", "1.5"]),
        (lambda: T.RandomAdjustSharpness(-1), ["sharpness_factor", "-1"]),
        (lambda: T.GaussianBlur(4), ["kernel_size", "odd"]),
        (lambda: T.GaussianBlur(3, (0, 1)), ["sigma", "above 0"]),
        (lambda: T.GaussianBlur(3, 1e7), ["sigma", "up to 1e+06"]),
        (lambda: T.Crop(2**40, 0, 2, 2), ["top", "-65535..65535"]),
        (lambda: T.RandomChoice([T.RandomInvert()], p=[math.inf]), ["p", "finite"]),
        (lambda: T.AutoAugment("coco"), ["policy", "coco", "imagenet"]),
        (lambda: T.RandAugment(magnitude=31), ["magnitude", "below num_magnitude_bins"]),
        (lambda: T.RandAugment(num_ops=-1), ["num_ops", "-1"]),
        (lambda: T.TrivialAugmentWide(1), ["num_magnitude_bins", "from 2 on"]),
    ],
)
def test_wrong_arguments_are_named(make, words):
    with pytest.raises(ValueError) as caught:
        make()
    for word in words:
        assert word in str(caught.value)


def test_crop_has_the_arguments_of_torchvisions_function():
    own = list(inspect.signature(T.Crop).parameters)
    assert own == list(inspect.signature(V.functional.crop).parameters)[1:]
    for wrong in ({"top": 0.5}, {"left": "1"}, {"height": 0}, {"width": -3}):
        arguments = {"top": 0, "left": 0, "height": 4, "width": 4} | wrong
        with pytest.raises(ValueError, match=next(iter(wrong))):
            T.Crop(**arguments)


@pytest.mark.parametrize(
    ("step", "error", "words"),
    [
        (V.ElasticTransform(), NotImplementedError, ["Elastic", "not offered", "CenterCrop"]),
        (V.Compose([V.ElasticTransform()]), NotImplementedError, ["transforms[0][0]", "Elastic"]),
        (
            V.RandomApply([V.ElasticTransform()]),
            NotImplementedError,
            ["transforms[0].transforms[0]"],
        ),
        (
            V.RandomRotation(5, fill={torch.Tensor: 1}),
            NotImplementedError,
            ["RandomRotation", "fill"],
        ),
        (
            V.RandAugment(interpolation=V.InterpolationMode.BICUBIC),
            ValueError,
            ["RandAugment", "bilinear"],
        ),
        (V.ToDtype({torch.Tensor: torch.float32}), TypeError, ["ToDtype", "dtype"]),
        (V.CenterCrop, TypeError, ["class CenterCrop"]),
        (abs, NotImplementedError, ["callable", "abs"]),
        (T.CenterCrop, TypeError, ["class CenterCrop"]),
        ("Resize", TypeError, ["transforms", "str"]),
    ],
)
def test_what_is_not_ours_is_refused_by_name(step, error, words):
    with pytest.raises(error) as caught:
        checked_transforms([step, T.CenterCrop(8)])
    for word in words:
        assert word in str(caught.value)


def test_what_a_models_weights_want_is_translated():
    weights = pytest.importorskip("torchvision.models").ResNet50_Weights
    assert checked_transforms([V.RGB(), weights.IMAGENET1K_V2.transforms()]) == (
        T.Resize(232),
        T.CenterCrop(224),
        T.ToDtype(torch.float32, scale=True),
        T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    )


@pytest.mark.parametrize("version", [V, V1])
def test_torchvisions_objects_are_translated(version):
    peer = version.Compose([
        version.Pad((1, 2), padding_mode="edge"),
        version.RandomResizedCrop(32, scale=(0.2, 1), interpolation=V.InterpolationMode.BICUBIC),
        version.RandomApply([version.ColorJitter(0.4, hue=0.1), version.RandomInvert()], p=0.8),
        version.Compose([version.RandomHorizontalFlip(0.3), version.RandomPosterize(3, 0.2)]),
        version.RandomAffine(5, (0.1, 0.2), (0.5, 2), (3, 4), fill=9, center=(1, 2)),
        version.RandomAffine((5, 6), shear=7),
        version.GaussianBlur(3, 0.5),
        version.TrivialAugmentWide(9, version.InterpolationMode.BILINEAR, [1, 2, 3]),
        version.RandomChoice([version.RandomSolarize(9), version.RandomGrayscale(0.2)]),
        version.RandomCrop(30, padding=2, fill=7),
        version.ToTensor() if version is V1 else version.ToImage(),
        version.ConvertImageDtype(torch.float32),
        version.Normalize((0.1, 0.2, 0.3), (0.5, 0.5, 0.5)),
        version.RandomErasing(0.3, value="random"),
    ])  # fmt: skip
    to_float = T.ToDtype(torch.float32, scale=True)
    assert checked_transforms(peer) == (
        T.Pad((1, 2), padding_mode="edge"),
        T.RandomResizedCrop(32, scale=(0.2, 1), interpolation="bicubic"),
        T.RandomApply([T.ColorJitter(0.4, hue=0.1), T.RandomInvert()], p=0.8),
        T.RandomHorizontalFlip(0.3),
        T.RandomPosterize(3, 0.2),
        T.RandomAffine(5, (0.1, 0.2), (0.5, 2), (3, 4), fill=9, center=(1, 2)),
        T.RandomAffine((5, 6), shear=7),
        T.GaussianBlur(3, 0.5),
        T.TrivialAugmentWide(9, "bilinear", (1, 2, 3)),
        T.RandomChoice([T.RandomSolarize(9), T.RandomGrayscale(0.2)]),
        T.RandomCrop(30, padding=2, fill=7),
        *([to_float] if version is V1 else []),
        to_float,
        T.Normalize((0.1, 0.2, 0.3), (0.5, 0.5, 0.5)),
        T.RandomErasing(0.3, value="random"),
    )
    modules = torch.nn.Sequential(version.CenterCrop(8), version.RandomVerticalFlip())
    assert checked_transforms(modules) == (T.CenterCrop(8), T.RandomVerticalFlip())
    mixed = [T.CenterCrop(9), version.CenterCrop(8)]
    assert checked_transforms(mixed) == (T.CenterCrop(9), T.CenterCrop(8))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Grayscale"])
def test_every_transform_is_translated_with_its_defaults(name):
    needed = {
        "CenterCrop": [8], "GaussianBlur": [3], "Normalize": [[0.5], [0.5]], "Pad": [3],
        "RandomAdjustSharpness": [2], "RandomAffine": [9], "RandomCrop": [8],
        "RandomPosterize": [3], "RandomResizedCrop": [8], "RandomRotation": [9],
        "RandomSolarize": [100.0], "Resize": [8], "ToDtype": [torch.float16],
    }.get(name, [])  # fmt: skip
    own, peer = needed, needed
    if name in ("RandomApply", "RandomChoice", "RandomOrder"):
        own, peer = [[T.CenterCrop(8)]], [[V.CenterCrop(8)]]
    first = T.CenterCrop(8)
    translated = checked_transforms([first, getattr(V, name)(*peer)])
    assert translated == (first, getattr(T, name)(*own))


def test_paddings_of_crops_are_translated_side_by_side():
    for padding in (3, (1, 2), [1, 2, 3, 4]):
        for version in (V, V1):
            [crop] = checked_transforms(version.RandomCrop(9, padding=padding))
            assert crop == T.RandomCrop(9, padding=padding), version
    twice = V1.RandomCrop(9, padding=1, pad_if_needed=True, padding_mode="reflect")
    with pytest.raises(NotImplementedError, match="v2"):
        checked_transforms(twice)


@pytest.mark.parametrize("version", [V, V1])
def test_members_of_lists_left_to_chance_stay_one_each(version):
    both = version.Compose([version.RandomInvert(), version.RandomHorizontalFlip()])
    choice = version.RandomChoice([both, torch.nn.Identity()], p=[0.9, 0.1])
    own = [
        T.RandomApply([T.RandomInvert(), T.RandomHorizontalFlip()], 1),
        T.RandomHorizontalFlip(0),
    ]
    crop = T.CenterCrop(8)
    assert checked_transforms([crop, choice]) == (crop, T.RandomChoice(own, [0.9, 0.1]))
    order = version.RandomOrder([both, version.RandomVerticalFlip()])
    own[1] = T.RandomVerticalFlip()
    assert checked_transforms([crop, order]) == (crop, T.RandomOrder(own))
    modules = version.RandomApply(torch.nn.ModuleList([version.RandomInvert()]))
    assert checked_transforms([crop, modules]) == (crop, T.RandomApply([T.RandomInvert()]))


def test_what_does_something_else_than_its_class_is_refused():
    class Inverted(torch.nn.Sequential):
        def forward(self, image):
            return 255 - image

    class Steps(list):
        def __call__(self, image):
            return image

    class Ours(T.RandomInvert):
        pass

    hooked = torch.nn.Sequential(V.CenterCrop(8))
    hooked.register_forward_hook(lambda *_: None)
    patched = V.CenterCrop(8)
    patched.transform = lambda image, _: image
    for step in (Inverted(V.CenterCrop(8)), Steps([T.CenterCrop(8)]), Ours(), hooked, patched):
        with pytest.raises(NotImplementedError, match=r"transforms\[0\]"):
            checked_transforms([step, T.CenterCrop(8)])


def test_equal_recipes_are_the_same_recipe(make_loader):
    for one, other in [
        (T.RandomInvert(1), T.RandomInvert(1.0)),
        (T.RandomInvert(0.25), T.RandomInvert(np.float32(0.25))),
        (T.RandomChoice([T.RandomInvert()] * 3, [0.1, 0.2, 0.3]), None),
    ]:
        twin = dataclasses.replace(one) if other is None else other
        assert one == twin
        state = make_loader(transforms=[T.CenterCrop(8), one]).state_dict()
        make_loader(transforms=[T.CenterCrop(8), twin]).load_state_dict(state)
    for wrong in (True, 1.5, "1", None):
        with pytest.raises(ValueError, match="probability"):
            T.RandomInvert(wrong)


def test_compare_print_and_pickle_by_value():
    crop = T.RandomResizedCrop(224, scale=[0.2, 1])
    assert crop == T.RandomResizedCrop((224, 224), scale=(0.2, 1.0))
    assert pickle.loads(pickle.dumps(crop)) == crop
    assert "224" in repr(crop)
    with pytest.raises(dataclasses.FrozenInstanceError):
        crop.size = 3


def test_one_transform_is_a_recipe():
    assert checked_transforms(T.CenterCrop(8)) == (T.CenterCrop(8),)


@pytest.mark.parametrize("given", [None, [], ()])
def test_no_transforms_leave_sizes_as_they_are_and_that_is_told(given):
    with pytest.raises(ValueError, match="same size, got nothing; add Resize"):
        checked_transforms(given)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Compose", "pass a list"),
        ("ToTensor", r"ToDtype\(torch.float32, scale=True\)"),
        ("ElasticTransform", "it has AugMix, .* TrivialAugmentWide"),
    ],
)
def test_a_transform_that_is_not_here_has_an_answer(name, words):
    with pytest.raises(AttributeError, match=f"no '{name}': .*{words}"):
        getattr(T, name)
    assert not hasattr(T, name)
