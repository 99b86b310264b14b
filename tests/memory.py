"""What the kernel says of this process's memory, in bytes."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")


def _read(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"{_STATUS} has no {name}")


def resident() -> int:
    """Memory that is there now."""
    return _read("VmRSS:")


def peak() -> int:
    """The most that was there since `reset_peak`."""
    return _read("VmHWM:")


def reset_peak() -> None:
    """Lets the peak count from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def data() -> int:
    """Private writable memory, which RLIMIT_DATA limits."""
    return _read("VmData:")
