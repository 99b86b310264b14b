"""Recipes that ``forebay bench`` runs, in each library's own words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .. import transforms as T

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Recipe:
    """One recipe; the functions import what they need."""

    forebay: Callable[[], list[T.Transform]]
    torchvision: Callable[[], Any]
    shuffle: bool


def _train() -> list[T.Transform]:
    return [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.Normalize(MEAN, STD)]


def _train_torchvision() -> Any:
    V: Any = import_module("torchvision.transforms")
    return V.Compose(
        [
            V.RandomResizedCrop(224),
            V.RandomHorizontalFlip(),
            V.ToTensor(),
            V.Normalize(MEAN, STD),
        ]
    )


def _val() -> list[T.Transform]:
    return [T.Resize(256), T.CenterCrop(224), T.Normalize(MEAN, STD)]


def _val_torchvision() -> Any:
    V: Any = import_module("torchvision.transforms")
    return V.Compose([V.Resize(256), V.CenterCrop(224), V.ToTensor(), V.Normalize(MEAN, STD)])


RECIPES = {
    "imagenet-train": Recipe(_train, _train_torchvision, shuffle=True),
    "imagenet-val": Recipe(_val, _val_torchvision, shuffle=False),
}
