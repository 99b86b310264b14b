"""Transforms as data: torchvision v2's names, arguments and defaults; the core executes them.

A recipe is a list of these. They hold numbers only, so they compare, print and pickle by value,
and no Python runs per sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import torch

from .checks import as_int

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Crop",
    "Grayscale",
    "Normalize",
    "Pad",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "ToDtype",
    "Transform",
]

DTYPES = {
    torch.uint8: "uint8",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
}
# Height and width of what the core makes.
MAX_SIDE = 65_535
INTERPOLATIONS = ("bilinear", "bicubic", "nearest", "nearest-exact")
PADDING_MODES = ("constant", "edge", "reflect", "symmetric")
# Pillow's numbers, which torchvision accepts too.
_PILLOW_INTERPOLATIONS = {0: "nearest", 2: "bilinear", 3: "bicubic"}
_UNNEEDED = "leave it out: batches are tensors"
# What stands here in place of transforms of torchvision's that need no counterpart.
INSTEAD = {
    "Compose": "pass a list of transforms instead",
    "ToTensor": "use forebay.transforms.ToDtype(torch.float32, scale=True), which makes floats in "
    "0..1 as it does, or Normalize alone; without either, batches are uint8 in 0..255",
    "ToImage": _UNNEEDED,
    "PILToTensor": _UNNEEDED,
    "ToPureTensor": _UNNEEDED,
}


class _InterpolationMode(Protocol):
    """``torchvision.transforms.InterpolationMode``, without importing torchvision."""

    @property
    def value(self) -> str: ...


Interpolation: TypeAlias = "str | int | _InterpolationMode"
Size: TypeAlias = "int | Sequence[int]"
Range: TypeAlias = "float | Sequence[float] | None"


class Transform:
    """One step of a recipe."""

    def to_dict(self) -> dict[str, Any]:
        """The transform as the core reads it; sizes are ``[height, width]``."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"name": type(self).__name__} | {name: _plain(value) for name, value in own.items()}

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _wrong(self, argument: str, got: object, right: str) -> ValueError:
        return ValueError(f"{type(self).__name__}: {argument} must be {right}, got {got!r}")


@dataclass(frozen=True)
class RandomResizedCrop(Transform):
    """Crops a random part of random shape and resizes it to ``size``, ``(height, width)``."""

    size: Size
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: Interpolation = "bilinear"
    antialias: bool = True

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        scale = _numbers(self, "scale", self.scale, 2)
        ratio = _numbers(self, "ratio", self.ratio, 2)
        if not 0 <= scale[0] <= scale[1] < math.inf or scale[1] == 0:
            raise self._wrong("scale", self.scale, "an ascending pair of fractions above 0")
        if not 0 < ratio[0] <= ratio[1] < math.inf:
            raise self._wrong("ratio", self.ratio, "an ascending pair of ratios above 0")
        self._set(size=_pair(self, self.size), scale=scale, ratio=ratio, **_resampling(self))


@dataclass(frozen=True)
class Resize(Transform):
    """Resizes to ``(height, width)``, or the shorter edge to one number."""

    size: Size
    interpolation: Interpolation = "bilinear"
    max_size: int | None = None
    antialias: bool = True

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        size = _sides(self, self.size, "size")
        if len(size) > 2:
            raise self._wrong("size", self.size, "one number or (height, width)")
        if self.max_size is not None:
            if len(size) != 1:
                raise self._wrong("max_size", self.max_size, "None when size is (height, width)")
            longest = as_int(self.max_size)
            if longest is None or longest <= size[0]:
                raise self._wrong("max_size", self.max_size, f"an int above size {size[0]}")
            self._set(max_size=longest)
        self._set(size=size, **_resampling(self))


@dataclass(frozen=True)
class CenterCrop(Transform):
    """Crops the centre to ``size``, ``(height, width)``; smaller images are padded with black."""

    size: Size

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        self._set(size=_pair(self, self.size))


@dataclass(frozen=True)
class Crop(Transform):
    """Crops the same place of every image, as torchvision's ``functional.crop`` does.

    What lies outside the image is black.
    """

    top: int
    left: int
    height: int
    width: int

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name in ("top", "left"):
            place = as_int(getattr(self, name))
            if place is None:
                raise self._wrong(name, getattr(self, name), "an int")
            self._set(**{name: place})
        for name in ("height", "width"):
            self._set(**{name: _sides(self, getattr(self, name), name)[0]})


@dataclass(frozen=True)
class Pad(Transform):
    """Pads by one number, by (across, down), or by (left, top, right, bottom).

    With ``fill``, one value or one per channel; or, by ``padding_mode``, with the ``"edge"``, or
    with the image mirrored: ``"reflect"`` without its outermost pixels, ``"symmetric"`` with them.
    """

    padding: Size
    fill: float | Sequence[float] | None = 0
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        self._set(padding=_padding(self), fill=_filling(self))


