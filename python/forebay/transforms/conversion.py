"""Transforms into what is delivered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .base import DTYPES, Transform, dtype_name, flag, per_channel


@dataclass(frozen=True)
class ToDtype(Transform):
    """Converts to ``dtype``; ``scale=True`` maps 0..255 to 0..1."""

    dtype: torch.dtype
    scale: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments."""
        dtype_name(self.dtype, "ToDtype: dtype")
        flag(self, "scale", self.scale)

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
        mean, std = per_channel(self, "mean", self.mean), per_channel(self, "std", self.std)
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
