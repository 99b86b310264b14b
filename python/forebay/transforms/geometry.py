"""Transforms that move pixels, and the one that erases some."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..checks import as_int
from .base import (
    INTERPOLATIONS,
    MAX_SIDE,
    PADDING_MODES,
    Interpolation,
    Perhaps,
    Size,
    Transform,
    check_probability,
    flag,
    interpolation_name,
    numbers,
    pair,
    per_channel,
    sides_of,
)


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
        scale = numbers(self, "scale", self.scale, 2)
        ratio = numbers(self, "ratio", self.ratio, 2)
        if not 0 <= scale[0] <= scale[1] < math.inf or scale[1] == 0:
            raise self._wrong("scale", self.scale, "an ascending pair of fractions above 0")
        if not 0 < ratio[0] <= ratio[1] < math.inf:
            raise self._wrong("ratio", self.ratio, "an ascending pair of ratios above 0")
        self._set(size=pair(self, self.size), scale=scale, ratio=ratio, **_resampling(self))


@dataclass(frozen=True)
class Resize(Transform):
    """Resizes to ``(height, width)``, or the shorter edge to one number."""

    size: Size
    interpolation: Interpolation = "bilinear"
    max_size: int | None = None
    antialias: bool = True

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        size = sides_of(self, self.size, "size")
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
        self._set(size=pair(self, self.size))


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
            if place is None or not -MAX_SIDE <= place <= MAX_SIDE:
                right = f"an int of {-MAX_SIDE}..{MAX_SIDE}"
                raise self._wrong(name, getattr(self, name), right)
            self._set(**{name: place})
        for name in ("height", "width"):
            self._set(**{name: sides_of(self, getattr(self, name), name)[0]})


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
            size=pair(self, self.size),
            padding=None if self.padding is None else _padding(self),
            pad_if_needed=flag(self, "pad_if_needed", self.pad_if_needed),
            fill=_filling(self),
        )


@dataclass(frozen=True)
class RandomHorizontalFlip(Perhaps):
    """Mirrors left and right with probability ``p``."""


@dataclass(frozen=True)
class RandomVerticalFlip(Perhaps):
    """Mirrors top and bottom with probability ``p``."""


@dataclass(frozen=True)
class RandomErasing(Transform):
    """Overwrites a random part of the image with ``value`` with probability ``p``.

    ``value``, one number or one per channel, is in the image's units at that place of the list; or
    ``"random"``, which floats can hold: a normal number of mean 0 and variance 1 for each element,
    out of 4,096 that split the distribution evenly.
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: float | Sequence[float] | str = 0.0
    inplace: bool = False

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        scale = numbers(self, "scale", self.scale, 2)
        ratio = numbers(self, "ratio", self.ratio, 2)
        if not 0 <= scale[0] <= scale[1] <= 1:
            raise self._wrong("scale", self.scale, "an ascending pair of fractions in 0..1")
        if not 0 < ratio[0] <= ratio[1] < math.inf:
            raise self._wrong("ratio", self.ratio, "an ascending pair of ratios above 0")
        check_probability(self, self.p)
        value: Any = self.value
        if value != "random":
            value = per_channel(self, "value", value)
            if not all(map(math.isfinite, value)):
                raise self._wrong("value", self.value, "finite")
        self._set(scale=scale, ratio=ratio, value=value)

    def to_dict(self) -> dict[str, Any]:
        """The transform as the core reads it; ``inplace`` has no meaning there."""
        own = super().to_dict()
        del own["inplace"]
        return own


def _padding(owner: Pad | RandomCrop) -> tuple[int, ...]:
    """Left, top, right and bottom."""
    sides = sides_of(owner, owner.padding, "padding", least=0)
    if len(sides) not in (1, 2, 4):
        raise owner._wrong("padding", owner.padding, "one, two or four numbers")
    return sides * (4 // len(sides))


def _filling(owner: Pad | RandomCrop) -> tuple[int, ...]:
    """A value per channel; checks the mode, too."""
    if owner.padding_mode not in PADDING_MODES:
        right = f"one of {', '.join(PADDING_MODES)}"
        raise owner._wrong("padding_mode", owner.padding_mode, right)
    fill = per_channel(owner, "fill", 0 if owner.fill is None else owner.fill)
    if not all(0 <= value <= 255 and value == int(value) for value in fill):
        raise owner._wrong("fill", owner.fill, "whole numbers in 0..255, one or one per channel")
    return tuple(int(value) for value in fill)


def _resampling(owner: RandomResizedCrop | Resize) -> dict[str, Any]:
    name = interpolation_name(owner.interpolation)
    if name is None:
        right = "one of " + ", ".join(INTERPOLATIONS)
        raise owner._wrong("interpolation", owner.interpolation, right)
    return {"interpolation": name, "antialias": flag(owner, "antialias", owner.antialias)}
