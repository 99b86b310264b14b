"""One measurement, run as a process of its own: a job as JSON on stdin, a row as JSON on stdout."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import SampleError
from .output import say_json
from .pace import endless, finish, take, tree
from .peers import peer

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
    batches = endless(made)
    next(batches)
    finish(job.device)
    first_batch_s = time.perf_counter() - begun
    take(batches, max(1.0, job.seconds / 5), job.device)
    pace = take(batches, job.seconds, job.device)
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
        "images": pace.images,
        **pace.rates(),
        "pss_mb": round((max(pss) - baseline_pss) / 1e6, 1),
        "first_batch_s": round(first_batch_s, 3),
        "versions": versions,
        **({"options": job.options} if job.options else {}),
        **_of_gpu(job),
    }


def _of_gpu(job: Job) -> dict[str, Any]:
    """What is told of a GPU alone; its memory is everybody's, contexts included."""
    if job.device == "cpu":
        return {}
    free, total = torch.cuda.mem_get_info(job.device)
    return {
        "gpu": torch.cuda.get_device_name(job.device),
        "gpu_mb": round((total - free) / 1e6, 1),
    }


def _tree_pss() -> int:
    total = 0
    for pid in tree():
        try:
            total += _pss_of(Path(f"/proc/{pid}/smaps_rollup").read_text())
        except OSError:
            pass
    return total


def _pss_of(rollup: str) -> int:
    return next(
        int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:")
    )


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
