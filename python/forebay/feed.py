"""Feeds from Python: batches of indices that a sampler names, pushed to the core.

**Invariants**
- ORD-1: a sampler is this rank's share as it stands; rank and world size are not applied to it.
- RES-1: a sampler with ``state_dict`` is snapshotted after each batch, and the state speaks of
  batches handed out. Others are replayed: the state of their generator (or of torch's) when the
  epoch began is kept, and the indices handed out are skipped.
"""

from __future__ import annotations

import base64
import copy
import operator
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor

from ._native import Pipeline
from .options import FeedOptions

_END: Any = object()


class PushedFeed:
    """Turns a sampler or batch sampler into batches of indices, one epoch at a time."""

    def __init__(self, options: FeedOptions, length: Callable[[], int | None]) -> None:
        """Takes the sampler as it stands; nothing is drawn before `begin`."""
        self._makes_batches = options.batch_sampler is not None
        self._sampler: Any = options.batch_sampler if self._makes_batches else options.sampler
        self._batch_size = options.batch_size
        self._drop_last = options.resolved_last_batch(1) == "drop"
        self._source_length = length
        self._length: int | None = None
        self._generator = _generator_of(self._sampler)
        self._stateful = all(
            callable(getattr(self._sampler, name, None))
            for name in ("state_dict", "load_state_dict")
        )
        self._batches: Iterator[tuple[Tensor, Any]] = iter(())
        self._ahead: tuple[Tensor, Any] | None = None
        self._ended = True
        self._pushed: deque[Any] = deque()
        self._delivered: Any = None
        self._start: dict[str, Any] = {}
        # What the sampler raised, once all batches before it are delivered.
        self.failure: Exception | None = None

    def __len__(self) -> int:
        """Batches in an epoch; TypeError if the sampler has no length."""
        count = len(self._sampler)
        if self._makes_batches:
            return count
        return count // self._batch_size if self._drop_last else -(-count // self._batch_size)

    def begin(self, position: int, saved: dict[str, Any] | None) -> None:
        """Begins an epoch, or goes on at ``position`` with what `state` had returned."""
        saved = saved or {}
        if saved.get("epoch") is not None and hasattr(self._sampler_with_epoch(), "set_epoch"):
            self._sampler_with_epoch().set_epoch(saved["epoch"])
        self._length = self._source_length()
        self._pushed.clear()
        self._delivered = None
        self._ended = False
        if position and self._stateful and saved.get("state") is not None:
            self._sampler.load_state_dict(copy.deepcopy(saved["state"]))
            self._delivered = saved["state"]
            self._start = self._epoch_state() | {"rng": None}
            self._batches = self._chunks(iter(self._sampler))
        else:
            self._replay(position, saved.get("rng"))
        self.failure = None
        self._ahead = next(self._batches, None)

    def pump(self, pipeline: Pipeline) -> None:
        """Pushes as many batches as the core wants, and says so when the last is among them.

        One batch is read ahead, so that the core knows the last batch for the last when it hands
        it out.
        """
        while not self._ended and (self._ahead is None or pipeline.feed_wanted() > 0):
            if self._ahead is not None:
                following = self._read_ahead()
                indices, snapshot = self._ahead
                pipeline.feed(indices)
                self._pushed.append(snapshot)
                self._ahead = following
            if self._ahead is None:
                pipeline.feed_end()
                self._ended = True

    def _read_ahead(self) -> tuple[Tensor, Any] | None:
        """The batch after the next; what the sampler raises waits for its turn."""
        try:
            return next(self._batches, None)
        except Exception as error:
            self.failure = error
            return None

    def raise_failure(self) -> None:
        """Raises what the sampler raised, once; the epoch is over then."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def delivered(self) -> None:
        """A batch was handed out."""
        if self._pushed:
            self._delivered = self._pushed.popleft()

    def state(self, running: bool) -> dict[str, Any]:
        """What `begin` needs to go on; ``running``: within the epoch that was begun last."""
        if not running:
            own = self._generator
            return self._epoch_state() | {"rng": None if own is None else _text(own.get_state())}
        if self._stateful:
            return self._start | {"state": copy.deepcopy(self._delivered)}
        return dict(self._start)

    def set_epoch(self, epoch: int) -> None:
        """Hands on ``set_epoch`` to samplers that have it (DistributedSampler)."""
        sampler = self._sampler_with_epoch()
        if callable(getattr(sampler, "set_epoch", None)):
            sampler.set_epoch(epoch)

    def _replay(self, position: int, rng: str | None) -> None:
        own = self._generator
        if own is not None and rng is not None:
            own.set_state(_tensor(rng))
        start = rng or _text(own.get_state() if own is not None else torch.get_rng_state())
        self._start = self._epoch_state() | {"rng": start}
        if own is not None or rng is None:
            self._skip_to(position)
            return
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(_tensor(rng))
            self._skip_to(position)

    def _skip_to(self, position: int) -> None:
        iterator = iter(self._sampler)
        skipped = 0
        if self._makes_batches:
            while skipped < position and (batch := next(iterator, _END)) is not _END:
                skipped += sum(1 for _ in batch)
        else:
            skipped = sum(1 for _ in islice(iterator, position))
        if skipped != position:
            raise ValueError(
                f"the state's position {position} is not one between batches of this sampler "
                f"(got to {skipped}); load it with the sampler that it was saved with"
            )
        # A sampler may draw from torch's generator when its first index is asked for: that happens
        # here, while the generator is the one that the state was taken from.
        first = list(islice(iterator, 1))
        self._batches = self._chunks(chain(first, iterator))

    def _chunks(self, iterator: Iterator[Any]) -> Iterator[tuple[Tensor, Any]]:
        while True:
            if self._makes_batches:
                batch = next(iterator, _END)
                if batch is _END:
                    return
            else:
                batch = list(islice(iterator, self._batch_size))
                if not batch or (self._drop_last and len(batch) < self._batch_size):
                    return
            snapshot = copy.deepcopy(self._sampler.state_dict()) if self._stateful else None
            yield self._checked(batch), snapshot

    def _checked(self, batch: Any) -> Tensor:
        listed = batch.tolist() if isinstance(batch, Tensor) else batch
        try:
            indices = [operator.index(index) for index in listed]
        except TypeError as error:
            raise TypeError(f"samplers must give ints, got {listed!r:.80}") from error
        if not indices:
            raise ValueError("batch_sampler gave an empty batch; expected at least one index")
        low, high = min(indices), max(indices)
        if low < 0 or (self._length is not None and high >= self._length):
            right = ">= 0" if self._length is None else f"in 0..{self._length - 1}"
            raise IndexError(f"samplers must give indices {right}, got {low if low < 0 else high}")
        return torch.tensor(indices, dtype=torch.int64, device="cpu")

    def _sampler_with_epoch(self) -> Any:
        if hasattr(self._sampler, "set_epoch"):
            return self._sampler
        return getattr(self._sampler, "sampler", None)

    def _epoch_state(self) -> dict[str, Any]:
        epoch = getattr(self._sampler_with_epoch(), "epoch", None)
        return {"epoch": epoch if isinstance(epoch, int) else None}


def _generator_of(sampler: Any) -> torch.Generator | None:
    """The sampler's own generator, or that of the sampler within a batch sampler."""
    for holder in (sampler, getattr(sampler, "sampler", None)):
        own = getattr(holder, "generator", None)
        if isinstance(own, torch.Generator):
            return own
    return None


def _text(state: Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _tensor(text: str) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
