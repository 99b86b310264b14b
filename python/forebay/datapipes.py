"""Forebay among torch's DataPipes: ``pipe.forebay(...)``. Importing this module registers it.

**Invariants**
- Records are decoded by threads of the core and delivered in the order in which the pipe before
  gives them; that pipe runs in the thread that iterates.
- RNG-1: a record's draws are keyed by the seed, the number of the iteration and its place
  ``ordinal * shards + shard``, shards being the ranks times the DataLoader's workers.
- LIF-1: a pipe pickles as its options and the pipe before it; every copy opens a pipeline of its
  own at first use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import IterDataPipe, functional_datapipe

from .checks import as_int
from .loader import Loader
from .stream import StreamSource, Window

__all__ = ["ForebayIterDataPipe"]

_ELSEWHERE = {
    "shuffle": "the pipe before is the order; put .shuffle() before .forebay()",
    "sampler": "the pipe before is the order",
    "batch_sampler": "the pipe before is the order; use batch_size=",
    "last_batch": "use drop_last=",
    "generator": "use seed=",
}
_EPOCHS = 1 << 63


@functional_datapipe("forebay")
class ForebayIterDataPipe(IterDataPipe[Any]):
    """Batches of decoded, transformed images from a pipe of records (functional: ``forebay``).

    A record is a path or encoded bytes (``bytes``, a bytes-like object or a uint8 tensor
    ``(n,)``), alone or as a tuple ``(image, label)``.

    Args:
        source_datapipe: gives the records. It is advanced in the iterating thread, ahead of what
            is delivered by at most ``prefetch_factor`` and three more batches.
        transforms: list of `forebay.transforms`; must give every image the same size.
        batch_size: records a batch.
        drop_last: drop the last batch if it is smaller.
        **options: any other keyword of `forebay.Loader` with its meaning there: ``fields``,
            ``dtype``, ``num_workers`` (threads; by default the usable cores, and 0 inside a
            DataLoader worker), ``prefetch_factor``, ``on_error`` (``"raise"`` or ``"skip"``),
            ``quarantine``, ``seed``, ``rank`` and ``world_size``, ... Those that name an order do
            not exist here.

    Yields:
        What ``Loader`` yields: by default a tuple of images ``(B, 3, H, W)`` and labels, or images
        alone. The fields ``index`` and, of bytes, ``key`` tell the place in the pipe before.

    Raises:
        TypeError: a keyword is unknown or has no meaning here, or ``source_datapipe`` is no
            iterable.
        ValueError: a value is out of range.
        SampleError: from ``next``, under ``on_error="raise"``; ``next`` goes on with the next
            batch.

    Determinism: without ``set_seed`` the n-th iteration draws as epoch n of a Loader does.
    DataLoader calls ``set_seed`` before each of its epochs, with a number from torch's generator
    or its ``generator=``; that number takes the place of n.
    Threads: a pipe is used from one thread at a time.
    Cost: constructing reads nothing. Records wait as they came, so bytes are held twice from the
    time the core asks for them until their batch is handed out.
    """

    source_datapipe: Any
    _seed: int | None
    _iterations: int
    _window: Window
    _loader: Loader

    def __init__(
        self,
        source_datapipe: Any,
        *,
        transforms: Any = (),
        batch_size: int = 1,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        """Checks every keyword; see the class."""
        if not hasattr(source_datapipe, "__iter__"):
            raise TypeError(
                "source_datapipe must be an IterDataPipe or another iterable of records, "
                f"got {type(source_datapipe).__name__}"
            )
        for name in _ELSEWHERE.keys() & options.keys():
            raise TypeError(f"forebay() has no {name}: {_ELSEWHERE[name]}")
        if options.get("on_error") == "replace":
            raise ValueError(
                'on_error="replace" needs a source with random access; use "skip" or "raise"'
            )
        own = {"transforms": transforms, "batch_size": batch_size, "drop_last": drop_last}
        self._restore(source_datapipe, own | options, None)

    def __iter__(self) -> Iterator[Any]:
        """Begins the next iteration; nothing is pulled before the first ``next``."""
        seed, self._seed = self._seed, None
        if seed is None:
            seed, self._iterations = self._iterations, self._iterations + 1
        self._window.stream = self.source_datapipe
        return _Batches(self._loader, seed)

    def __len__(self) -> int:
        """Batches that the pipe before makes; TypeError if it has no length."""
        count = len(self.source_datapipe)
        size: int = self._options["batch_size"]
        return count // size if self._options["drop_last"] else -(-count // size)

    def set_seed(self, seed: int) -> ForebayIterDataPipe:
        """Names the next iteration by ``seed`` instead of by its number, as DataLoader does."""
        number = as_int(seed)
        if number is None:
            raise TypeError(f"seed must be an int, got {seed!r}")
        self._seed = number % _EPOCHS
        return self

    def __getstate__(self) -> Any:
        """The pipe before and the options."""
        # torch walks over the graph by pickling what may hold pipes; a collate_fn that does not
        # pickle must not keep it from that.
        if IterDataPipe.getstate_hook is not None:
            return IterDataPipe.getstate_hook((self.source_datapipe,))
        return self.source_datapipe, self._options, self._seed

    def __setstate__(self, state: Any) -> None:
        """Takes them; iterations count from 0 again."""
        self._restore(*state)

    def _restore(self, source_datapipe: Any, options: dict[str, Any], seed: int | None) -> None:
        self.source_datapipe = source_datapipe
        self._options = options
        self._seed = seed
        self._iterations = 0
        self._window = Window(source_datapipe)
        self._loader = Loader(StreamSource(self._window), sampler=self._window, **options)


class _Batches:
    """One iteration, begun at the first ``next``; not a generator, which SampleError would end."""

    def __init__(self, loader: Loader, epoch: int) -> None:
        self._loader = loader
        self._epoch = epoch
        self._batches: Iterator[Any] | None = None

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        if self._batches is None:
            try:
                self._loader.set_epoch(self._epoch)
                self._batches = iter(self._loader)
            except Exception:  # not Ctrl-C, after which the next call begins
                self._batches = iter(())  # what fails to begin is over
                raise
        return next(self._batches)
