"""DataLoader, torchvision's own decoder and ``torchvision.transforms.v2`` on tensors.

Pixels: decoded by libjpeg-turbo as Pillow does, resized as uint8 with antialiasing; they differ
from Pillow's by rounding, at most one or two levels of 255.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import torch

from ..recipes import RECIPES
from .copied import copied


class Images(torch.utils.data.Dataset[Any]):
    """Files as uint8 tensors, transformed; the label is 0."""

    def __init__(self, files: list[str], transform: Any) -> None:
        """Keeps names and transform."""
        self._files = files
        self._transform = transform
        self._decode = import_module("torchvision.io").decode_image

    def __len__(self) -> int:
        """Number of files."""
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """The transformed image and its label."""
        return self._transform(self._decode(self._files[index], mode="RGB")), 0


def make(
    files: list[str], recipe: str, batch_size: int, workers: int, device: str = "cpu"
) -> Iterable[Any]:
    """A DataLoader over the files."""
    found = RECIPES[recipe]
    loader: Any = torch.utils.data.DataLoader(
        Images(files, found.torchvision_v2()),
        batch_size=batch_size,
        shuffle=found.shuffle,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=device != "cpu",
    )
    return copied(loader, device)


def versions() -> dict[str, str]:
    """Libraries that do the work."""
    return {
        "torch": torch.__version__,
        "torchvision": import_module("torchvision").__version__,
    }
