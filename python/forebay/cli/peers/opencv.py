"""A recipe with OpenCV: what ``torch-opencv`` and ``spdl`` do to one file.

Pixels: decoded by libjpeg-turbo. Resized by INTER_AREA where the image shrinks (each pixel the
mean of what it covers; a box where Pillow has a triangle) and by INTER_LINEAR where it grows.
INTER_LINEAR alone takes a third of the time but skips pixels when shrinking, which is not the
same work. Colour jitter goes by OpenCV's means, rounded to 8 bits after each step, hue in steps of
two degrees; factors, order and boxes of crops are drawn by torchvision.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..recipes import MEAN, RATIO, SCALE, STD, Recipe


class OpenCVRecipe:
    """Callable: the name of a file -> the image, float32 ``(3, H, W)``.

    Several threads and processes may call it.
    """

    def __init__(self, recipe: Recipe) -> None:
        """Keeps the recipe; turns OpenCV's own threads off, as loaders bring theirs."""
        self._recipe = recipe
        self._mean = 255 * torch.tensor(MEAN).reshape(3, 1, 1)
        self._std = 255 * torch.tensor(STD).reshape(3, 1, 1)
        import_module("cv2").setNumThreads(0)

    def __call__(self, file: str) -> Tensor:
        """The transformed image."""
        cv2: Any = import_module("cv2")
        image = cv2.imread(file, cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
        if image is None:
            raise ValueError(f"OpenCV does not read {file}")
        recipe = self._recipe
        if recipe.resized_crop:
            top, left, height, width = _transforms().RandomResizedCrop.get_params(
                torch.from_numpy(image).permute(2, 0, 1), SCALE, RATIO
            )
            size = (recipe.resized_crop, recipe.resized_crop)
            image = _resized(image[top : top + height, left : left + width], size)
        if recipe.resize:
            image = _resized(image, _size(image, recipe.resize))
        if recipe.crop:
            top, left, height, width = recipe.crop_box(*image.shape[:2])
            image = image[top : top + height, left : left + width]
        if recipe.jitter:
            image = _jittered(image, recipe.jitter)
        if random.random() < recipe.flip:
            image = cv2.flip(image, 1)
        pixels = torch.from_numpy(image).permute(2, 0, 1)
        pixels = pixels.to(torch.float32, memory_format=torch.contiguous_format)
        return pixels.sub_(self._mean).div_(self._std)


def _transforms() -> Any:
    return import_module("torchvision.transforms")


def _size(image: Any, size: int | tuple[int, int]) -> tuple[int, int]:
    """As torchvision reads it: one number is the shorter side's."""
    if isinstance(size, tuple):
        return size
    height, width = image.shape[:2]
    shorter = min(height, width)
    return int(size * height / shorter), int(size * width / shorter)


def _resized(image: Any, size: tuple[int, int]) -> Any:
    cv2: Any = import_module("cv2")
    shrinks = size[0] < image.shape[0] or size[1] < image.shape[1]
    how = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
    return cv2.resize(image, (size[1], size[0]), interpolation=how)


def _jittered(image: Any, jitter: tuple[float, float, float, float]) -> Any:
    """Brightness, contrast, saturation and hue by torchvision's draws, in its random order."""
    drawn = _transforms().ColorJitter(*jitter)
    order, *factors = drawn.get_params(
        drawn.brightness, drawn.contrast, drawn.saturation, drawn.hue
    )
    steps: tuple[Callable[[Any, float], Any], ...] = (_brighter, _contrast, _saturation, _hue)
    for step in order.tolist():
        image = steps[step](image, factors[step])
    return image


def _brighter(image: Any, factor: float) -> Any:
    return import_module("cv2").convertScaleAbs(image, alpha=factor)


def _contrast(image: Any, factor: float) -> Any:
    cv2: Any = import_module("cv2")
    mean = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).mean()
    table = np.clip(np.arange(256) * factor + mean * (1 - factor), 0, 255).astype(np.uint8)
    return cv2.LUT(image, table)


def _saturation(image: Any, factor: float) -> Any:
    cv2: Any = import_module("cv2")
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return cv2.addWeighted(image, factor, grey, 1 - factor, 0)


def _hue(image: Any, turns: float) -> Any:
    cv2: Any = import_module("cv2")
    hsv = cv2.cvtColor(image, cv2.COLOR_RGB2HSV)
    table = ((np.arange(256) + round(180 * turns)) % 180).astype(np.uint8)
    hsv[..., 0] = cv2.LUT(np.ascontiguousarray(hsv[..., 0]), table)
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
