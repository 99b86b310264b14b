"""The native library: finding it, calling it, and what its errors mean in Python.

**Invariants**
- L7: besides ``ops.py`` no other module calls ``torch.ops``.
- L9: no other module reads environment variables.
- Every error of the core carries its kind as a letter before the message; only this module
  parses it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .errors import ClosedError

TORCH_FLOOR = (2, 11)
LIBRARY = Path(__file__).with_name("_forebay.so")

_KINDS: dict[str, type[Exception]] = {
    "V": ValueError,
    "I": IndexError,
    "T": TypeError,
    "D": ValueError,
    "N": NotImplementedError,
    "F": OSError,
    "P": FileNotFoundError,
    "M": MemoryError,
    "O": torch.OutOfMemoryError,
    "G": RuntimeError,
    "C": ClosedError,
    "X": RuntimeError,
}
# torch may put text of its own before the letter and a C++ trace after the message.
_LETTER = re.compile(r"(?:^|.*?[\s:])([VITDNFPMOGCX]):(?=\S)(.*)", re.DOTALL)
_TRACE = re.compile(r"\n?(?:Exception raised from |C\+\+ CapturedTraceback).*", re.DOTALL)


def native_exception(error: RuntimeError) -> Exception:
    """The Python exception that an op's RuntimeError stands for.

    Returns:
        An exception of the kind's type; ``error`` itself when it is not one of the core's, as
        when an argument does not fit an op's schema.
    """
    found = _LETTER.match(str(error))
    # Subclasses (NotImplementedError of the dispatcher, say) are torch's own.
    if type(error) is not RuntimeError or found is None:
        return error
    letter, message = found.group(1), _TRACE.sub("", found.group(2)).strip()
    if letter == "X" and not message.startswith("internal error"):
        message = f"internal error: {message}; please report"
    return _KINDS[letter](message)


@contextlib.contextmanager
def native_errors() -> Iterator[None]:
    """Raises what the core meant instead of the RuntimeError that crossed C++."""
    try:
        yield
    except RuntimeError as error:
        exception = native_exception(error)
        if exception is error:
            raise
        raise exception from None


def environment(name: str) -> str | None:
    """Value of an environment variable; None when unset or empty."""
    return os.environ.get(name) or None


def _load() -> None:
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if version < TORCH_FLOOR:
        floor = ".".join(map(str, TORCH_FLOOR))
        raise ImportError(f"forebay needs torch >= {floor}, found torch {torch.__version__}")
    if not LIBRARY.is_file():
        raise ImportError(
            f"forebay's native library is missing: {LIBRARY} does not exist; "
            "install the package (pip install .) instead of importing its source folder"
        )
    try:
        torch.ops.load_library(str(LIBRARY))  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ImportError(f"forebay's native library does not load: {error}") from error


_load()
_ops: Any = torch.ops.forebay


def decode_image(encoded: Tensor, mode: str, orientation: str) -> Tensor:
    """See :func:`forebay.ops.decode_image`."""
    with native_errors():
        image: Tensor = _ops.decode_image(encoded, mode, orientation)
        return image


def decode_images(
    encoded: list[Tensor], *options: Any, device: torch.device
) -> tuple[list[Tensor], Tensor]:
    """See :func:`forebay.ops.decode_images`; the images, and which of them are there."""
    with native_errors():
        images, ok = _ops.decode_images(encoded, *options, device=device)
        return list(images), ok


def decode_resized_crop(
    encoded: list[Tensor], *options: Any, device: torch.device
) -> tuple[Tensor, Tensor]:
    """See :func:`forebay.ops.decode_resized_crop`; the batch, and which items are there."""
    with native_errors():
        batch, ok = _ops.decode_resized_crop(encoded, *options, device=device)
        return batch, ok


def decode_resized_crop_packed(
    encoded: Tensor, offsets: Tensor, *options: Any, device: torch.device
) -> tuple[Tensor, Tensor]:
    """The same for items that lie end to end: item i is ``encoded[offsets[i]:offsets[i + 1]]``."""
    with native_errors():
        batch, ok = _ops.decode_resized_crop_packed(encoded, offsets, *options, device=device)
        return batch, ok


def resized_crop_normalize(images: Tensor, *options: Any) -> Tensor:
    """See :func:`forebay.ops.resized_crop_normalize`."""
    with native_errors():
        batch: Tensor = _ops.resized_crop_normalize(images, *options)
        return batch


def examine_file(path: str, max_pixels: int) -> dict[str, Any]:
    """What a file holds, or the stage at which it failed and why.

    Reads and decodes it whole on the calling thread; several threads may call it.

    Returns:
        Either ``format``, ``bytes``, ``width``, ``height``, ``components``, ``alpha``,
        ``progressive``, ``oriented``, ``warnings`` and ``sums``, per channel of RGB the sum
        of the 8-bit values and of their squares; or ``stage`` and ``reason``.
    """
    with native_errors():
        report: dict[str, Any] = json.loads(_ops.examine_file(path, max_pixels))
        return report


def check_recipe(recipe: dict[str, Any]) -> None:
    """Raises what opening a pipeline with this recipe would."""
    with native_errors():
        _ops.check_recipe(json.dumps(recipe))


def system_info() -> dict[str, Any]:
    """What the core knows about itself and the processor."""
    with native_errors():
        info: dict[str, Any] = json.loads(_ops.system_info())
        return info


def cuda_places(folders: list[str], cuda_major: int, kernels: str) -> None:
    """Says where the stateless ops find CUDA; arguments as for `cuda_report`. Touches nothing."""
    with native_errors():
        _ops.cuda_places(folders, cuda_major, kernels)


def cuda_report(folders: list[str], cuda_major: int, kernels: str) -> dict[str, Any]:
    """What of CUDA is there; loads the driver and creates a context on every device.

    Args:
        folders: where libraries may lie, besides where the system's loader looks.
        cuda_major: of the CUDA that torch was built for; 0 for none.
        kernels: folder of compiled kernels.
    """
    with native_errors():
        report: dict[str, Any] = json.loads(_ops.cuda_report(folders, cuda_major, kernels))
        return report


class Scan:
    """A scan of a folder of classes, running on a thread of the core."""

    def __init__(self, root: str, extensions: tuple[str, ...]) -> None:
        """Starts the scan."""
        with native_errors():
            self._handle: Tensor = _ops.scan_folder(root, list(extensions))

    def poll(self, timeout_ms: int) -> tuple[dict[str, Any], list[Tensor]] | None:
        """The classes and the tensors (names, offsets, labels), or None while it runs."""
        with native_errors():
            text, tensors = _ops.scan_poll(self._handle, timeout_ms)
        return (json.loads(text), list(tensors)) if text else None


class _Replies(threading.local):
    """What a thread has got and not dealt with yet: nothing or one reply."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, list[Tensor]]] = []


