"""Transforms of transforms: lists left to chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .base import Transform, check_probability, numbers


class _Listing(Transform):
    transforms: Sequence[Transform]

    @property
    def of_batch(self) -> bool:  # type: ignore[override]
        """Whether its members are."""
        return any(each.of_batch for each in self.transforms)


@dataclass(frozen=True)
class RandomApply(_Listing):
    """Does all of ``transforms`` with probability ``p``, or none."""

    transforms: Sequence[Transform]
    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the arguments."""
        self._set(transforms=_listed(self))
        check_probability(self, self.p)


@dataclass(frozen=True)
class RandomChoice(_Listing):
    """Does one of ``transforms``, each with its probability ``p``; by default all alike."""

    transforms: Sequence[Transform]
    p: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Checks the arguments; probabilities then add up to 1."""
        listed = _listed(self)
        given = [1.0] * len(listed) if self.p is None else self.p
        p = numbers(self, "p", given, len(listed))
        if not all(0 <= each < math.inf for each in p) or not 0 < sum(p) < math.inf:
            raise self._wrong("p", self.p, "numbers from 0 on with a sum above 0 and finite")
        if abs(sum(p) - 1) > 1e-9:
            p = tuple(each / sum(p) for each in p)
        self._set(transforms=listed, p=p)


@dataclass(frozen=True)
class RandomOrder(_Listing):
    """Does all of ``transforms`` in random order."""

    transforms: Sequence[Transform]

    def __post_init__(self) -> None:
        """Checks the list."""
        self._set(transforms=_listed(self))
        if self.of_batch:
            raise NotImplementedError(
                "RandomOrder: MixUp and CutMix are not offered in it; list them one after the "
                "other, or use RandomChoice"
            )


def _listed(owner: RandomApply | RandomChoice | RandomOrder) -> tuple[Transform, ...]:
    given = owner.transforms
    if not isinstance(given, Sequence) or not all(isinstance(each, Transform) for each in given):
        raise TypeError(
            f"{type(owner).__name__}: transforms must be a list of forebay.transforms, "
            f"got {given!r}"
        )
    if not given:
        raise owner._wrong("transforms", given, "at least one")
    if len({each.of_batch for each in given}) > 1:
        raise owner._wrong("transforms", given, "all of images, or all of batches (MixUp, CutMix)")
    return tuple(given)
