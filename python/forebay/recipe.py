"""From what the user passes as ``transforms=`` to the recipe that the core reads.

That is a list of ``forebay.transforms``, or torchvision's own objects, of both its versions, which
are translated by name and argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

import torch

from . import transforms
from .transforms import (
    CenterCrop,
    Crop,
    CutMix,
    Grayscale,
    MixUp,
    Normalize,
    RandomApply,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    Resize,
    ToDtype,
    Transform,
)

# Arguments that have a value for each channel.
_PER_CHANNEL = ("mean", "std", "fill", "value")
_LISTS = ("Compose", "Sequential", "ModuleList")
_OF_OTHERS = ("RandomApply", "RandomChoice", "RandomOrder")
# Batches are tensors already, and have the channels of the Loader's mode.
_UNNEEDED = ("ToImage", "PILToTensor", "ToPILImage", "ToPureTensor", "RGB", "Identity")
# torchvision's, of which ``labels_getter="default"`` is made.
_LABELS_GETTER = "_find_labels_default_heuristic"
_ELSEWHERE = "apply it to the batch in the training loop, where torchvision's works, too"


def checked_transforms(given: object) -> tuple[Transform, ...]:
    """The recipe's transforms.

    Raises:
        TypeError: something in the list is not a transform at all.
        NotImplementedError: a transform that is not offered.
        ValueError: images would keep sizes of their own, so that no batch can hold them.
    """
    recipe = tuple(_translated("transforms", given))
    fixed = any(
        isinstance(step, (RandomResizedCrop, CenterCrop, Crop, RandomCrop))
        or (isinstance(step, Resize) and isinstance(step.size, tuple) and len(step.size) == 2)
        for step in _flat(recipe)
    )
    if not fixed:
        names = ", ".join(type(step).__name__ for step in recipe) or "nothing"
        raise ValueError(
            f"transforms must give every image the same size, got {names}; add "
            "Resize((height, width)), RandomResizedCrop, CenterCrop, Crop or RandomCrop"
        )
    of_images, of_batch = split(recipe)
    if of_images + of_batch != recipe:
        late = next(step for step in recipe[recipe.index(of_batch[0]) :] if not step.of_batch)
        raise ValueError(
            f"transforms: {type(late).__name__} comes after {type(of_batch[0]).__name__}, which is "
            "of whole batches; move it before"
        )
    class_count(recipe)
    return recipe


def split(recipe: Iterable[Transform]) -> tuple[tuple[Transform, ...], tuple[Transform, ...]]:
    """The steps of images, and those of batches."""
    steps = tuple(recipe)
    return (
        tuple(step for step in steps if not step.of_batch),
        tuple(step for step in steps if step.of_batch),
    )


def class_count(recipe: Iterable[Transform]) -> int | None:
    """``num_classes`` of the steps that mix labels; None if none names it.

    Raises:
        ValueError: they name different numbers.
    """
    given = {step.num_classes for step in _flat(recipe) if isinstance(step, (MixUp, CutMix))}
    counts = sorted(count for count in given if count is not None)
    if len(counts) > 1:
        raise ValueError(f"transforms: num_classes must be one number, got {counts}")
    return counts[0] if counts else None


def check_channels(recipe: Iterable[Transform], mode: str) -> None:
    """Refuses steps that do not go with a Loader's ``mode``.

    Raises:
        ValueError: several channels' values for images of one channel.
        NotImplementedError: one channel made of images of three.
    """
    for step in _flat(recipe):
        name = type(step).__name__
        if isinstance(step, Grayscale) and (step.num_output_channels == 1) != (mode == "GRAY"):
            if mode == "GRAY":
                raise ValueError('Grayscale: num_output_channels must be 1 with mode="GRAY", got 3')
            raise NotImplementedError(
                "Grayscale: num_output_channels=1 is not offered, batches have three channels; use "
                '3, or Loader(mode="GRAY"), whose images are grey from the start'
            )
        for field in fields(step) if mode == "GRAY" else ():  # type: ignore[arg-type]
            value = getattr(step, field.name)
            if field.name in _PER_CHANNEL and isinstance(value, tuple) and len(set(value)) > 1:
                raise ValueError(
                    f'{name}: {field.name} must be one number with mode="GRAY", whose images have '
                    f"one channel, got {value!r}"
                )


def _flat(steps: Iterable[Transform]) -> Iterator[Transform]:
    for step in steps:
        yield step
        yield from _flat(getattr(step, "transforms", ()))


def _translated(where: str, given: Any) -> Iterator[Transform]:
    """The steps that ``given`` stands for: none for what batches need no more."""
    if given is None:
        return
    if isinstance(given, Transform):
        if getattr(transforms, type(given).__name__, None) is not type(given):
            raise _foreign(where, type(given).__name__)
        yield given
        return
    kind = given if isinstance(given, type) else type(given)
    name = getattr(given, "__name__", kind.__name__)
    is_peers = kind.__module__.startswith(("torchvision.", "torch.nn."))
    if is_peers and not isinstance(given, type) and _is_altered(given):
        raise NotImplementedError(
            f"{where} is a {name} of which a method was replaced, or that has hooks; transforms "
            f"run outside Python; {_ELSEWHERE}"
        )
    if is_peers and name in _LISTS:
        given = getattr(given, "transforms", given)
    elif is_peers and not isinstance(given, type):
        yield from _counterpart(where, given, name)
        return
    elif isinstance(given, type):
        raise TypeError(f"{where} is the class {name}; write {name}(...)")
    if callable(given) and not (is_peers and name in _LISTS):
        raise _foreign(where, name)
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        for place, step in enumerate(given):
            yield from _translated(f"{where}[{place}]", step)
    else:
        raise TypeError(f"{where} must be one of forebay.transforms, got {name}")


def _foreign(where: str, name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{where} is a Python callable ({name}); transforms run outside Python: use those of "
        "forebay.transforms, or apply it to the batch in the training loop"
    )


def _is_altered(peer: Any) -> bool:
    """Whether it does anything but what its class says."""
    own = vars(peer)
    return bool(
        own.keys() & {"forward", "transform", "make_params", "get_params"}
        or own.get("_forward_hooks")
        or own.get("_forward_pre_hooks")
    )


def _members(where: str, given: Any) -> list[Transform]:
    """Those of a list left to chance: each stands for one, a list for all of its own."""
    members = []
    for place, member in enumerate(given):
        steps = list(_translated(f"{where}[{place}]", member))
        # One that does nothing still has its turn.
        steps = steps or [RandomHorizontalFlip(0)]
        members.append(steps[0] if len(steps) == 1 else RandomApply(steps, 1))
    return members


def _counterpart(where: str, given: Any, name: str) -> Iterator[Transform]:
    """What torchvision's transform is here."""
    if name in _UNNEEDED:
        return
    if name == "ToTensor":
        yield ToDtype(torch.float32, scale=True)
        return
    if name == "ConvertImageDtype":
        yield ToDtype(given.dtype, scale=True)
        return
    if name == "ImageClassification":  # of a model's weights
        yield Resize(given.resize_size, given.interpolation, antialias=given.antialias)
        yield CenterCrop(given.crop_size)
        yield ToDtype(torch.float32, scale=True)
        yield Normalize(given.mean, given.std)
        return
    if name not in transforms.__all__:
        offered = ", ".join(known for known in transforms.__all__ if known != "Transform")
        raise NotImplementedError(
            f"{where} is torchvision's {name}, which is not offered; forebay.transforms has "
            f"{offered}; or {_ELSEWHERE}"
        )
    own: Any = getattr(transforms, name)
    arguments = {field.name: _argument(given, field.name) for field in fields(own)}
    if name in _OF_OTHERS:
        arguments["transforms"] = _members(f"{where}.transforms", given.transforms)
    if name == "RandomCrop":
        arguments["padding"] = _crop_padding(where, given)
    try:
        yield own(**arguments)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise type(error)(f"{where} is torchvision's {name}: {error}") from None


def _argument(given: Any, name: str) -> Any:
    if name == "value" and given.value is None:
        return "random"  # as which v2's RandomErasing takes it
    if name != "labels_getter":
        return getattr(given, name)
    getter = given._labels_getter
    return "default" if getattr(getter, "__name__", None) == _LABELS_GETTER else getter


def _crop_padding(where: str, given: Any) -> Any:
    """Left, top, right and bottom, or as it was given."""
    padding = given.padding
    if type(given).__module__.startswith("torchvision.transforms.v2"):
        # It keeps left, right, top and bottom.
        return padding and (padding[0], padding[2], padding[1], padding[3])
    if padding and given.pad_if_needed and given.padding_mode in ("reflect", "symmetric"):
        raise NotImplementedError(
            f"{where} is torchvision's RandomCrop of v1, which mirrors images once by padding and "
            "again where it needs more; use torchvision.transforms.v2's, which does it at once"
        )
    return padding
