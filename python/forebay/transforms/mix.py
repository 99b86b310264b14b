"""Transforms of whole batches: images mixed with each other, and their labels with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Transform, is_number, whole


@dataclass(frozen=True, kw_only=True)
class _Mixing(Transform):
    of_batch: ClassVar[bool] = True

    alpha: float = 1.0
    num_classes: int | None = None
    labels_getter: str = "default"

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not is_number(self.alpha) or not 0 < self.alpha < math.inf:
            raise self._wrong("alpha", self.alpha, "a number above 0")
        count = self.num_classes
        if count is not None:
            count = whole(self, "num_classes", count, 1)
        if self.labels_getter != "default":
            raise NotImplementedError(
                f"{type(self).__name__}: labels_getter is not offered, as labels are those of the "
                "loader's source; leave it out"
            )
        self._set(alpha=float(self.alpha), num_classes=count)

    def to_dict(self) -> dict[str, Any]:
        """As the core reads it, which knows no labels."""
        return {"name": type(self).__name__, "alpha": self.alpha}


@dataclass(frozen=True, kw_only=True)
class MixUp(_Mixing):
    """Adds to each image of a batch that of the sample before it, and to its label that one's.

    An image counts for ``lam``, the other for ``1 - lam``, drawn for each batch from the beta
    distribution of shapes ``alpha`` and ``alpha``. The first image meets the last; skipped samples
    are left out. It comes last in a recipe, which must make floats; every operation is rounded to
    their type.

    Labels, class numbers below ``num_classes`` or rows of a number for each class, become float32
    ``(batch, num_classes)`` (rows of floats keep their type). By default that is the number of the
    source's classes. What is drawn depends on seed, epoch and the position of the batch's first
    sample, so on the batch size, too (RNG-1). Zhang et al., "mixup: Beyond Empirical Risk
    Minimization", 2017.
    """


@dataclass(frozen=True, kw_only=True)
class CutMix(_Mixing):
    """Puts into each image of a batch a box of that of the sample before it.

    All images get the same box: of ``sqrt(1 - lam)`` of their sides around a place that is drawn,
    as far as it lies inside; ``lam`` is drawn from the beta distribution of shapes ``alpha`` and
    ``alpha``. Labels become sums of both, by area; all else is as for `MixUp`, but images may be
    uint8. Yun et al., "CutMix: Regularization Strategy to Train Strong Classifiers with
    Localizable Features", 2019.
    """
