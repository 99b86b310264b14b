"""Where the time goes: what engines, kernels, copies and cores do at full rate."""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from forebay.cli.pace import endless, finish, take
from forebay.cli.peers import peer

from .contest import WARM_UP_S, Row, described
from .images import Images
from .setup import Setup
from .throughput import BATCH, TRAIN

_TRACED_S = 0.5


def breakdown(setup: Setup) -> Row:
    """A rate, and the busy time of everything behind it, per second and per image.

    ``threads``: seconds that the loader's threads and the engines' calls took, per second; that of
    decoders includes waiting for a core. ``gpu``: busy time of kernels and copies by name, per
    second, from torch's profiler in a run of its own. ``copies`` compares bytes with what the
    device copies when it does nothing else.
    """
    images = Images.photos(setup.data, setup.files)
    job = setup.forebay(TRAIN, images.files, BATCH, dtype="float16")
    loader: Any = peer("forebay").make(
        job.files, job.recipe, job.batch_size, job.workers, job.device, **job.options
    )
    batches = endless(loader)
    take(batches, WARM_UP_S, job.device, least=setup.warm_up_images)
    before = loader.stats()
    pace = take(batches, setup.seconds, job.device)
    threads = _threads(before, loader.stats(), pace.wall_s)
    gpu = _traced(batches, job.device) if setup.on_gpu else {}
    loader.close()
    return {**described(job), **pace.rates(), "threads": threads, **gpu}


def _threads(before: Row, after: Row, wall_s: float) -> Row:
    """Busy seconds per second, and how many there were per second, of every stage."""

    def rates(earlier: Row, later: Row) -> Row:
        count = later["count"] - earlier["count"]
        busy = later["seconds"] - earlier["seconds"]
        each_us = round(1e6 * busy / count, 1) if count else 0.0
        return {"per_s": round(count / wall_s), "busy": round(busy / wall_s, 3), "us": each_us}

    stages = {name: rates(before[name], after[name]) for name in ("read", "probe", "plan")}
    decoders = {
        name: rates(before["decoders"][name], after["decoders"][name]) for name in after["decoders"]
    }
    return {**stages, **decoders, "render": rates(before["render"], after["render"])}


def _traced(batches: Any, device: str) -> Row:
    """Kernels and copies of a run under torch's profiler."""
    profiler = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
        pace = take(batches, _TRACED_S, device)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    busy: dict[str, float] = defaultdict(float)
    copied: dict[str, float] = defaultdict(float)
    for event in events:
        kind = event.get("cat")
        if kind == "kernel":
            busy[event["name"].partition("(")[0]] += event["dur"] / 1e6
        elif kind in ("gpu_memcpy", "gpu_memset"):
            busy[event["name"]] += event["dur"] / 1e6
            copied[event["name"]] += event["args"]["bytes"]
    most = sorted(busy.items(), key=lambda item: -item[1])[:12]
    return {
        "gpu": {name: round(seconds / pace.wall_s, 4) for name, seconds in most},
        "gpu_images_per_s": pace.rates()["images_per_s"],
        "copies": {
            "gb_per_s": {name: round(size / pace.wall_s / 1e9, 3) for name, size in copied.items()},
            "bytes_per_image": {name: round(size / pace.images) for name, size in copied.items()},
            "host_to_device_alone_gb_per_s": round(_copy_rate(device), 2),
        },
    }


def _copy_rate(device: str, size: int = 256 << 20, times: int = 8) -> float:
    """Gigabytes per second from page-locked memory."""
    source = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(size, dtype=torch.uint8, device=device)
    target.copy_(source, non_blocking=True)
    finish(device)
    begun = time.perf_counter()
    for _ in range(times):
        target.copy_(source, non_blocking=True)
    finish(device)
    return times * size / (time.perf_counter() - begun) / 1e9
