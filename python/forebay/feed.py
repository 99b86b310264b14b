"""Feeds from Python: batches of indices that a sampler names, pushed to the core.

**Invariants**
- ORD-1: a sampler is this rank's share as it stands; rank and world size are not applied to it.
- RES-1: a sampler with ``state_dict`` is snapshotted after each batch, and the state speaks of
  batches handed out. Others are replayed: the state of their generator (or of torch's) when the
  epoch began is kept, and the indices handed out are skipped.
- What a sampler raises that is no Exception (Ctrl-C) leaves at once and loses no index: the next
  call goes on with the same iterator.
- An epoch that a sampler's exception cuts short is not complete: the state stays at the last
  batch handed out.
"""

from __future__ import annotations

import base64
import copy
import operator
import sys
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
        self._rewind(iter(()))
        self._ended = True
        self._pushed: deque[Any] = deque()
        self._delivered: Any = None
        self._start: dict[str, Any] = {}
        # What the sampler raised; it waits until all batches before it are delivered.
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
        if position and self._stateful and saved.get("state") is not None:
            self._sampler.load_state_dict(copy.deepcopy(saved["state"]))
            self._delivered = saved["state"]
            self._start = self._epoch_state() | {"rng": None}
            self._rewind(iter(self._sampler))
        else:
            self._replay(position, saved.get("rng"))
        self.failure = None
        self._ended = False

    def pump(self, pipeline: Pipeline) -> None:
        """Pushes as many batches as the core wants, and says so when the last is among them.

        One batch is read ahead, so that the core knows the last batch for the last when it hands
        it out. What the sampler raised is raised here, once, when all batches before it were
        handed out; the call after that says that the epoch is over.
        """
        while not self._ended:
            if not self._drawn:
                self._draw()
            if self._drawn:
                if pipeline.feed_wanted() == 0:
                    return
                if len(self._drawn) == 1:
                    self._draw()
                indices, snapshot = self._drawn[0]
                pipeline.feed(indices)
                self._pushed.append(snapshot)
                self._drawn.popleft()
            elif self.failure is None:
                pipeline.feed_end()
                self._ended = True
            elif self._pushed:
                return
            else:
                failure, self.failure = self.failure, None
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
        self._rewind(chain(first, iterator))

    def _rewind(self, iterator: Iterator[Any]) -> None:
        self._walk = _Walk(iterator)
        self._batch: _Walk | None = None  # the batch sampler's, while it is read
        self._part: list[Any] = []
        self._drawn: deque[tuple[Tensor, Any]] = deque()

    def _draw(self) -> None:
        """Reads one more batch, if there is one; what the sampler raises waits for its turn."""
        if self.failure is not None:
            return
        try:
            if self._complete():
                snapshot = copy.deepcopy(self._sampler.state_dict()) if self._stateful else None
                self._drawn.append((self._checked(self._part), snapshot))
                self._part, self._batch = [], None
        except Exception as error:
            self.failure = error
            self._walk, self._part, self._batch = _Walk(iter(())), [], None

    def _complete(self) -> bool:
        """Whether `_part` holds a batch; False at the end.

        Each index goes there as it comes, so that Ctrl-C in the sampler's code loses none.
        """
        walk, wanted = self._walk, self._batch_size
        if self._makes_batches:
            if self._batch is None and (batch := walk.next()) is not _END:
                listed = batch.tolist() if isinstance(batch, Tensor) else batch
                if not hasattr(listed, "__iter__") and not hasattr(listed, "__getitem__"):
                    raise TypeError(f"batch_sampler must give lists of ints, got {listed!r:.80}")
                self._batch = _Walk(iter(listed))
            if self._batch is None:
                return False
            walk, wanted = self._batch, sys.maxsize
        while len(self._part) < wanted and (item := walk.next()) is not _END:
            self._part.append(item)
        if self._makes_batches:
            return True
        return len(self._part) == wanted or (bool(self._part) and not self._drop_last)

    def _checked(self, batch: list[Any]) -> Tensor:
        try:
            indices = [operator.index(index) for index in batch]
        except TypeError as error:
            raise TypeError(f"samplers must give ints, got {batch!r:.80}") from error
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


class _Walk:
    """An iterator of the user's, of which an interruption does not pass for its end."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator
        self._interruption: BaseException | None = None

    def next(self) -> Any:
        """The next item, or `_END`.

        Raises:
            RuntimeError: the iterator ended as it was interrupted, which a generator does: whether
                it had more left is not known.
        """
        try:
            item = next(self._iterator, _END)
        except BaseException as error:
            self._interruption = None if isinstance(error, Exception) else error
            raise
        interruption, self._interruption = self._interruption, None
        if item is _END and interruption is not None:
            raise RuntimeError(
                f"the sampler's iterator ended at the {type(interruption).__name__} raised in it, "
                "as generators do, and what it may have had left is lost; begin anew, with "
                "load_state_dict() to go on after the last batch"
            ) from interruption
        return item


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
