"""What a fresh process shows: time to the first batch, and memory on the GPU.

A process of its own imports torch, then its loader, and only then is the time taken.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from forebay.cli.measure import Job
from forebay.cli.pace import endless, finish, take
from forebay.cli.peers import peer

from .contest import Row, described
from .images import Images
from .setup import Setup
from .throughput import BATCH, SWEEP, TRAIN

_CHILD = "import torch; from gpu_parts import fresh; fresh.main()"
_LOOKS = 20


def first_batch(setup: Setup) -> Row:
    """Seconds to the first batch with kept kernels, with none, and DALI's, in turn."""
    own, dali = _jobs(setup)
    kinds: dict[str, list[float]] = {"warm": [], "cold": [], "dali": []}
    with tempfile.TemporaryDirectory() as caches:
        kept = str(Path(caches) / "kept")
        _in_fresh_process("first", own, kept)  # compiles the kernels
        for number in range(max(3, setup.rounds)):
            empty = str(Path(caches) / f"empty{number}")
            kinds["warm"].append(_in_fresh_process("first", own, kept)["first_batch_s"])
            kinds["cold"].append(_in_fresh_process("first", own, empty)["first_batch_s"])
            kinds["dali"].append(_in_fresh_process("first", dali, kept)["first_batch_s"])
    medians = {name: round(statistics.median(values), 3) for name, values in kinds.items()}
    return {
        "first_batch_s": medians,
        "ratio": {name: round(medians[name] / medians["dali"], 3) for name in ("warm", "cold")},
        "rounds": kinds,
        "forebay": described(own),
        "dali": described(dali),
    }


def memory(setup: Setup) -> Row:
    """Megabytes that a loader takes on the GPU, of torch's allocator and others."""
    if not setup.on_gpu:
        raise RuntimeError("memory on a GPU needs --device cuda")
    with tempfile.TemporaryDirectory() as cache:
        own, dali = (_in_fresh_process("memory", job, cache) for job in _jobs(setup))
    ratio = round(own["total_mb"] / dali["total_mb"], 3)
    return {"forebay": own, "dali": dali, "ratio": ratio}


def _jobs(setup: Setup) -> tuple[Job, Job]:
    """Without the size for which DALI's memory could be taken at once, which costs both."""
    files = Images.photos(setup.data, setup.files).files
    own = setup.forebay(TRAIN, files, BATCH, dtype="float16")
    return own, setup.dali(TRAIN, files, SWEEP[0], dtype="float16")


def _in_fresh_process(task: str, job: Job, cache: str) -> Row:
    child = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps({"task": task, "job": json.loads(job.to_json())}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).resolve().parents[1],
        # NVRTC 12.9 and later keep what they compile, too.
        env=os.environ | {"XDG_CACHE_HOME": cache, "CUDA_CACHE_DISABLE": "1"},
    )
    row: Row = json.loads(child.stdout.splitlines()[-1])
    return row


def main() -> None:
    """The fresh process's program: a task and a job as JSON on stdin, a row on stdout."""
    given = json.loads(sys.stdin.read())
    job = Job(**given["job"])
    peer(job.loader).versions()  # imports its libraries
    if job.loader == "dali":
        import_module("nvidia.dali.plugin.pytorch")
    row = {"first": _first, "memory": _memory}[given["task"]](job)
    print(json.dumps(row))
    sys.stdout.flush()
    os._exit(0)  # how long teardown takes is not asked


def _made(job: Job) -> Any:
    return peer(job.loader).make(
        job.files, job.recipe, job.batch_size, job.workers, job.device, **job.options
    )


def _first(job: Job) -> Row:
    begun = time.perf_counter()
    batch = next(iter(_made(job)))
    finish(job.device)
    elapsed = time.perf_counter() - begun
    del batch
    return {"first_batch_s": elapsed}


def _memory(job: Job) -> Row:
    """The most of several looks, less what the context takes alone."""
    torch.zeros(1, device=job.device)
    torch.cuda.synchronize(job.device)
    context, reserved = _used(job.device), torch.cuda.memory_reserved(job.device)
    batches = endless(_made(job))
    take(batches, 1.0, job.device)
    looks = []
    for _ in range(_LOOKS):
        take(batches, job.seconds / _LOOKS, job.device)
        looks.append((_used(job.device), torch.cuda.memory_reserved(job.device)))
    used, of_torch = max(looks)
    total, of_torch = used - context, of_torch - reserved
    return {
        **described(job),
        "total_mb": round(total / 1e6, 1),
        "torch_reserved_mb": round(of_torch / 1e6, 1),
        "other_mb": round((total - of_torch) / 1e6, 1),
        "context_mb": round((context - reserved) / 1e6, 1),
    }


def _used(device: str) -> int:
    """Bytes of the GPU that are taken, by whomever: nothing else runs there."""
    free, total = torch.cuda.mem_get_info(device)
    return total - free
