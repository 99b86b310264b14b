"""One measurement, run as a process of its own: a job as JSON on stdin, a row as JSON on stdout."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import SampleError
from .output import say_json
from .peers import peer

_TICKS = os.sysconf("SC_CLK_TCK")
_PSS_SAMPLES = 3


@dataclass(frozen=True)
class Job:
    """What to measure."""

    loader: str
    recipe: str
    files: list[str]
    batch_size: int
    workers: int
    seconds: float
    cold: bool = False
    device: str = "cpu"
    # What only this loader has, as keywords of its ``make``.
    options: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """As it goes to the child."""
        return json.dumps(asdict(self))


def measure(job: Job, baseline_pss: int) -> dict[str, Any]:
    """Warms up, measures for the job's seconds, then takes the memory while still running.

    Memory is that of the process tree less ``baseline_pss``, an interpreter that only imported
    torch. Peers are charged a megabyte for importing forebay, which the harness needs.
    """
    module = peer(job.loader)
    versions = module.versions()  # imports the peer's libraries, whose time is not the loader's
    begun = time.perf_counter()
    made = module.make(
        job.files, job.recipe, job.batch_size, job.workers, job.device, **job.options
    )
    batches = _endless(made)
    next(batches)
    _finish(job.device)
    first_batch_s = time.perf_counter() - begun
    _run_for(batches, max(1.0, job.seconds / 5))
    _finish(job.device)
    cpu, begun = _cpu_seconds(), time.perf_counter()
    images = _run_for(batches, job.seconds)
    _finish(job.device)
    wall, cpu = time.perf_counter() - begun, _cpu_seconds() - cpu
    pss = []
    for _ in range(_PSS_SAMPLES):
        next(batches)
        pss.append(_tree_pss())
    return {
        "loader": job.loader,
        "recipe": job.recipe,
        "device": job.device,
        "batch_size": job.batch_size,
        "num_workers": job.workers,
        "cache": "cold" if job.cold else "warm",
        "images": images,
        "images_per_s": round(images / wall, 1),
        "cpu_cores": round(cpu / wall, 3),
        "images_per_cpu_s": round(images / max(cpu, 1e-9), 1),
        "pss_mb": round((max(pss) - baseline_pss) / 1e6, 1),
        "first_batch_s": round(first_batch_s, 3),
        "versions": versions,
        **_of_gpu(job),
    }


def _finish(device: str) -> None:
    """Batches on a GPU are there when its streams are done, not when they are handed out."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def _of_gpu(job: Job) -> dict[str, Any]:
    """What is told of a GPU alone; its memory is everybody's, contexts included."""
    if job.device == "cpu":
        return {}
    free, total = torch.cuda.mem_get_info(job.device)
    return {
        "options": job.options,
        "gpu": torch.cuda.get_device_name(job.device),
        "gpu_mb": round((total - free) / 1e6, 1),
    }


def _endless(loader: Any) -> Iterator[Any]:
    while True:
        delivered = False
        for batch in loader:
            delivered = True
            yield batch
        if not delivered:
            raise ValueError("the loader gave no batch")


def _run_for(batches: Iterator[Any], seconds: float) -> int:
    images = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        batch = next(batches)
        images += len(batch[0] if isinstance(batch, (tuple, list)) else batch)
    return images


def _tree() -> list[int]:
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


def _tree_pss() -> int:
    total = 0
    for pid in _tree():
        try:
            total += _pss_of(Path(f"/proc/{pid}/smaps_rollup").read_text())
        except OSError:
            pass
    return total


def _pss_of(rollup: str) -> int:
    return next(
        int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")
    )


def _cpu_seconds() -> float:
    """CPU time of the tree, ended children included."""
    ticks = 0
    for pid in _tree():
        try:
            # After the command's name, which may hold spaces: fields 14 to 17 of proc(5).
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / _TICKS


def main(rollup: str) -> None:
    """The child's program; ``rollup`` is its smaps_rollup from when it had only torch.

    What a loader raises is a result too: ``error``, a sentence.
    """
    result: dict[str, Any]
    try:
        result = measure(Job(**json.loads(sys.stdin.read())), _pss_of(rollup))
    except Exception as error:
        result = {"error": _sentence(error)}
    say_json(result)
    sys.stdout.flush()


def _sentence(error: Exception) -> str:
    """What went wrong, in a line; a DataLoader's worker sends its whole traceback as text."""
    lines = str(error).strip().splitlines()
    if len(lines) == 1 and isinstance(error, SampleError):
        return lines[0]
    return lines[-1] if len(lines) > 1 else ": ".join([type(error).__name__, *lines])
