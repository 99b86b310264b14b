"""Supplying the samples of a user's dataset to the core, from Python threads or inline.

**Invariants**
- ERR-1: an exception in the dataset is a sample error, and is kept for ``__cause__``.
- MEM-1: a label is kept from the moment its sample is supplied until its batch is delivered.
- LIF-1: the threads hold the pipeline and the dataset, never the loader.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ._native import Pipeline
from .errors import ClosedError
from .labels import NO_LABEL
from .sources import MapSource

# How long a thread waits for work in one call; a new epoch waits for it once.
_WAIT_MS = 20
_INLINE_LIMIT = 64
# Samples that a thread asks for at once: as many as the dataset answers in this time, so that a
# slow one holds up few others. A dataset that answers several leaves them to gather for that time:
# being woken for each costs more than a path and a label do, and others are waiting to be decoded.
_HELD_UP_S = 0.002
_MOST_AT_ONCE = 16


class LabelBook:
    """Labels and exceptions that samples of one epoch came with and that wait for their batch.

    They are kept by the request that was answered: an index may be asked for twice, and a dataset
    need not give the same label twice.
    """

    def __init__(self) -> None:
        """An empty book."""
        self._labels: dict[int, Any] = {}
        self._errors: dict[int, BaseException] = {}

    def put_label(self, token: int, label: Any) -> None:
        """Keeps a label."""
        self._labels[token] = label

    def put_error(self, token: int, error: BaseException) -> None:
        """Keeps an exception."""
        self._errors[token] = error

    def label(self, token: int) -> Any:
        """A request's label."""
        return self._labels.get(token, NO_LABEL)

    def error(self, token: int) -> BaseException | None:
        """A request's exception."""
        return self._errors.get(token)

    def forget(self, token: int) -> None:
        """Drops what a request came with."""
        self._labels.pop(token, None)
        self._errors.pop(token, None)

    def __len__(self) -> int:
        """Labels and exceptions kept."""
        return len(self._labels) + len(self._errors)


class Supplier:
    """Answers the core's requests for samples with ``dataset[i]``."""

    def __init__(self, source: MapSource, pipeline: Pipeline, workers: int) -> None:
        """Starts nothing; threads come with the first batch."""
        self.book = LabelBook()
        self.calls = 0
        self.seconds = 0.0
        self._source = source
        self._pipeline = pipeline
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self._inline: deque[tuple[int, int]] = deque()
        self._gate = threading.Condition()
        self._waiting = 0
        self._paused = False
        self._closed = False
        self._error: Exception | None = None

    def begin(self, start: Callable[[], None]) -> None:
        """Calls ``start`` while no thread is asking for work, and turns to a new book.

        So a thread's book is always that of the epoch its requests belong to.
        """
        with self._gate:
            self._paused = True
            self._gate.wait_for(lambda: self._waiting == 0)
            try:
                start()
                self.book = LabelBook()
                self._inline.clear()
            finally:
                self._paused = False
                self._gate.notify_all()

    def step(self) -> bool:
        """Keeps supplying: starts the threads once, or answers inline. True if it answered any."""
        if self._error is not None:
            raise self._error
        if self._workers == 0:
            self._inline.extend(self._pipeline.wanted(_INLINE_LIMIT, 0))
            answered = bool(self._inline)
            while self._inline:
                # Ctrl-C in the user's code leaves the request for the next call.
                self._answer(self.book, *self._inline[0])
                self._inline.popleft()
            return answered
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._run, name=f"forebay-map-{number}", daemon=True)
                for number in range(self._workers)
            ]
            for thread in self._threads:
                thread.start()
        return False

    def close(self, deadline: float) -> None:
        """Lets the threads end and waits for them until ``deadline`` (of time.monotonic)."""
        with self._gate:
            self._closed = True
            self._gate.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        try:
            while (work := self._ask()) is not None:
                book, rows = work
                for token, index in rows:
                    self._answer(book, token, index)
        except ClosedError:
            pass
        except Exception as error:  # a bug of ours; the consumer must not wait for ever
            self._error = error

    def _ask(self) -> tuple[LabelBook, list[tuple[int, int]]] | None:
        with self._gate:
            self._gate.wait_for(lambda: self._closed or not self._paused)
            if self._closed:
                return None
            self._waiting += 1
            book = self.book
        try:
            at_once = self._at_once()
            if at_once == _MOST_AT_ONCE:
                time.sleep(_HELD_UP_S)
            return book, self._pipeline.wanted(at_once, _WAIT_MS)
        finally:
            with self._gate:
                self._waiting -= 1
                self._gate.notify_all()

    def _at_once(self) -> int:
        """How many samples the dataset is likely to give in `_HELD_UP_S`, at least 1."""
        if self.calls == 0:
            return 1
        mean = self.seconds / self.calls
        return max(1, min(_MOST_AT_ONCE, int(_HELD_UP_S / max(mean, 1e-9))))

    def _answer(self, book: LabelBook, token: int, index: int) -> None:
        begun = time.perf_counter()
        try:
            image, label = _split(self._source.dataset[index], self._source.called)
            image = _supplied(image, self._source.called)
        except BaseException as error:
            if self._workers == 0 and not isinstance(error, Exception):
                raise  # Ctrl-C, or an exit of the thread that iterates
            book.put_error(token, error)
            self._pipeline.supply_fault(token, _described(error))
            return
        finally:
            self.calls += 1
            self.seconds += time.perf_counter() - begun
        book.put_label(token, label)
        if isinstance(image, str):
            self._pipeline.supply_path(token, image)
        else:
            self._pipeline.supply(token, image)


