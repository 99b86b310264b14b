"""Text files of ``path label`` lines.

**Invariants**
- A line is split at its last blank, and only if what follows is a number: names may hold blanks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
_ENDINGS = tuple(ending.encode() for ending in IMG_EXTENSIONS)
# An image's name with something behind it, as a label of another kind or other tables have it.
_LATE = re.compile(
    rb"(?:" + b"|".join(map(re.escape, _ENDINGS)) + rb")[\"']?\s*(?:[\s,;|].*)$", re.IGNORECASE
)
# At the last blank, or what separates columns elsewhere.
_SPLIT = re.compile(rb"[\s,;|]+(?=[^\s,;|]*$)")


def read_list_file(path: Path, root: str | os.PathLike[str]) -> tuple[list[bytes], Any]:
    """Names and labels of a text file of ``path label`` lines; names are relative to ``root``.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: no lines, labels on some lines only, or labels that are no numbers.
    """
    if "\0" in str(path):
        raise ValueError(f"paths must be file names, got {str(path)!r}, with a NUL character")
    try:
        content = path.read_bytes()
    except IsADirectoryError:
        raise FileNotFoundError(
            f"paths must be a text file of names or a list of them, got the folder {path}; "
            "use forebay.ImageFolder for class folders"
        ) from None
    except FileNotFoundError:
        raise FileNotFoundError(
            f"paths must be a text file of names or a list of them, got {path}, which is not there"
        ) from None
    if b"\0" in content:
        raise ValueError(
            f"paths must be a text file of names or a list of them, got {path}, which is no text; "
            "give an image in a list"
        )
    content = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    lines = [line for line in content.split(b"\n") if line.strip()]
    if not lines:
        raise ValueError(f"paths must hold at least one file name, got the empty file {path}")
    parts = [line.rsplit(None, 1) for line in lines]
    numbered = [len(part) == 2 and _is_number(part[1]) for part in parts]
    if all(numbered):
        _refuse_other_labels(path, root, [part[0] for part in parts])
        column = [part[1] for part in parts]
        try:
            return [part[0] for part in parts], np.array(list(map(int, column)), dtype=np.int64)
        except ValueError:
            return [part[0] for part in parts], np.array(list(map(float, column)))
    if any(numbered):
        place = numbered.index(False)
        raise ValueError(
            f"{path}: every line must end in a label, which is a number, or none; got no label in "
            f"{lines[place].decode('utf-8', 'replace')!r}"
        )
    _refuse_other_labels(path, root, lines)
    return lines, None


def _refuse_other_labels(path: Path, root: str | os.PathLike[str], names: Sequence[bytes]) -> None:
    """Tells labels that are no numbers, or follow no blank, from names with blanks in them."""
    late = (name for name in names if not name.lower().endswith(_ENDINGS) and _LATE.search(name))
    name, below = next(late, names[0]), os.fsencode(root)
    ahead = _SPLIT.split(name, maxsplit=1)[0]
    other = _LATE.search(name) is not None or os.path.isfile(os.path.join(below, ahead))
    if ahead == name or not other or os.path.exists(os.path.join(below, name)):
        return
    raise ValueError(
        f"{path}: {name.decode('utf-8', 'replace')!r} is no file; a label is a number after the "
        "last blank of its line, so pass other labels, or those of another table, as "
        "forebay.FileList(paths, labels=[...])"
    )


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
