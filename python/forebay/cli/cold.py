"""Keeps files out of the page cache while a loader that reads them is measured.

A thread of the measuring command's own process, not of the one that is measured, drops all files
over and over, so that each epoch finds them on the disk. It sleeps twenty times as long as it
works: a twentieth of one core. What is read again sooner than that is not cold: of a shuffled set
less than a hundredth, if an epoch takes three times as long as a round of dropping (400 files:
0.05 s).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

_REST = 20
_LEAST_REST_S = 0.02
_LOOKED_AT = 32
_IN_MEMORY = ("tmpfs", "ramfs")


class ColdFiles:
    """Context in which the files are kept out of the page cache."""

    def __init__(self, files: Sequence[str]) -> None:
        """Drops the files and looks whether they are gone.

        Raises:
            NotImplementedError: the system cannot drop files from its page cache.
            ValueError: it keeps them all the same.
        """
        if not hasattr(os, "posix_fadvise"):
            raise NotImplementedError("--cold needs a system with posix_fadvise, such as Linux")
        self._files = files
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_dropping, daemon=True)
        # Pages that are not on the disk yet cannot be dropped.
        _each(files, os.fsync)
        _each(files, _drop)
        looked_at = files[:: max(1, len(files) // _LOOKED_AT)]
        kept = [file for file in looked_at if lies_in_memory(file)]
        if kept:
            raise ValueError(
                f"--cold needs files that can be read from a disk; {kept[0]} stays in memory"
            )
        _each(looked_at, _drop)

    def __enter__(self) -> ColdFiles:
        """Begins to drop."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it."""
        self._ended.set()
        self._thread.join()

    def _keep_dropping(self) -> None:
        worked = 0.0
        while not self._ended.wait(max(_LEAST_REST_S, _REST * worked)):
            begun = time.perf_counter()
            for file in self._files:
                if self._ended.is_set():
                    return
                _each((file,), _drop)
            worked = time.perf_counter() - begun


def lies_in_memory(file: str) -> bool:
    """Whether a read of the file's first byte needs no disk; False where that cannot be told."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        return os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT) > 0
    except BlockingIOError:
        return False
    except OSError:  # this file system does not tell
        return _kind_of_file_system(os.fstat(descriptor).st_dev) in _IN_MEMORY
    finally:
        os.close(descriptor)


def _drop(descriptor: int) -> None:
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _each(files: Sequence[str], act: Callable[[int], None]) -> None:
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            act(descriptor)
        finally:
            os.close(descriptor)


def _kind_of_file_system(device: int) -> str:
    number = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            place, _, kind = line.partition(" - ")
            if place.split()[2] == number:
                return kind.split()[0]
    return "unknown"