class Pipeline:
    """A pipeline of the core. No method waits longer than the timeout it is given."""

    def __init__(
        self,
        options: dict[str, Any],
        names: Tensor,
        offsets: Tensor,
        labels: Tensor,
        device: int,
    ) -> None:
        """Opens it, on ``cuda:device`` if that is not -1; threads start with the first batch."""
        self._device = device
        self._replies = _Replies()
        with native_errors():
            self._handle: Tensor = _ops.pipeline_open(
                json.dumps(options), names, offsets, labels, device
            )

    def start(self, epoch: int, position: int) -> None:
        """Begins an epoch at a position, giving up the one that runs."""
        with native_errors():
            _ops.pipeline_start(self._handle, epoch, position)
        self.taken()

    def next(self, timeout_ms: int) -> tuple[dict[str, Any], list[Tensor]] | None:
        """The next batch, failed batch or end of the epoch; None when the timeout has passed.

        It is the same again until `taken` was called, so that no signal loses it.
        """
        waiting = self._replies.waiting
        if not waiting:
            # The builtin behind the op: what it returns is in the list before Python looks at
            # signals.
            op = _ops.pipeline_next
            with native_errors():
                waiting.extend(map(getattr(op, "_op", op), (self._handle,), (timeout_ms,)))
        text, tensors = waiting[0]
        if not text:
            self.taken()
            return None
        reply = json.loads(text)
        if reply.get("foreign_stream"):
            stream = torch.cuda.current_stream(self._device)
            for tensor in tensors:
                if tensor.is_cuda:
                    tensor.record_stream(stream)
        return reply, list(tensors)

    def taken(self) -> None:
        """What `next` returned is dealt with."""
        self._replies.waiting.clear()

    @property
    def is_taken(self) -> bool:
        """Whether nothing that the core handed out is left to be dealt with."""
        return not any(text for text, _ in self._replies.waiting)

    def state(self) -> dict[str, Any]:
        """Where the epoch stands, counting what the core handed out (RES-1)."""
        with native_errors():
            state: dict[str, Any] = json.loads(_ops.pipeline_state(self._handle))
            return state

    def check_state(self, state: dict[str, Any]) -> tuple[int, int]:
        """Epoch and position of a state of this source and recipe; ValueError for others."""
        with native_errors():
            epoch, position = _ops.pipeline_check_state(self._handle, json.dumps(state))
        return int(epoch), int(position)

    def feed_wanted(self) -> int:
        """How many more batches of indices to push now."""
        with native_errors():
            return int(_ops.pipeline_feed_wanted(self._handle))

    def feed(self, indices: Tensor) -> None:
        """Pushes one batch of indices, int64 ``(B,)``."""
        with native_errors():
            _ops.pipeline_feed(self._handle, indices)

    def feed_end(self) -> None:
        """Says that the epoch has no more batches."""
        with native_errors():
            _ops.pipeline_feed_end(self._handle)

    def wanted(self, limit: int, timeout_ms: int) -> list[tuple[int, int]]:
        """Samples to supply, as (token, index); empty when the timeout has passed."""
        with native_errors():
            rows = _ops.pipeline_wanted(self._handle, limit, timeout_ms)
        return [(int(token), int(index)) for token, index in rows.tolist()]

    def supply(self, token: int, encoded: Tensor) -> None:
        """Supplies a sample's encoded bytes, uint8 ``(n,)``."""
        with native_errors():
            _ops.pipeline_supply(self._handle, token, encoded)

    def supply_path(self, token: int, path: str) -> None:
        """Supplies a sample as the file that holds it."""
        with native_errors():
            _ops.pipeline_supply_path(self._handle, token, path)

    def supply_fault(self, token: int, reason: str) -> None:
        """Says that a sample could not be supplied."""
        with native_errors():
            _ops.pipeline_supply_fault(self._handle, token, reason)

    def stats(self) -> dict[str, Any]:
        """Counters of each stage."""
        with native_errors():
            stats: dict[str, Any] = json.loads(_ops.pipeline_stats(self._handle))
            return stats

    def describe(self) -> dict[str, Any]:
        """What the pipeline resolved: fields, ranks, threads, decoders."""
        with native_errors():
            description: dict[str, Any] = json.loads(_ops.pipeline_describe(self._handle))
            return description

    def close(self) -> None:
        """Stops the threads; waits at most one second (LIF-1)."""
        with native_errors():
            _ops.pipeline_close(self._handle)

    @staticmethod
    def left_behind(timeout_ms: int) -> int:
        """Threads that closed pipelines left at work, after a wait for them; reads do not count."""
        with native_errors():
            return int(_ops.pipelines_left_behind(timeout_ms))
