"""A Loader among torchdata's nodes. Importing this module needs torchdata.

**Invariants**
- RES-1: a node's state is its loader's: it speaks of batches handed out, so a node that reads
  ahead (Prefetcher, PinMemory) or `torchdata.nodes.Loader` resumes exactly.
- As with torchdata's nodes, a state from the end of an epoch says that it has ended: what resumes
  there gives no batch before the next ``reset``, however many epochs the nodes around it count.
"""

from __future__ import annotations

import importlib
from typing import Any

from .iterator import BatchIterator
from .loader import Loader

__all__ = ["LoaderNode"]

# In a state: the epoch before the one that it names has given all its batches.
_ENDED = "ended"

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
        loader: gives the batches; it belongs to the node from here on. The node's state is its
            ``state_dict`` and ``ended``, whether the epoch's last batch was given.

    Raises:
        TypeError: ``loader`` is not a `forebay.Loader`.
        SampleError: from ``next``, under ``on_error="raise"``; ``next`` goes on with the next
            batch. Nodes with a thread of their own end at an exception: before these use
            ``on_error="skip"`` or ``"replace"``.

    Every ``reset`` without a state begins the loader's next epoch, 0 first; one with a state goes
    on where that was saved, also with other threads, batch size or world size. After the last
    batch that is the end of the epoch: ``next`` raises StopIteration until the next ``reset``.
    A copy or a pickle holds the loader's options and the state, and goes on from there.

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
        self._resumed: dict[str, Any] | None = None  # of a copy, until it is used

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begins the next epoch, or goes on where ``initial_state`` was saved."""
        super().reset(initial_state)
        resumed, self._resumed = self._resumed, None
        if initial_state is None:
            if resumed is not None:
                self.loader.set_epoch(resumed["epoch"] + (not resumed[_ENDED]))
            self._batches = iter(self.loader)
            return
        state = dict(initial_state)
        ended = state.pop(_ENDED, False)
        self.loader.load_state_dict(state)
        self._batches = None if ended else iter(self.loader)

    def next(self) -> Any:
        """The next batch, in the shape that the loader gives it."""
        if self._resumed is not None:
            self.reset(self._resumed)
        if self._batches is None:  # resumed at an epoch's end
            raise StopIteration
        return next(self._batches)

    def get_state(self) -> dict[str, Any]:
        """Where the loader stands; small, and fit for JSON."""
        if self._resumed is not None:
            return dict(self._resumed)
        state = self.loader.state_dict()
        ended = self._batches is None or state["epoch"] != self._batches.epoch
        return state | {_ENDED: ended}

    def __getstate__(self) -> dict[str, Any]:
        """The loader's options, and the state if there is one yet."""
        begun = self._batches is not None or self.loader._upcoming is not None
        own = {"_batches": None, "_resumed": self.get_state() if begun else self._resumed}
        return self.__dict__ | own
