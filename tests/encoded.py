"""Encoded images as the ops take them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def encoded_tensor(data: bytes) -> Tensor:
    """The bytes of a file, uint8 ``(n,)``."""
    copied = bytearray(data)
    return (
        torch.frombuffer(copied, dtype=torch.uint8) if copied else torch.empty(0, dtype=torch.uint8)
    )


def packed(items: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Items end to end, and where each begins."""
    offsets = torch.zeros(len(items) + 1, dtype=torch.int64)
    if items:
        offsets[1:] = torch.tensor([len(item) for item in items]).cumsum(0)
    return torch.cat([torch.empty(0, dtype=torch.uint8), *items]), offsets
