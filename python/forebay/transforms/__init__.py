"""Transforms as data: torchvision v2's names, arguments and defaults; the core executes them.

A recipe is a list of these. They hold numbers only, so they compare, print and pickle by value,
and no Python runs per sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .augment import AugMix, AutoAugment, RandAugment, TrivialAugmentWide
from .base import Transform
from .color import (
    ColorJitter,
    Grayscale,
    RandomAutocontrast,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPhotometricDistort,
    RandomPosterize,
    RandomSolarize,
)
from .conversion import Normalize, ToDtype
from .geometry import (
    CenterCrop,
    Crop,
    Pad,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from .lists import RandomApply, RandomChoice, RandomOrder
from .mix import CutMix, MixUp
from .warp import (
    GaussianBlur,
    RandomAdjustSharpness,
    RandomAffine,
    RandomPerspective,
    RandomRotation,
)

__all__ = [
    "AugMix",
    "AutoAugment",
    "CenterCrop",
    "ColorJitter",
    "Crop",
    "CutMix",
    "GaussianBlur",
    "Grayscale",
    "MixUp",
    "Normalize",
    "Pad",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
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
    "RandomPerspective",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "ToDtype",
    "Transform",
    "TrivialAugmentWide",
]

_UNNEEDED = "leave it out: batches are tensors"
# What stands here in place of transforms of torchvision's that need no counterpart.
_INSTEAD = {
    "Compose": "pass a list of transforms instead",
    "ToTensor": "use forebay.transforms.ToDtype(torch.float32, scale=True), which makes floats in "
    "0..1 as it does, or Normalize alone; without either, batches are uint8 in 0..255",
    "ToImage": _UNNEEDED,
    "PILToTensor": _UNNEEDED,
    "ToPureTensor": _UNNEEDED,
}

if not TYPE_CHECKING:  # to type checkers it would mean that every name exists

    def __getattr__(name: str) -> Any:
        """Says what to use in place of a transform that is not here."""
        advice = _INSTEAD.get(name)
        if advice is None:
            offered = ", ".join(known for known in __all__ if known != "Transform")
            advice = f"it has {offered}"
        raise AttributeError(f"forebay.transforms has no {name!r}: {advice}")
