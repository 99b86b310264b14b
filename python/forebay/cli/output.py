"""What commands write: text and JSON on stdout, progress and errors on stderr.

Either may be closed (``>&-``), which Python shows as None: results that cannot be written are an
error, progress and complaints that nobody reads are not.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

_WIDTH = 30
_REDRAW_S = 0.1


def say(text: str = "") -> None:
    """One line on stdout; OSError if it cannot be written."""
    if sys.stdout is None:
        raise OSError("stdout is closed, so there is nowhere to write the result")
    sys.stdout.write(text + "\n")


def settle() -> None:
    """Hands over what was said; OSError if that fails, once: Python's end does not try again."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def complain(text: str) -> None:
    """One line on stderr, if anybody reads it."""
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")


def say_json(value: Any) -> None:
    """One line of JSON on stdout."""
    say(json.dumps(value))


@contextlib.contextmanager
def written(option: str, file: str) -> Iterator[None]:
    """Says in an OSError which option named the file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, f"{option}: {error.strerror}", file) from None


def fail(message: str, status: int = 1) -> int:
    """A line on stderr; returns the exit status."""
    complain(f"forebay: {message}")
    return status


class Progress:
    """A bar on a terminal; silent elsewhere."""

    def __init__(self, label: str, total: float) -> None:
        """A bar that is full at ``total``."""
        self._label = label
        self._total = max(total, 1e-9)
        self._drawn = 0.0
        self._shown = sys.stderr is not None and sys.stderr.isatty()

    def update(self, done: float, note: str = "") -> None:
        """Draws the bar, a few times a second at most."""
        now = time.monotonic()
        if not self._shown or (now - self._drawn < _REDRAW_S and done < self._total):
            return
        self._drawn = now
        filled = int(_WIDTH * min(1.0, done / self._total))
        bar = "#" * filled + "." * (_WIDTH - filled)
        sys.stderr.write(f"\r{self._label:<12} [{bar}] {note:<24}")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        """The bar."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends its line."""
        if self._shown:
            sys.stderr.write("\n")
