"""Finding image files, and looking at all of them with threads of the core's decoder.

**Invariants**
- Everything below the folder is looked at, or the command fails: what cannot be listed is an
  OSError that names it.
"""

from __future__ import annotations

import argparse
import errno
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .. import _native, machine
from ..options import DEFAULT_MAX_PIXELS
from ..sources import IMG_EXTENSIONS
from .output import Progress
from .usage import check_int

# Files given out ahead of the one that is reported next, for each thread: enough that a large
# file does not stop the others.
_AHEAD = 16

Finding = dict[str, Any]


def list_images(folder: str) -> list[str]:
    """Images below a folder, at any depth, links followed, sorted.

    Each folder is entered once, under the shallowest of its names: links that form circles end, and
    no image is counted twice by a folder's second name.

    Raises:
        OSError: a folder cannot be listed, or there is none.
        ValueError: no image was found.
    """
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"not a folder: {folder}")
    files: list[str] = []
    entered: set[tuple[int, int]] = set()
    folders = [folder]
    for where in folders:  # grows meanwhile
        status = os.stat(where)
        if (status.st_dev, status.st_ino) in entered:
            continue
        entered.add((status.st_dev, status.st_ino))
        with os.scandir(where) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if _is_folder(entry):
                    folders.append(entry.path)
                elif _is_image(entry.name):
                    files.append(entry.path)
    if not files:
        raise ValueError(f"found none of {', '.join(IMG_EXTENSIONS)} below {folder}")
    return sorted(files)


def _is_image(name: str) -> bool:
    return name.lower().endswith(IMG_EXTENSIONS)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        # A link to itself or past a file leads nowhere; an image is told when it is read.
        if error.errno in (errno.ELOOP, errno.ENOTDIR) or _is_image(entry.name):
            return False
        raise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares what all commands that look at each file have in common."""
    parser.add_argument("folder", metavar="DIR", help="folder of images, searched at any depth")
    parser.add_argument("--num-workers", type=int, help="threads; default: the usable cores")
    parser.add_argument("--max-pixels", type=int, default=DEFAULT_MAX_PIXELS)
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def examined(arguments: argparse.Namespace) -> Iterator[tuple[str, Finding]]:
    """Each file below the folder and what `_native.examine_file` says of it, sorted by name."""
    threads = machine.usable_cores() if arguments.num_workers is None else arguments.num_workers
    check_int("--num-workers", threads, least=1)
    check_int("--max-pixels", arguments.max_pixels, least=1)
    files = list_images(arguments.folder)
    return _findings(files, threads, arguments.max_pixels, arguments.command)


def _findings(
    files: list[str], threads: int, max_pixels: int, label: str
) -> Iterator[tuple[str, Finding]]:
    waiting: deque[tuple[str, Future[Finding]]] = deque()
    with Progress(label, len(files)) as progress, ThreadPoolExecutor(threads) as pool:
        try:
            ahead = iter(files)
            for number in range(len(files)):
                while len(waiting) < _AHEAD * threads and (file := next(ahead, None)) is not None:
                    waiting.append((file, pool.submit(_examine, file, max_pixels)))
                file, finding = waiting.popleft()
                yield file, finding.result()
                progress.update(number + 1, f"{number + 1} of {len(files)}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _examine(file: str, max_pixels: int) -> Finding:
    try:
        file.encode()
    except UnicodeEncodeError:  # a name that is not UTF-8, which an op cannot be given
        try:
            descriptor = os.open(file, os.O_RDONLY)
        except OSError as error:
            return {"stage": "read", "reason": str(error.strerror).lower()}
        try:
            return _native.examine_file(f"/proc/self/fd/{descriptor}", max_pixels)
        finally:
            os.close(descriptor)
    return _native.examine_file(file, max_pixels)


def shown(file: str) -> str:
    """A file's name as it can be printed, whatever bytes it has."""
    return os.fsencode(file).decode(errors="backslashreplace")
