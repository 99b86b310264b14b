"""Taking batches for a while: how many images, by how many cores, how long after one another."""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Pace:
    """What was taken in some time; CPU time is that of the process and its descendants."""

    images: int
    wall_s: float
    cpu_s: float
    batch_s: list[float]  # from each batch's arrival to the next's

    def rates(self) -> dict[str, float]:
        """Images per second, cores kept busy, images per core-second."""
        return {
            "images_per_s": round(self.images / self.wall_s, 1),
            "cpu_cores": round(self.cpu_s / self.wall_s, 3),
            "images_per_cpu_s": round(self.images / max(self.cpu_s, 1e-9), 1),
        }


def quantiles_ms(batch_s: list[float]) -> dict[str, float]:
    """Median and 99th percentile of batch times, in milliseconds."""
    ordered = sorted(batch_s)
    last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return {
        "batch_ms": round(1e3 * statistics.median(ordered), 3),
        "batch_ms_p99": round(1e3 * last, 3),
    }


def endless(loader: Any) -> Iterator[Any]:
    """Batches, epoch after epoch.

    Raises:
        ValueError: an epoch had none.
    """
    while True:
        delivered = False
        for batch in loader:
            delivered = True
            yield batch
        if not delivered:
            raise ValueError("the loader gave no batch")


def finish(device: str) -> None:
    """Batches on a GPU are there when its streams are done, not when they are handed out."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def take(batches: Iterator[Any], seconds: float, device: str, *, least: int = 0) -> Pace:
    """Takes batches for ``seconds``, and until there are ``least`` images."""
    finish(device)
    images, marks = 0, [_mark(device)]
    cpu, begun = cpu_seconds(), time.perf_counter()
    end = begun + seconds
    while time.perf_counter() < end or images < least:
        batch = next(batches)
        images += len(batch[0] if isinstance(batch, (tuple, list)) else batch)
        marks.append(_mark(device))
    finish(device)
    wall, cpu = time.perf_counter() - begun, cpu_seconds() - cpu
    return Pace(images, wall, cpu, [_between(*pair) for pair in itertools.pairwise(marks)])


def _mark(device: str) -> Any:
    """This moment, or on a GPU that at which what is queued is done: nothing waits for it here."""
    if device == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event


def _between(earlier: Any, later: Any) -> float:
    if isinstance(earlier, float):
        return float(later - earlier)
    return float(earlier.elapsed_time(later)) / 1e3


def tree() -> list[int]:
    """This process and its descendants."""
    found, ahead = [], [os.getpid()]
    while ahead:
        pid = ahead.pop()
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                ahead.extend(int(child) for child in task.read_text().split())
            except OSError:  # ended in between
                pass
    return found


def cpu_seconds() -> float:
    """CPU time of the tree, ended children included."""
    ticks = 0
    for pid in tree():
        try:
            # After the command's name, which may hold spaces: fields 14 to 17 of proc(5).
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS
