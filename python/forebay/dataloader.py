"""What code written for torch's DataLoader reads of a loader, and what it passes in vain.

**Invariants**
- To type checkers a Loader has the signature that it has: surplus arguments are errors to them,
  and sentences here.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ParamSpec

import torch

from . import machine
from .delivery import Delivery
from .options import DEFAULT_DEPTH, EngineOptions, FeedOptions, SampleOptions
from .session import Session
from .sources import Source

_P = ParamSpec("_P")

_NO_PROCESSES = "there are no worker processes here, only threads: leave it out"
# What to do instead of passing a keyword that a Loader does not have.
_INSTEAD = {
    "dataset": "the source comes first and without a name, as forebay.Loader(source, ...)",
    "transform": "pass transforms=, a list of forebay.transforms",
    "worker_init_fn": f"{_NO_PROCESSES}; random numbers depend on seed= and the epoch alone",
    "multiprocessing_context": _NO_PROCESSES,
    "in_order": "batches always come in order: leave it out",
    "pin_memory_device": "pin_memory=True pins for CUDA: leave it out",
}


def refusing_surplus(init: Callable[_P, None]) -> Callable[_P, None]:
    """A constructor that refuses with a sentence what it does not take."""

    @functools.wraps(init)
    def checked(*arguments: _P.args, **keywords: _P.kwargs) -> None:
        if len(arguments) > 2:  # self and the source
            raise TypeError(
                f"Loader takes the source alone by position, got {len(arguments) - 2} more; name "
                "the others, as forebay.Loader(source, batch_size=64, shuffle=True)"
            )
        known = inspect.signature(init).parameters
        for name in keywords:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {close[0]}=?" if close else "help(forebay.Loader) lists all"
                raise TypeError(f"Loader has no keyword {name}: {_INSTEAD.get(name, hint)}")
        init(*arguments, **keywords)

    return checked


class DataLoaderNames:
    """DataLoader's attributes, with what the loader was given or resolved."""

    _source: Source
    _feed: FeedOptions
    _engine: EngineOptions
    _sample: SampleOptions
    _session: Session | None
    _delivery: Delivery
    _generator: torch.Generator | None

    @property
    def dataset(self) -> Source:
        """The source; ``len(loader.dataset)`` is the number of samples."""
        return self._source

    @property
    def batch_size(self) -> int | None:
        """Samples per batch and rank; None with a batch sampler."""
        return None if self._feed.batch_sampler is not None else self._feed.batch_size

    @property
    def sampler(self) -> Iterable[Any] | None:
        """The sampler that was given, if any: the built-in order is none."""
        return self._feed.sampler

    @property
    def batch_sampler(self) -> Iterable[Any] | None:
        """The batch sampler that was given, if any."""
        return self._feed.batch_sampler

    @property
    def num_workers(self) -> int:
        """Threads, also where the number was left to the loader."""
        if self._session is not None:
            return self._session.workers
        if self._engine.num_workers is not None:
            return self._engine.num_workers
        placement = self._engine.placement(self._sample)
        return machine.default_workers(placement.beside_engines)

    @property
    def prefetch_factor(self) -> int:
        """Batches in flight in total."""
        return self._engine.prefetch_factor or DEFAULT_DEPTH

    @property
    def pin_memory(self) -> bool:
        """Whether page-locked batches were asked for."""
        return self._engine.pin_memory

    @property
    def persistent_workers(self) -> bool:
        """What was given; threads always persist."""
        return self._engine.persistent_workers

    @property
    def drop_last(self) -> bool:
        """Whether what does not fill the last batch is left out."""
        return self._feed.drop_last or self._feed.last_batch == "drop"

    @property
    def timeout(self) -> float:
        """Seconds that ``next`` may wait; 0 waits."""
        return self._engine.timeout

    @property
    def generator(self) -> torch.Generator | None:
        """The generator that drew the seed, if one was given; a copy has none."""
        return self._generator

    @property
    def collate_fn(self) -> Callable[[list[Any]], Any] | None:
        """What was given, if anything."""
        return self._delivery.collate_fn

    if not TYPE_CHECKING:  # to type checkers it would be a dataset

        def __getitem__(self, index: object) -> Any:
            """Refuses: a loader is no dataset."""
            raise TypeError(
                "a forebay.Loader makes batches itself and is no dataset; iterate over it in place "
                "of a DataLoader, not inside one"
            )
