"""An open pipeline with what Python keeps beside it: the feed, the supplier, the delivery.

**Invariants**
- LIF-1: no wait in the core is longer than 50 ms, so Ctrl-C is seen; close waits at most a
  second; a session belongs to the process that opened it.
- RES-1: what interrupts `next_batch` (Ctrl-C, a full GPU) loses no batch: the next call returns it,
  and until then it does not count. The interpreter's exit also waits for
  what is in a GPU's libraries, which crash or hang if they are torn down meanwhile.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time
import weakref
from typing import Any

import torch

from . import _native, machine
from .delivery import Delivery
from .errors import ClosedError, warn
from .feed import PushedFeed
from .options import EngineOptions, FeedOptions, SampleOptions
from .sources import MapSource, PackedSource, Source
from .supply import LabelBook, Supplier

_POLL_MS = 50
# Without threads nothing happens while waiting, so the next request is asked for at once.
_INLINE_POLL_MS = 1
_CLOSE_S = 1.0
# Starting JPEG engines takes half a second, several where processes do it at once.
_EXIT_S = 10.0

_opened: weakref.WeakSet[Session] = weakref.WeakSet()


class Session:
    """Everything that lives between opening a pipeline and closing it."""

    def __init__(
        self,
        source: Source,
        feed: FeedOptions,
        sample: SampleOptions,
        engine: EngineOptions,
        delivery: Delivery,
        pushed: PushedFeed | None,
        place: tuple[int, int],
    ) -> None:
        """Opens the pipeline; scans the source if it was not yet."""
        self.pid = os.getpid()
        self.closed = False
        self.delivery = delivery
        self.pushed = pushed
        self.rank, self.world_size = place
        # Epoch and position of what was returned; the core's may be one batch ahead.
        self._returned = (0, 0)
        self._timeout = engine.timeout
        self._pin = _can_pin(engine.pin_memory)
        self._placement = engine.placement(sample).resolved()
        device, device_options = self._placement.options()
        cpus = machine.cpus_near(device) if device >= 0 and engine.affinity is not False else None
        workers = engine.num_workers
        if workers is None:
            workers = machine.default_workers(self._placement.beside_engines, cpus)
        self.workers = workers
        options = {
            "source": _source_options(source),
            "recipe": sample.recipe(),
            "decode": sample.decode(),
            "engine": engine.engine(self.workers, cpus, "cpu" if device < 0 else "cuda"),
            "feed": self._feed_options(feed),
            "device": device_options,
        }
        empty = torch.empty(0, dtype=torch.uint8, device="cpu")
        names, offsets = empty, torch.zeros(1, dtype=torch.int64, device="cpu")
        if isinstance(source, PackedSource):
            names, offsets = source.names, source.offsets
        self.pipeline = _native.Pipeline(options, names, offsets, delivery.core_labels, device)
        description = self.pipeline.describe()
        self._paths: list[str] = description["fields"]
        for note in description["notes"]:
            warn(note)
        self.supplier = None
        if isinstance(source, MapSource):
            self.supplier = Supplier(source, self.pipeline, self.workers)
        _opened.add(self)

    def begin(self, epoch: int, position: int, saved: dict[str, Any] | None) -> None:
        """Begins an epoch at a position; ``saved`` is the sampler's part of a state."""
        if self.pushed is not None:
            self.pushed.begin(position, saved)
        if self.supplier is None:
            self.pipeline.start(epoch, position)
        else:
            self.supplier.begin(lambda: self.pipeline.start(epoch, position))
        self._returned = (epoch, position)

    def next_batch(self) -> Any:
        """The next batch in the user's shape.

        Raises:
            StopIteration: the epoch is over.
            SampleError: a sample of the batch failed.
            RuntimeError: ``timeout`` has passed.
            ClosedError: the session was closed.
        """
        reply, tensors = self._wait()
        if reply["kind"] == "end":
            self.pipeline.taken()
            raise StopIteration
        book = None if self.supplier is None else self.supplier.book
        try:
            batch = self.delivery.batch(
                reply, tensors, self._paths, book, self._placement, self._pin
            )
        except torch.OutOfMemoryError:
            raise  # the next call tries again
        except Exception:
            self._settle(reply, tensors, book)
            raise
        self._settle(reply, tensors, book)
        return batch

    def state(self) -> dict[str, Any]:
        """Where the epoch stands, counting the batches returned."""
        state = self.pipeline.state()
        if not self.pipeline.is_taken:
            epoch, position = self._returned
            state |= {"epoch": epoch, "position": position * self._stride()}
        return state

    def _settle(
        self, reply: dict[str, Any], tensors: list[torch.Tensor], book: LabelBook | None
    ) -> None:
        """Counts a batch that is about to be returned, or raised."""
        try:
            self.delivery.settle(reply, tensors, book)
        finally:
            if self.pushed is not None:
                self.pushed.delivered()
            self._returned = (reply["epoch"], reply["next_position"])
            self.pipeline.taken()

    def _stride(self) -> int:
        """Positions of all shards for each of this feed's own."""
        if self.pushed is None:
            return 1
        return machine.resolve_shard(self.rank, self.world_size)[1]

    def stats(self) -> dict[str, Any]:
        """The core's counters, with Python's under ``"python"``."""
        own: dict[str, Any] = dict(self.delivery.counters)
        if self.supplier is not None:
            own |= {"dataset_calls": self.supplier.calls, "dataset_s": self.supplier.seconds}
        return self.pipeline.stats() | {"python": own}

    def close(self) -> None:
        """Closes the pipeline and lets the threads end; does nothing in a forked child."""
        if self.closed or os.getpid() != self.pid:
            return
        self.closed = True
        deadline = time.monotonic() + _CLOSE_S
        with contextlib.suppress(ClosedError):
            self.pipeline.close()
        if self.supplier is not None:
            self.supplier.close(deadline)

    def _wait(self) -> tuple[dict[str, Any], list[torch.Tensor]]:
        deadline = time.monotonic() + self._timeout if self._timeout else None
        inline = self.supplier is not None and self.workers == 0
        while True:
            if self.closed:
                raise ClosedError("the loader is closed; make a new Loader")
            if self.pushed is not None:
                self.pushed.pump(self.pipeline)
            if self.supplier is not None:
                self.supplier.step()
            reply = self.pipeline.next(_INLINE_POLL_MS if inline else _POLL_MS)
            if reply is not None:
                return reply
            if deadline is not None and time.monotonic() > deadline:
                raise RuntimeError(f"Loader timed out after {self._timeout} seconds")

    def _feed_options(self, feed: FeedOptions) -> dict[str, Any]:
        if self.pushed is not None:
            shard, shards = machine.resolve_shard(self.rank, self.world_size)
            return {"kind": "pushed", "seed": feed.seed, "shard": shard, "shards": shards}
        return {
            "kind": "ordered",
            "seed": feed.seed,
            "shuffle": bool(feed.shuffle),
            "batch_size": feed.batch_size,
            "rank": self.rank,
            "world_size": self.world_size,
            "last_batch": feed.resolved_last_batch(self.world_size),
        }


def _source_options(source: Source) -> dict[str, Any]:
    if isinstance(source, MapSource):
        return {"kind": "pushed", "len": source.length(), "fingerprint": source.fingerprint()}
    assert isinstance(source, PackedSource)
    return {"kind": "list", "root": source.root}


def _can_pin(pin_memory: bool) -> bool:
    if pin_memory and not torch.cuda.is_available():
        warn("pin_memory=True but torch finds no CUDA device; batches are not pinned")
        return False
    return pin_memory


@atexit.register
def _end() -> None:
    """Closes what is open, and waits for threads that are within a GPU's libraries."""
    for session in list(_opened):
        session.close()
    deadline = time.monotonic() + _EXIT_S
    while _native.Pipeline.left_behind(_POLL_MS) and time.monotonic() < deadline:
        pass
