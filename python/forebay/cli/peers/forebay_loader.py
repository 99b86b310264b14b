"""Forebay itself, with default options unless others are given.

Pixels: those of torchvision v2 on tensors that Pillow decoded (docs/transforms.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ... import FileList, Loader, _native
from ..recipes import RECIPES


def make(
    files: list[str],
    recipe: str,
    batch_size: int,
    workers: int,
    device: str = "cpu",
    dtype: str = "float32",
    **options: Any,
) -> Iterable[Any]:
    """A loader over the files; ``options`` are more of its keywords."""
    found = RECIPES[recipe]
    return Loader(
        FileList(files, labels=[0] * len(files)),
        transforms=found.forebay(),
        batch_size=batch_size,
        shuffle=found.shuffle,
        num_workers=workers,
        device=device,
        dtype=getattr(torch, dtype),
        **options,
    )


def versions() -> dict[str, str]:
    """Forebay's core and torch."""
    info = _native.system_info()
    return {
        "forebay": str(info["version"]),
        "simd": str(info["simd"]),
        "torch": torch.__version__,
    }
