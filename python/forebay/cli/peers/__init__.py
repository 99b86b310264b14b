"""Loaders that ``forebay bench`` can measure, by name.

A peer is a module with ``make(files, recipe, batch_size, workers) -> Iterable`` of batches, each a
tensor of images or a tuple that begins with one, and ``versions() -> dict``. Adding one is a
module here and a line in `PEERS`. Peers import their libraries inside these functions, so that
each is measured without the others' memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Protocol, cast

PEERS = {
    "forebay": "forebay_loader",
    "torch-pil": "torch_pil",
}


class Peer(Protocol):
    """What a peer's module offers."""

    def make(self, files: list[str], recipe: str, batch_size: int, workers: int) -> Iterable[Any]:
        """An endless or repeatable iterable of batches over ``files``."""
        ...

    def versions(self) -> dict[str, str]:
        """Versions of the libraries that do the work."""
        ...


def peer(name: str) -> Peer:
    """The peer's module."""
    return cast(Peer, import_module(f"{__name__}.{PEERS[name]}"))
