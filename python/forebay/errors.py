"""Exceptions and warnings that name what went wrong with the data or with the loader's life.

**Invariants**
- ERR-1: a bad sample is a value until it is raised; the exception has fields, no text is parsed.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """One sample that could not be delivered."""

    position: int
    """Place in the epoch's global order."""
    index: int
    """Which sample of the source."""
    key: str
    """Path of the sample, or what else the source calls it."""
    stage: str
    """``"read"``, ``"dataset"``, ``"decode"`` or ``"transform"``."""
    reason: str
    """What is wrong."""
    attempt: int = 0
    """0 for the sample itself; under ``on_error="replace"``, which replacement it was."""


class SampleError(RuntimeError):
    """A sample of the batch that is due could not be delivered.

    The batch counts as delivered; ``next`` on the same iterator goes on with the following one.
    An exception raised by the user's dataset is in ``__cause__``.

    Attributes:
        index: the sample's index in the source.
        key: its path, or what else the source calls it.
        stage: ``"read"``, ``"dataset"``, ``"decode"`` or ``"transform"``.
        reason: what is wrong.
        failures: every bad sample of the batch, by position; the first is the one above.
    """

    def __init__(
        self, index: int, key: str, stage: str, reason: str, failures: Sequence[Failure] = ()
    ) -> None:
        """Builds the message from the fields."""
        self.index = index
        self.key = key
        self.stage = stage
        self.reason = reason
        self.failures = tuple(failures)
        others = len({failure.position for failure in self.failures}) - 1
        tail = f" (and {others} more in this batch, see .failures)" if others > 0 else ""
        super().__init__(f"{key}: {stage}: {reason} (sample {index}){tail}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles as the fields."""
        return type(self), (self.index, self.key, self.stage, self.reason, self.failures)


class ClosedError(RuntimeError):
    """The loader or iterator is no longer in use: closed, overtaken by an ``iter()``, or forked."""


def warn(message: str) -> None:
    """Warns at the line of the user's that led here, however many of ours lie between."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def _ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