@dataclass(frozen=True)
class RandomCrop(Transform):
    """Crops ``size``, ``(height, width)``, at a random place, after optional padding."""

    size: Size
    padding: Size | None = None
    pad_if_needed: bool = False
    fill: float | Sequence[float] | None = 0
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        self._set(
            size=_pair(self, self.size),
            padding=None if self.padding is None else _padding(self),
            pad_if_needed=_flag(self, "pad_if_needed", self.pad_if_needed),
            fill=_filling(self),
        )


@dataclass(frozen=True)
class RandomHorizontalFlip(Transform):
    """Mirrors left and right with probability ``p``."""

    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the probability."""
        _check_probability(self, self.p)


@dataclass(frozen=True)
class RandomVerticalFlip(Transform):
    """Mirrors top and bottom with probability ``p``."""

    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the probability."""
        _check_probability(self, self.p)


@dataclass(frozen=True)
class ColorJitter(Transform):
    """Changes brightness, contrast, saturation and hue by random factors, in random order."""

    brightness: Range = None
    contrast: Range = None
    saturation: Range = None
    hue: Range = None

    def __post_init__(self) -> None:
        """Turns single numbers into ranges, as torchvision does."""
        for name in ("brightness", "contrast", "saturation"):
            self._set(**{name: self._range(name, 1.0, 0.0, math.inf)})
        self._set(hue=self._range("hue", 0.0, -0.5, 0.5))

    def _range(
        self, name: str, center: float, lowest: float, highest: float
    ) -> tuple[float, float] | None:
        given = getattr(self, name)
        if given is None:
            return None
        if isinstance(given, (int, float)):
            if given < 0:
                raise self._wrong(name, given, "a number that is not negative, or a pair")
            low, high = center - given, center + given
            if lowest == 0:
                low = max(low, 0.0)
        else:
            low, high = _numbers(self, name, given, 2)
        if not lowest <= low <= high <= highest or not math.isfinite(high):
            right = f"within {lowest}..{highest} and ascending"
            raise self._wrong(name, given, right)
        return None if low == high == center else (float(low), float(high))


@dataclass(frozen=True)
class Grayscale(Transform):
    """Makes the image grey; batches have three channels, so ``num_output_channels`` must be 3."""

    num_output_channels: int = 1

    def __post_init__(self) -> None:
        """Checks the argument."""
        if self.num_output_channels == 1:
            raise NotImplementedError(
                "Grayscale: num_output_channels=1 is not offered; use 3, and take one of the "
                "batch's channels, which are alike"
            )
        if self.num_output_channels != 3:
            raise self._wrong("num_output_channels", self.num_output_channels, "3")

    def to_dict(self) -> dict[str, Any]:
        """The transform as the core reads it."""
        return {"name": "Grayscale"}


@dataclass(frozen=True)
class RandomGrayscale(Transform):
    """Makes the image grey, in three channels, with probability ``p``."""

    p: float = 0.1

    def __post_init__(self) -> None:
        """Checks the probability."""
        _check_probability(self, self.p)


@dataclass(frozen=True)
class RandomInvert(Transform):
    """Inverts the colours with probability ``p``."""

    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the probability."""
        _check_probability(self, self.p)


@dataclass(frozen=True)
class RandomAutocontrast(Transform):
    """Stretches each channel to all values with probability ``p``."""

    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the probability."""
        _check_probability(self, self.p)


@dataclass(frozen=True)
class RandomEqualize(Transform):
    """Spreads each channel's values evenly, by its histogram, with probability ``p``."""

    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the probability."""
        _check_probability(self, self.p)


@dataclass(frozen=True)
class RandomPosterize(Transform):
    """Keeps the ``bits`` upper bits of every value, 0 to 8, with probability ``p``."""

    bits: int
    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the arguments."""
        bits = as_int(self.bits)
        if bits is None or not 0 <= bits <= 8:
            raise self._wrong("bits", self.bits, "a whole number in 0..8")
        _check_probability(self, self.p)
        self._set(bits=bits)


@dataclass(frozen=True)
class RandomSolarize(Transform):
    """Inverts all values from ``threshold`` (0 to 255) on, with probability ``p``."""

    threshold: float
    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not _is_number(self.threshold) or not 0 <= self.threshold <= 255:
            raise self._wrong("threshold", self.threshold, "a number in 0..255")
        _check_probability(self, self.p)
        self._set(threshold=float(self.threshold))


