"""What most training scripts have: DataLoader, Pillow, torchvision.transforms.

Pixels: those that the others are compared with, of Pillow's decoder and antialiased resize.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import torch

from ..recipes import RECIPES
from .copied import copied


class Images(torch.utils.data.Dataset[Any]):
    """Files opened as torchvision's ImageFolder opens them; the label is 0."""

    def __init__(self, files: list[str], transform: Any) -> None:
        """Keeps names and transform."""
        self._files = files
        self._transform = transform
        self._open = import_module("torchvision.datasets.folder").pil_loader

    def __len__(self) -> int:
        """Number of files."""
        return len(self._files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """The transformed image and its label."""
        return self._transform(self._open(self._files[index])), 0


def make(
    files: list[str], recipe: str, batch_size: int, workers: int, device: str = "cpu"
) -> Iterable[Any]:
    """A DataLoader over the files."""
    found = RECIPES[recipe]
    loader: Any = torch.utils.data.DataLoader(
        Images(files, found.torchvision()),
        batch_size=batch_size,
        shuffle=found.shuffle,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=device != "cpu",
    )
    return copied(loader, device)


def versions() -> dict[str, str]:
    """Libraries that do the work."""
    import PIL

    return {
        "torch": torch.__version__,
        "torchvision": import_module("torchvision").__version__,
        "pillow": PIL.__version__,
    }
