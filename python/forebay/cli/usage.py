"""Command lines that make no sense: exit status 2, as those that argparse refuses."""

from __future__ import annotations

from .. import checks


class UsageError(ValueError):
    """An option's value, or a combination of options, that no run could take."""


def check_int(option: str, value: int, *, least: int) -> int:
    """The value itself, if it is not too small."""
    try:
        return checks.check_int(option, value, least=least)
    except ValueError as error:
        raise UsageError(str(error)) from None


def check_seconds(option: str, value: float) -> float:
    """The value itself, if one can measure for so long."""
    if not 0 < value < float("inf"):
        raise UsageError(f"{option} must be above 0, got {value}")
    return value
