"""Transforms that turn, shear and tilt, and those that look at a pixel's neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .base import (
    Interpolation,
    Size,
    Transform,
    check_probability,
    flag,
    interpolation_name,
    is_number,
    numbers,
    pair,
    per_channel,
)

Fill = float | Sequence[float] | None
_OFFERED = ("nearest", "bilinear")
_MAX_KERNEL = 255
_MAX_SIGMA = 1e6


@dataclass(frozen=True)
class RandomRotation(Transform):
    """Turns the image by a random angle in ``degrees``, counter-clockwise.

    About its middle, or ``center`` in pixels, ``(x, y)``. With ``expand=True`` the image becomes as
    large as its turned self. What lies outside it is ``fill``; with ``None`` it is black that mixes
    with the border's pixels. ``interpolation`` is ``"nearest"`` or ``"bilinear"``.
    """

    degrees: float | Sequence[float]
    interpolation: Interpolation = "nearest"
    expand: bool = False
    center: Sequence[float] | None = None
    fill: Fill = 0

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        self._set(
            degrees=_angles(self, "degrees", self.degrees),
            expand=flag(self, "expand", self.expand),
            center=_center(self, self.center),
            **warping(self, self.interpolation, self.fill),
        )


@dataclass(frozen=True)
class RandomAffine(Transform):
    """Turns, moves, scales and shears the image by random amounts, about its middle or ``center``.

    ``degrees`` and ``shear`` (across, or across and down) are in degrees, ``translate`` is the
    largest part of width and height. ``interpolation`` and ``fill`` as for ``RandomRotation``.
    """

    degrees: float | Sequence[float]
    translate: Sequence[float] | None = None
    scale: Sequence[float] | None = None
    shear: float | Sequence[float] | None = None
    interpolation: Interpolation = "nearest"
    fill: Fill = 0
    center: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        translate, scale = self.translate, self.scale
        if translate is not None:
            translate = numbers(self, "translate", translate, 2)
            if not all(0 <= part <= 1 for part in translate):
                raise self._wrong("translate", self.translate, "two parts in 0..1")
        if scale is not None:
            scale = numbers(self, "scale", scale, 2)
            if not 0 < scale[0] <= scale[1] < math.inf:
                raise self._wrong("scale", self.scale, "an ascending pair of numbers above 0")
        self._set(
            degrees=_angles(self, "degrees", self.degrees),
            translate=translate,
            scale=scale,
            shear=None if self.shear is None else _shear(self, self.shear),
            center=_center(self, self.center),
            **warping(self, self.interpolation, self.fill),
        )


@dataclass(frozen=True)
class RandomPerspective(Transform):
    """Tilts the image with probability ``p``: points near its corners become the corners.

    ``distortion_scale``, in 0..1, is how far they are drawn from these, as a part of the image's
    half. ``interpolation`` and ``fill`` as for ``RandomRotation``.
    """

    distortion_scale: float = 0.5
    p: float = 0.5
    interpolation: Interpolation = "bilinear"
    fill: Fill = 0

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        if not is_number(self.distortion_scale) or not 0 <= self.distortion_scale <= 1:
            raise self._wrong("distortion_scale", self.distortion_scale, "a number in 0..1")
        check_probability(self, self.p)
        self._set(
            distortion_scale=float(self.distortion_scale),
            **warping(self, self.interpolation, self.fill),
        )


@dataclass(frozen=True)
class RandomAdjustSharpness(Transform):
    """Sharpens with probability ``p``: a factor of 0 blurs, 1 changes nothing, 2 doubles."""

    sharpness_factor: float
    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not is_number(self.sharpness_factor) or not 0 <= self.sharpness_factor < math.inf:
            raise self._wrong("sharpness_factor", self.sharpness_factor, "a number from 0 on")
        check_probability(self, self.p)
        self._set(sharpness_factor=float(self.sharpness_factor))


@dataclass(frozen=True)
class GaussianBlur(Transform):
    """Blurs with a Gaussian over ``kernel_size`` pixels, odd, one number or (across, down).

    Its standard deviation is drawn from ``sigma``. The image is mirrored at its border.
    """

    kernel_size: Size
    sigma: float | Sequence[float] = (0.1, 2.0)

    def __post_init__(self) -> None:
        """Checks and normalises the arguments."""
        kernel = pair(self, self.kernel_size)
        if not all(side % 2 == 1 and side <= _MAX_KERNEL for side in kernel):
            raise self._wrong("kernel_size", self.kernel_size, f"odd, up to {_MAX_KERNEL}")
        given = (self.sigma, self.sigma) if is_number(self.sigma) else self.sigma
        sigma = numbers(self, "sigma", given, 2)
        if not 0 < sigma[0] <= sigma[1] <= _MAX_SIGMA:
            right = f"an ascending pair of numbers above 0, up to {_MAX_SIGMA:g}"
            raise self._wrong("sigma", self.sigma, right)
        self._set(kernel_size=kernel, sigma=sigma)


def warping(owner: Transform, interpolation: object, fill: object) -> dict[str, Any]:
    """The filter and the fill of a transform that warps."""
    name = interpolation_name(interpolation)
    if name not in _OFFERED:
        raise owner._wrong("interpolation", interpolation, " or ".join(_OFFERED))
    if fill is None:
        return {"interpolation": name, "fill": None}
    if isinstance(fill, dict):
        raise NotImplementedError(
            f"{type(owner).__name__}: fill={fill!r} is not offered; use one value, or one a channel"
        )
    values = per_channel(owner, "fill", fill)
    if not all(0 <= value <= 255 and value == int(value) for value in values):
        raise owner._wrong("fill", fill, "None, or whole numbers in 0..255, one or one per channel")
    return {"interpolation": name, "fill": tuple(int(value) for value in values)}


def _angles(owner: Transform, argument: str, value: object) -> tuple[float, ...]:
    if is_number(value):
        if not 0 <= value < math.inf:
            raise owner._wrong(argument, value, "a number from 0 on, or an ascending pair")
        return (-float(value), float(value))
    low, high = numbers(owner, argument, value, 2)
    if not -math.inf < low <= high < math.inf:
        raise owner._wrong(argument, value, "an ascending pair of finite numbers")
    return (low, high)


def _shear(owner: RandomAffine, value: object) -> tuple[float, ...]:
    """The range across, then down."""
    if isinstance(value, Sequence) and len(value) == 4:
        return _angles(owner, "shear", value[:2]) + _angles(owner, "shear", value[2:])
    return (*_angles(owner, "shear", value), 0.0, 0.0)


def _center(owner: Transform, value: object) -> tuple[float, ...] | None:
    if value is None:
        return None
    center = numbers(owner, "center", value, 2)
    if not all(map(math.isfinite, center)):
        raise owner._wrong("center", value, "two finite numbers")
    return center