@dataclass(frozen=True)
class RandomPhotometricDistort(Transform):
    """Changes brightness, contrast, saturation, hue and the order of the channels.

    Each with probability ``p``; contrast first or behind saturation and hue.
    """

    brightness: Sequence[float] = (0.875, 1.125)
    contrast: Sequence[float] = (0.5, 1.5)
    saturation: Sequence[float] = (0.5, 1.5)
    hue: Sequence[float] = (-0.05, 0.05)
    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name in ("brightness", "contrast", "saturation", "hue"):
            lowest, highest = (-0.5, 0.5) if name == "hue" else (0.0, math.inf)
            low, high = _numbers(self, name, getattr(self, name), 2)
            if not lowest <= low <= high <= highest or not math.isfinite(high):
                right = f"within {lowest}..{highest} and ascending"
                raise self._wrong(name, getattr(self, name), right)
            self._set(**{name: (low, high)})
        _check_probability(self, self.p)


@dataclass(frozen=True)
class RandomErasing(Transform):
    """Overwrites a random part of the image with ``value`` with probability ``p``.

    ``value``, one number or one per channel, is in the image's units at that place of the list.
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | str = 0.0
    inplace: bool = False

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        scale = _numbers(self, "scale", self.scale, 2)
        ratio = _numbers(self, "ratio", self.ratio, 2)
        if not 0 <= scale[0] <= scale[1] <= 1:
            raise self._wrong("scale", self.scale, "an ascending pair of fractions in 0..1")
        if not 0 < ratio[0] <= ratio[1] < math.inf:
            raise self._wrong("ratio", self.ratio, "an ascending pair of ratios above 0")
        if self.value is None or isinstance(self.value, str):
            raise NotImplementedError(
                f"RandomErasing: value={self.value!r} is not offered; use one number, or one per "
                "channel"
            )
        value = _repeat(self, "value", self.value)
        if not all(map(math.isfinite, value)):
            raise self._wrong("value", self.value, "finite")
        _check_probability(self, self.p)
        self._set(scale=scale, ratio=ratio, value=value)

    def to_dict(self) -> dict[str, Any]:
        """The transform as the core reads it; ``inplace`` has no meaning there."""
        own = super().to_dict()
        del own["inplace"]
        return own


@dataclass(frozen=True)
class RandomApply(Transform):
    """Does all of ``transforms`` with probability ``p``, or none."""

    transforms: Sequence[Transform]
    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the arguments."""
        self._set(transforms=_listed(self))
        _check_probability(self, self.p)


@dataclass(frozen=True)
class RandomChoice(Transform):
    """Does one of ``transforms``, each with its probability ``p``; by default all alike."""

    transforms: Sequence[Transform]
    p: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Checks the arguments; probabilities then add up to 1."""
        listed = _listed(self)
        given = [1.0] * len(listed) if self.p is None else self.p
        p = _numbers(self, "p", given, len(listed))
        if not all(0 <= each < math.inf for each in p) or not 0 < sum(p) < math.inf:
            raise self._wrong("p", self.p, "numbers from 0 on, not all 0")
        if abs(sum(p) - 1) > 1e-9:
            p = tuple(each / sum(p) for each in p)
        self._set(transforms=listed, p=p)


@dataclass(frozen=True)
class RandomOrder(Transform):
    """Does all of ``transforms`` in random order."""

    transforms: Sequence[Transform]

    def __post_init__(self) -> None:
        """Checks the list."""
        self._set(transforms=_listed(self))


@dataclass(frozen=True)
class ToDtype(Transform):
    """Converts to ``dtype``; ``scale=True`` maps 0..255 to 0..1."""

    dtype: torch.dtype
    scale: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments."""
        dtype_name(self.dtype, "ToDtype: dtype")
        _flag(self, "scale", self.scale)

    def to_dict(self) -> dict[str, Any]:
        """The transform as the core reads it."""
        return super().to_dict() | {"dtype": DTYPES[self.dtype]}


@dataclass(frozen=True)
class Normalize(Transform):
    """Subtracts ``mean`` and divides by ``std`` per channel.

    On an image that is not yet float it implies ``ToDtype(torch.float32, scale=True)``.
    """

    mean: Sequence[float]
    std: Sequence[float]
    inplace: bool = False

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        mean, std = _repeat(self, "mean", self.mean), _repeat(self, "std", self.std)
        if not all(map(math.isfinite, mean)):
            raise self._wrong("mean", self.mean, "finite")
        if not all(math.isfinite(value) and value > 0 for value in std):
            raise self._wrong("std", self.std, "above 0 in every channel")
        self._set(mean=mean, std=std)

    def to_dict(self) -> dict[str, Any]:
        """The transform as the core reads it; ``inplace`` has no meaning there."""
        own = super().to_dict()
        del own["inplace"]
        return own


