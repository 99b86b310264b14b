"""Automatic augmentations: random transforms from a list, as torchvision's classes draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import Interpolation, Transform, whole
from .warp import Fill, warping

_POLICIES = ("imagenet", "cifar10", "svhn")
_MAX_OPS = 64


@dataclass(frozen=True)
class AutoAugment(Transform):
    """Does one of 25 pairs of transforms, drawn from a ``policy`` found for a data set.

    ``policy`` is ``"imagenet"``, ``"cifar10"`` or ``"svhn"``, or torchvision's
    ``AutoAugmentPolicy``. ``interpolation`` and ``fill`` as for ``RandomRotation``.
    """

    policy: Any = "imagenet"
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        policy = getattr(self.policy, "value", self.policy)
        if policy not in _POLICIES:
            raise self._wrong("policy", self.policy, " or ".join(_POLICIES))
        self._set(policy=policy, **warping(self, self.interpolation, self.fill))


@dataclass(frozen=True)
class RandAugment(Transform):
    """Does ``num_ops`` transforms, drawn from 14, with one ``magnitude``.

    ``magnitude`` is a place in ``num_magnitude_bins``. ``interpolation`` and ``fill`` as for
    ``RandomRotation``.
    """

    num_ops: int = 2
    magnitude: int = 9
    num_magnitude_bins: int = 31
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        count = whole(self, "num_ops", self.num_ops, 0)
        bins = whole(self, "num_magnitude_bins", self.num_magnitude_bins, 2)
        if count > _MAX_OPS:
            raise self._wrong("num_ops", self.num_ops, f"at most {_MAX_OPS}")
        magnitude = whole(self, "magnitude", self.magnitude, 0)
        if magnitude >= bins:
            raise self._wrong("magnitude", self.magnitude, f"below num_magnitude_bins, {bins}")
        self._set(
            num_ops=count,
            magnitude=magnitude,
            num_magnitude_bins=bins,
            **warping(self, self.interpolation, self.fill),
        )


@dataclass(frozen=True)
class TrivialAugmentWide(Transform):
    """Does one transform, drawn from 14, with a magnitude drawn from ``num_magnitude_bins``.

    ``interpolation`` and ``fill`` as for ``RandomRotation``.
    """

    num_magnitude_bins: int = 31
    interpolation: Interpolation = "nearest"
    fill: Fill = None

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        bins = whole(self, "num_magnitude_bins", self.num_magnitude_bins, 2)
        self._set(num_magnitude_bins=bins, **warping(self, self.interpolation, self.fill))
