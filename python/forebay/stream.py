"""A stream of records as a source: pulled in order by the consumer, decoded out of order.

The feed walks over a `Window`, which gives every record that it pulls an ordinal; the core asks for
records by ordinal, and the window forgets them when their batch was handed out.

**Invariants**
- The stream is advanced by the thread that iterates over the batches, and by no other.
- MEM-1: no more records are kept than belong to the batches in flight (``prefetch_factor``), the
  one that the core takes next and the one that is read ahead.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor

from .sources import MapSource

__all__ = ["StreamSource", "Window"]


class Window:
    """The records of a stream that were pulled and not delivered yet.

    Iterating begins the stream anew and gives ordinals, as a sampler does; ``window[ordinal]`` is
    the record. Looking one up changes nothing: a thread that still serves an epoch which was
    given up may do it, and its answer is dropped.
    """

    def __init__(self, stream: Iterable[Any]) -> None:
        """Pulls nothing yet."""
        self.stream = stream
        self._records: dict[int, Any] = {}

    def __iter__(self) -> Iterator[int]:
        """Ordinals, each with its record pulled."""
        self._records = {}
        return _Pull(self.stream, self._records)

    def __getitem__(self, ordinal: int) -> Any:
        """A record that was pulled."""
        return self._records[ordinal]

    def key(self, ordinal: int) -> str:
        """The record's path, or its place in the stream."""
        record = self._records.get(ordinal)
        image = record[0] if isinstance(record, tuple) and record else record
        return os.fsdecode(image) if isinstance(image, (str, os.PathLike)) else f"record {ordinal}"

    def forget(self, ordinals: Iterable[int]) -> None:
        """Drops records."""
        for ordinal in ordinals:
            self._records.pop(ordinal, None)

    def held(self) -> int:
        """Records that are kept."""
        return len(self._records)


class _Pull:
    """One walk over the stream; not a generator, which Ctrl-C in the stream's code would end."""

    def __init__(self, stream: Iterable[Any], records: dict[int, Any]) -> None:
        self._stream = iter(stream)
        self._records = records
        self._ordinal = 0

    def __iter__(self) -> _Pull:
        return self

    def __next__(self) -> int:
        record = next(self._stream)
        ordinal, self._ordinal = self._ordinal, self._ordinal + 1
        self._records[ordinal] = record
        return ordinal


class StreamSource(MapSource):
    """A source without length whose samples are the records of a window."""

    called = "a record"

    def __init__(self, window: Window) -> None:
        """Takes the window, which is the feed's sampler too."""
        super().__init__(window)

    def delivered(self, indices: Tensor) -> None:
        """Forgets the records."""
        self.dataset.forget(indices.tolist())

    def __repr__(self) -> str:
        """Names the stream."""
        return f"StreamSource({self.dataset.stream!r})"