if not TYPE_CHECKING:  # to type checkers it would mean that every name exists

    def __getattr__(name: str) -> Any:
        """Says what to use in place of a transform that is not here."""
        advice = INSTEAD.get(name)
        if advice is None:
            offered = ", ".join(known for known in __all__ if known != "Transform")
            advice = f"it has {offered}"
        raise AttributeError(f"forebay.transforms has no {name!r}: {advice}")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.to_dict() if isinstance(value, Transform) else value


def _listed(owner: RandomApply | RandomChoice | RandomOrder) -> tuple[Transform, ...]:
    given = owner.transforms
    if not isinstance(given, Sequence) or not all(isinstance(each, Transform) for each in given):
        raise TypeError(
            f"{type(owner).__name__}: transforms must be a list of forebay.transforms, "
            f"got {given!r}"
        )
    if not given:
        raise owner._wrong("transforms", given, "at least one")
    return tuple(given)


def dtype_name(dtype: object, argument: str) -> str:
    """The core's name of an element type that images may have."""
    if isinstance(dtype, torch.dtype) and dtype in DTYPES:
        return DTYPES[dtype]
    right = ", ".join(str(known) for known in DTYPES)
    kind = ValueError if isinstance(dtype, torch.dtype) else TypeError
    raise kind(f"{argument} must be one of {right}, got {dtype!r}")


def interpolation_name(given: object) -> str | None:
    """The core's name of a filter; None if it is none of those offered."""
    if isinstance(given, int):
        name = _PILLOW_INTERPOLATIONS.get(given, "")
    else:
        name = given if isinstance(given, str) else getattr(given, "value", "")
    return name if name in INTERPOLATIONS else None


def _flag(owner: Transform, argument: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise owner._wrong(argument, value, "True or False")


def _sides(owner: Transform, value: object, argument: str, least: int = 1) -> tuple[int, ...]:
    listed = tuple(value) if isinstance(value, Sequence) else (value,)
    sides = tuple(side for side in map(as_int, listed) if side is not None)
    if not sides or len(sides) < len(listed) or not least <= min(sides) <= max(sides) <= MAX_SIDE:
        raise owner._wrong(argument, value, f"an int of {least}..{MAX_SIDE}, or a sequence of them")
    return sides


def _pair(owner: Transform, value: object) -> tuple[int, int]:
    sides = _sides(owner, value, "size")
    if len(sides) > 2:
        raise owner._wrong("size", value, "one number or (height, width)")
    return sides[0], sides[-1]


def _padding(owner: Pad | RandomCrop) -> tuple[int, ...]:
    """Left, top, right and bottom."""
    sides = _sides(owner, owner.padding, "padding", least=0)
    if len(sides) not in (1, 2, 4):
        raise owner._wrong("padding", owner.padding, "one, two or four numbers")
    return sides * (4 // len(sides))


def _filling(owner: Pad | RandomCrop) -> tuple[int, ...]:
    """A value per channel; checks the mode, too."""
    if owner.padding_mode not in PADDING_MODES:
        right = f"one of {', '.join(PADDING_MODES)}"
        raise owner._wrong("padding_mode", owner.padding_mode, right)
    fill = _repeat(owner, "fill", 0 if owner.fill is None else owner.fill)
    if not all(0 <= value <= 255 and value == int(value) for value in fill):
        raise owner._wrong("fill", owner.fill, "whole numbers in 0..255, one or one per channel")
    return tuple(int(value) for value in fill)


def _numbers(owner: Transform, argument: str, value: object, count: int) -> tuple[float, ...]:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == count:
        if all(_is_number(part) for part in value):
            return tuple(float(part) for part in value)
    raise owner._wrong(argument, value, f"{count} numbers")


def _repeat(owner: Transform, argument: str, value: object) -> tuple[float, ...]:
    if isinstance(value, (int, float)):
        return (float(value),) * 3
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and len(value) == 1:
        value = tuple(value) * 3
    return _numbers(owner, argument, value, 3)


def _check_probability(owner: Transform, p: object) -> None:
    if not _is_number(p) or not 0 <= p <= 1:
        raise owner._wrong("p", p, "a probability in 0..1")
    owner._set(p=float(p))


def _is_number(value: object) -> TypeGuard[float]:
    """Those of numpy count, too, and truth values do not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _resampling(owner: RandomResizedCrop | Resize) -> dict[str, Any]:
    name = interpolation_name(owner.interpolation)
    if name is None:
        right = "one of " + ", ".join(INTERPOLATIONS)
        raise owner._wrong("interpolation", owner.interpolation, right)
    return {"interpolation": name, "antialias": _flag(owner, "antialias", owner.antialias)}