def _described(error: BaseException) -> str:
    """Type and text of an exception, as text that can cross whatever it holds."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its __str__ raises
        text = type(error).__name__
    return text.encode("utf-8", "backslashreplace").decode()


def _split(item: Any, called: str) -> tuple[Any, Any]:
    if isinstance(item, tuple):
        if len(item) == 2:
            return item
        raise TypeError(
            f"{called} must be a path or bytes, or (path or bytes, label), got {len(item)} values"
        )
    return item, NO_LABEL


def _supplied(image: Any, called: str) -> str | Tensor:
    """A path, or encoded bytes as a uint8 tensor ``(n,)``."""
    if isinstance(image, (str, os.PathLike)):
        path = os.fsdecode(image)
        try:
            path.encode()
        except UnicodeEncodeError:  # a name that is not UTF-8 cannot cross as str
            return _tensor(Path(path).read_bytes())
        return path
    if isinstance(image, (bytes, bytearray)):
        return _tensor(image)
    if isinstance(image, Tensor):
        if image.dtype == torch.uint8 and image.dim() == 1 and image.device.type == "cpu":
            return image.contiguous()
        got = f"a {image.dtype} tensor of shape {tuple(image.shape)} on {image.device}"
    elif isinstance(image, (memoryview, np.ndarray)):
        view: Any = memoryview(cast(Any, image))
        if view.itemsize == 1 and view.ndim == 1:
            return _tensor(view)
        got = f"{type(image).__name__} of shape {tuple(view.shape)}"
    else:
        kind = type(image)
        got = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(image, (list, dict)):
            raise TypeError(
                f"{called} must give an image, or a tuple (image, label), got a {kind.__name__}"
            )
    raise TypeError(
        f"{called} must give a path or encoded bytes, got {got}; leave opening and decoding "
        "to forebay"
    )


def _tensor(data: Any) -> Tensor:
    # A copy, because tensors over read-only memory draw a warning; a memcpy beside a decode.
    copied = bytearray(data)
    return (
        torch.frombuffer(copied, dtype=torch.uint8)
        if copied
        else torch.empty(0, dtype=torch.uint8, device="cpu")
    )
