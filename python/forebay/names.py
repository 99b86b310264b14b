"""Names of files as the core takes them: packed into one tensor, below an absolute root."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor


def pack_names(names: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """Names as concatenated bytes and offsets; one join, however many there are."""
    if not names:
        raise ValueError("paths must hold at least one file name, got none")
    try:
        joined = "\0".join(names).encode("utf-8", "surrogateescape")
    except TypeError:
        joined = b"\0".join([_encoded(place, name) for place, name in enumerate(names)])
    packed = np.frombuffer(joined + b"\0", dtype=np.uint8)
    ends = np.flatnonzero(packed == 0)
    if len(ends) != len(names):
        raise ValueError("paths must be file names, got one with a NUL character")
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    offsets[1:] = ends - np.arange(len(names))
    if not np.diff(offsets).all():
        place = int(np.flatnonzero(np.diff(offsets) == 0)[0])
        raise ValueError(f"paths must be file names, got an empty one at place {place}")
    return torch.from_numpy(packed[packed != 0]), torch.from_numpy(offsets)


def _encoded(place: int, name: Any) -> bytes:
    try:
        return os.fsencode(name)
    except TypeError:
        pairs = isinstance(name, (tuple, list)) and len(name) == 2
        hint = "; split the pairs: paths, labels = zip(*pairs)" if pairs else ""
        raise TypeError(
            f"paths must be file names, got {name!r:.80} at place {place}{hint}"
        ) from None


def absolute_root(root: str | bytes | os.PathLike[str]) -> str:
    """An absolute path that can cross to the core as text."""
    absolute = os.path.abspath(os.fsdecode(root))
    if "\0" in absolute:
        raise ValueError(
            f"root must be the name of a folder, got {absolute!r}, with a NUL character"
        )
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"root must be a path in UTF-8, got {os.fsencode(absolute)!r}; names below it may be "
            "of any bytes, so rename the folder or pass absolute names"
        ) from None
    return absolute
