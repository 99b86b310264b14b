"""Automatic augmentations: random transforms from a list, as torchvision's classes draw them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import Interpolation, Transform, flag, is_number, whole
from .warp import Fill, warping

_POLICIES = ("imagenet", "cifar10", "svhn")
_MAX_OPS = 64
_MAX_SEVERITY = 10
_MAX_WIDTH = 16
_MAX_ALPHA = 1e6


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


@dataclass(frozen=True)
class AugMix(Transform):
    """Mixes an image with what ``mixture_width`` chains of transforms make of it.

    A chain is ``chain_depth`` transforms, or one to three if that is not positive, drawn from 13,
    or without brightness, colour, contrast and sharpness from 9 (``all_ops=False``), with
    magnitudes up to place ``severity`` of ten. The image's weight has the beta distribution of
    shapes ``alpha`` and ``alpha``, what is left is shared by a Dirichlet distribution of ``alpha``.
    Weighted sums are float32, rounded towards zero. ``interpolation`` and ``fill`` as for
    ``RandomRotation``. Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve
    Robustness and Uncertainty", 2020.
    """

    severity: int = 3
    mixture_width: int = 3
    chain_depth: int = -1
    alpha: float = 1.0
    all_ops: bool = True
    interpolation: Interpolation = "bilinear"
    fill: Fill = None

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        severity = whole(self, "severity", self.severity, 1)
        if severity > _MAX_SEVERITY:
            raise self._wrong("severity", self.severity, f"at most {_MAX_SEVERITY}")
        width = whole(self, "mixture_width", self.mixture_width, 0)
        if width > _MAX_WIDTH:
            raise self._wrong("mixture_width", self.mixture_width, f"at most {_MAX_WIDTH}")
        depth = whole(self, "chain_depth", self.chain_depth, -1)
        if depth > _MAX_OPS:
            raise self._wrong("chain_depth", self.chain_depth, f"at most {_MAX_OPS}")
        if not is_number(self.alpha) or not 0 < self.alpha <= _MAX_ALPHA:
            raise self._wrong("alpha", self.alpha, f"a number above 0, at most {_MAX_ALPHA:g}")
        self._set(
            severity=severity,
            mixture_width=width,
            chain_depth=depth,
            alpha=float(self.alpha),
            all_ops=flag(self, "all_ops", self.all_ops),
            **warping(self, self.interpolation, self.fill),
        )

    def to_dict(self) -> dict[str, Any]:
        """As the core reads it."""
        drawn = self.chain_depth <= 0
        return super().to_dict() | {"chain_depth": None if drawn else self.chain_depth}
