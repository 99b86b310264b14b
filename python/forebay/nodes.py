"""A Loader among torchdata's nodes. Importing this module needs torchdata.

**Invariants**
- RES-1: a node's state is its loader's: it speaks of batches handed out, so a node that reads
  ahead (Prefetcher, PinMemory) or `torchdata.nodes.Loader` resumes exactly.
"""

from __future__ import annotations

import importlib
from typing import Any

from .iterator import BatchIterator
from .loader import Loader

__all__ = ["LoaderNode"]

try:
    # By name, since type checkers know no types of it, whether it is installed or not.
    BaseNode: Any = importlib.import_module("torchdata.nodes").BaseNode
except ImportError as error:
    raise ImportError(
        "forebay.nodes needs torchdata 0.11 or later: pip install 'torchdata>=0.11'"
    ) from error


class LoaderNode(BaseNode):  # type: ignore[misc]
    """Batches of a `forebay.Loader` as a source node.

    Args:
        loader: gives the batches; it belongs to the node from here on. Its ``state_dict`` is the
            node's state.

    Raises:
        TypeError: ``loader`` is not a `forebay.Loader`.
        SampleError: from ``next``, under ``on_error="raise"``; ``next`` goes on with the next
            batch. Nodes with a thread of their own end at an exception: before these use
            ``on_error="skip"`` or ``"replace"``.

    Every ``reset`` without a state begins the loader's next epoch, 0 first; one with a state goes
    on where that was saved, also with other threads, batch size or world size. The state after
    the last batch is the beginning of the next epoch.

    Determinism: as of the loader.
    Threads: a node is used from one thread at a time.
    """

    def __init__(self, loader: Loader) -> None:
        """Reads nothing yet."""
        super().__init__()
        if not isinstance(loader, Loader):
            kind = type(loader)
            raise TypeError(
                f"loader must be a forebay.Loader, got {kind.__module__}.{kind.__qualname__}; use "
                "torchdata.nodes.IterableWrapper for other iterables"
            )
        self.loader = loader
        self._batches: BatchIterator | None = None

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begins the next epoch, or goes on where ``initial_state`` was saved."""
        super().reset(initial_state)
        if initial_state is not None:
            self.loader.load_state_dict(initial_state)
        self._batches = iter(self.loader)

    def next(self) -> Any:
        """The next batch, in the shape that the loader gives it."""
        assert self._batches is not None  # BaseNode resets before the first next
        return next(self._batches)

    def get_state(self) -> dict[str, Any]:
        """Where the loader stands; small, and fit for JSON."""
        return self.loader.state_dict()
