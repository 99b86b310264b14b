"""Transforms that change colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..checks import as_int
from .base import Perhaps, Range, Transform, check_probability, is_number, numbers


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
            low, high = numbers(self, name, given, 2)
        if not lowest <= low <= high <= highest or not math.isfinite(high):
            right = f"within {lowest}..{highest} and ascending"
            raise self._wrong(name, given, right)
        return None if low == high == center else (float(low), float(high))


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
            low, high = numbers(self, name, getattr(self, name), 2)
            if not lowest <= low <= high <= highest or not math.isfinite(high):
                right = f"within {lowest}..{highest} and ascending"
                raise self._wrong(name, getattr(self, name), right)
            self._set(**{name: (low, high)})
        check_probability(self, self.p)


@dataclass(frozen=True)
class Grayscale(Transform):
    """Makes the image grey.

    ``num_output_channels`` is that of the batch: 3, or 1 in a Loader with ``mode="GRAY"``, whose
    images are grey already.
    """

    num_output_channels: int = 1

    def __post_init__(self) -> None:
        """Checks the argument."""
        if self.num_output_channels not in (1, 3):
            raise self._wrong("num_output_channels", self.num_output_channels, "1 or 3")

    def to_dict(self) -> dict[str, Any]:
        """The transform as the core reads it."""
        return {"name": "Grayscale"}


@dataclass(frozen=True)
class RandomGrayscale(Perhaps):
    """Makes the image grey, in three channels, with probability ``p``."""

    p: float = 0.1


@dataclass(frozen=True)
class RandomInvert(Perhaps):
    """Inverts the colours with probability ``p``."""


@dataclass(frozen=True)
class RandomAutocontrast(Perhaps):
    """Stretches each channel to all values with probability ``p``."""


@dataclass(frozen=True)
class RandomEqualize(Perhaps):
    """Spreads each channel's values evenly, by its histogram, with probability ``p``."""


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
        check_probability(self, self.p)
        self._set(bits=bits)


@dataclass(frozen=True)
class RandomSolarize(Transform):
    """Inverts all values from ``threshold`` (0 to 255) on, with probability ``p``."""

    threshold: float
    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not is_number(self.threshold) or not 0 <= self.threshold <= 255:
            raise self._wrong("threshold", self.threshold, "a number in 0..255")
        check_probability(self, self.p)
        self._set(threshold=float(self.threshold))
