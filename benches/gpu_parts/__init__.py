"""The GPU's benchmarks by part; ``benches/gpu.py`` runs each in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import breakdown, fresh, resnet, throughput
from .setup import Setup


@dataclass(frozen=True)
class Part:
    """What is run, and the cores that its process may use; None for all."""

    run: Callable[[Setup], dict[str, Any]]
    cores: int | None = None


PARTS = {
    "train": Part(throughput.train),
    "train-420": Part(throughput.train_420),
    "four-cores": Part(throughput.four_cores, cores=4),
    "fewest-cores": Part(throughput.fewest_cores),
    "multicam": Part(throughput.multicam),
    "breakdown": Part(breakdown.breakdown),
    "first-batch": Part(fresh.first_batch),
    "resnet50": Part(resnet.resnet50),
    "memory": Part(fresh.memory),
}
