"""Checks of single arguments: what is wrong, by name, what was given, and what would be right."""

from __future__ import annotations

import operator
import re

import torch

# No count or size of ours comes near; the core's numbers have 64 bits.
_MOST = (1 << 62) - 1
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def as_int(value: object) -> int | None:
    """An int, or what stands for one (numpy's), as an int; None for all else, and for bools."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, torch.SymInt)):  # the latter while torch.compile traces
        return value  # type: ignore[return-value]
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def check_int(argument: str, value: object, *, least: int, most: int = _MOST) -> int:
    """The int that ``value`` is; refuses what is none, or out of range."""
    right = f">= {least}" if most == _MOST else f"in {least}..{most}"
    number = as_int(value)
    if number is None:
        raise TypeError(f"{argument} must be an int {right}, got {value!r}")
    if not least <= number <= most:
        if number > most:
            right = f"in {least}..{most}"
        raise ValueError(f"{argument} must be an int {right}, got {value}")
    return number


def check_flag(argument: str, value: object) -> None:
    """Refuses what is neither True nor False."""
    if not isinstance(value, bool):
        raise TypeError(f"{argument} must be True or False, got {value!r}")


def check_choice(argument: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuses what is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        right = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{argument} must be one of {right}, got {value!r}")


def parse_bytes(argument: str, value: object) -> int:
    """Bytes from an int, or from text such as ``"2GiB"`` or ``"512MB"`` (1 KB is 1024 bytes)."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", value, re.IGNORECASE)
        if found is None:
            raise ValueError(f'{argument} must be bytes, or text such as "2GiB", got {value!r}')
        number = float(found.group(1)) * _UNITS[found.group(2).upper()]
        value = int(min(number, _MOST + 1))
    return check_int(argument, value, least=1)
