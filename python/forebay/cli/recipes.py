"""Recipes that ``forebay bench`` runs: one description each, which every peer carries out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from .. import transforms as T
from .pictures import camera_pictures, large_pictures

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)


@dataclass(frozen=True)
class Recipe:
    """Steps in the order of the fields, then to float32 ``(3, H, W)`` and `MEAN` and `STD`.

    Sizes are ``(height, width)``.
    """

    shuffle: bool
    resized_crop: int | None = None  # side of a RandomResizedCrop of `SCALE` and `RATIO`
    resize: int | tuple[int, int] | None = None  # shorter side, or both
    crop: tuple[int, int] | None = None  # centred
    bottom: bool = False  # the crop keeps the lowest rows instead; resize gives both sides
    jitter: tuple[float, float, float, float] | None = None
    flip: float = 0.0
    rand_augment: tuple[int, int] | None = None  # transforms, and their magnitude
    batch_size: int = 64
    # Not of the files themselves but of what this makes of them.
    pictures: Callable[[list[str]], list[str]] | None = None

    @property
    def peers(self) -> tuple[str, ...] | None:
        """Who carries it out; None for all."""
        return ("forebay", "torch-pil", "torch-v2") if self.rand_augment else None

    def crop_box(self, height: int, width: int) -> tuple[int, int, int, int]:
        """Top, left, height and width of `crop` in an image that is at least as large."""
        assert self.crop is not None
        down, across = height - self.crop[0], width - self.crop[1]
        return down if self.bottom else round(down / 2), round(across / 2), *self.crop

    @property
    def fixed_box(self) -> tuple[int, int, int, int] | None:
        """The box of a crop that is at the same place of every image."""
        if self.bottom and isinstance(self.resize, tuple):
            return self.crop_box(*self.resize)
        return None

    def forebay(self) -> list[T.Transform]:
        """In Forebay's transforms."""
        steps: list[T.Transform] = []
        if self.resized_crop:
            steps.append(T.RandomResizedCrop(self.resized_crop, SCALE, RATIO))
        if self.resize:
            steps.append(T.Resize(self.resize))
        if self.fixed_box:
            steps.append(T.Crop(*self.fixed_box))
        elif self.crop:
            steps.append(T.CenterCrop(self.crop))
        if self.jitter:
            steps.append(T.ColorJitter(*self.jitter))
        if self.flip:
            steps.append(T.RandomHorizontalFlip(self.flip))
        if self.rand_augment:
            steps.append(T.RandAugment(*self.rand_augment))
        return [*steps, T.Normalize(MEAN, STD)]

    def torchvision(self) -> Any:
        """In ``torchvision.transforms`` (v1), for images of Pillow."""
        V: Any = import_module("torchvision.transforms")
        return V.Compose([*self._common(V), V.ToTensor(), V.Normalize(MEAN, STD)])

    def torchvision_v2(self) -> Any:
        """In ``torchvision.transforms.v2``, for uint8 tensors ``(3, H, W)``."""
        V: Any = import_module("torchvision.transforms.v2")
        float32 = import_module("torch").float32
        steps = [*self._common(V, antialias=True), V.ToDtype(float32, scale=True)]
        return V.Compose([*steps, V.Normalize(MEAN, STD)])

    def _common(self, V: Any, **resampling: bool) -> list[Any]:
        """The steps that v1 and v2 call by the same names."""
        steps = []
        if self.resized_crop:
            steps.append(V.RandomResizedCrop(self.resized_crop, SCALE, RATIO, **resampling))
        if self.resize:
            steps.append(V.Resize(self.resize, **resampling))
        if self.fixed_box:
            at = dict(zip(("top", "left", "height", "width"), self.fixed_box, strict=True))
            steps.append(V.Lambda(partial(V.functional.crop, **at)))
        elif self.crop:
            steps.append(V.CenterCrop(self.crop))
        if self.jitter:
            steps.append(V.ColorJitter(*self.jitter))
        if self.flip:
            steps.append(V.RandomHorizontalFlip(self.flip))
        if self.rand_augment:
            steps.append(V.RandAugment(*self.rand_augment))
        return steps


RECIPES = {
    "imagenet-train": Recipe(shuffle=True, resized_crop=224, flip=0.5),
    "imagenet-val": Recipe(shuffle=False, resize=256, crop=(224, 224)),
    "imagenet-randaugment": Recipe(shuffle=True, resized_crop=224, flip=0.5, rand_augment=(2, 9)),
    "photo-12mp": Recipe(
        shuffle=True, resized_crop=224, flip=0.5, batch_size=16, pictures=large_pictures
    ),
    # The cameras of a driving data set. The upper part of their pictures is sky: the rows 204..576
    # are kept.
    "multicam": Recipe(
        shuffle=True,
        resize=(576, 1024),
        crop=(372, 1024),
        bottom=True,
        jitter=(0.4, 0.4, 0.4, 0.1),
        flip=0.5,
        batch_size=48,
        pictures=camera_pictures,
    ),
}
