"""DataLoader with OpenCV's decoder and resize.

Pixels: see ``opencv.py``; the resize averages with a box instead of a triangle.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import torch

from ..recipes import RECIPES
from .copied import copied
from .opencv import OpenCVRecipe


class Images(torch.utils.data.Dataset[Any]):
    """Files read and transformed with OpenCV; the label is 0."""

    def __init__(self, files: list[str], transform: OpenCVRecipe) -> None:
        """Keeps names and transform."""
        self._files = files
        self._transform = transform

    def __len__(self) -> int:
        """Number of files."""
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """The transformed image and its label."""
        return self._transform(self._files[index]), 0


def make(
    files: list[str], recipe: str, batch_size: int, workers: int, device: str = "cpu"
) -> Iterable[Any]:
    """A DataLoader over the files."""
    found = RECIPES[recipe]
    loader: Any = torch.utils.data.DataLoader(
        Images(files, OpenCVRecipe(found)),
        batch_size=batch_size,
        shuffle=found.shuffle,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=device != "cpu",
    )
    return copied(loader, device)


def versions() -> dict[str, str]:
    """Libraries that do the work."""
    return {"torch": torch.__version__} | {
        name: import_module(module).__version__
        for name, module in (("torchvision", "torchvision"), ("opencv", "cv2"))
    }
