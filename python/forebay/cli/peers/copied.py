"""Batches of a loader on the host, copied to a GPU as training scripts do it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch


def copied(batches: Iterable[Any], device: str) -> Iterable[Any]:
    """The batches on the device; page-locked ones are copied while the next is waited for."""
    return batches if device == "cpu" else _Copied(batches, device)


class _Copied:
    def __init__(self, batches: Iterable[Any], device: str) -> None:
        self._batches = batches
        self._device = device

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            if isinstance(batch, torch.Tensor):
                yield batch.to(self._device, non_blocking=True)
            else:
                yield tuple(part.to(self._device, non_blocking=True) for part in batch)
