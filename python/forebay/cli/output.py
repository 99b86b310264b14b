"""What commands write: text and JSON on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

_WIDTH = 30
_REDRAW_S = 0.1


def say(text: str = "") -> None:
    """One line on stdout."""
    sys.stdout.write(text + "\n")


def say_json(value: Any) -> None:
    """One line of JSON on stdout."""
    say(json.dumps(value))


def fail(message: str, status: int = 1) -> int:
    """A line on stderr; returns the exit status."""
    sys.stderr.write(f"forebay: {message}\n")
    return status


class Progress:
    """A bar on a terminal; silent elsewhere."""

    def __init__(self, label: str, total: float) -> None:
        """A bar that is full at ``total``."""
        self._label = label
        self._total = max(total, 1e-9)
        self._drawn = 0.0
        self._shown = sys.stderr.isatty()

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
