"""What the GPU's benchmarks are to show: a line a figure, with its target and verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Of what DALI's best gives: images a second, on four cores, on 4:2:0 photos and of cameras; images
# a CPU-second, at this much of its rate.
FASTER = {"train": 1.25, "train-420": 1.5, "four-cores": 1.2, "multicam": 1.15}
LESS_WORK = 2.0
FAST_ENOUGH = 0.8
# Of a batch that stays on the GPU.
NEAR_RESIDENT = 0.98
RESNET_CORES = 3.0
STEADY = 2.0
FIRST_BATCH_S = {"warm": 1.5, "cold": 3.0}
MEMORY_MB = 2000.0


@dataclass(frozen=True)
class Figure:
    """A number of a part's result, by its keys, and what it must be: at least, or at most.

    ``of`` are the two numbers that it is made of. Without a target it is only told.
    """

    part: str
    name: str
    keys: str
    target: float | None = None
    of: tuple[str, ...] = ()
    most: bool = False

    def verdict(self, value: float) -> str:
        """The target, and whether the value is what it must be."""
        if self.target is None:
            return f"{'':<19}"
        met = value <= self.target if self.most else value >= self.target
        return f"{self.bound():<11}{'met' if met else 'missed':<8}"

    def bound(self) -> str:
        """What it must be."""
        return "" if self.target is None else f"{'<=' if self.most else '>='} {self.target:.2f}"


def _rates(part: str, dtype: str) -> list[Figure]:
    own, dali = f"{dtype} forebay images_per_s", f"{dtype} dali images_per_s"
    return [
        Figure(
            part,
            f"{dtype}: of DALI's rate",
            f"{dtype} ratio images_per_s",
            FASTER[part],
            (own, dali),
        ),
        Figure(
            part,
            f"{dtype}: of decoders' own rates",
            f"{dtype} of_own_rates",
            of=(own, "own_rates sum"),
        ),
    ]


FIGURES = [
    *_rates("train", "float16"),
    *_rates("train", "float32"),
    *_rates("train-420", "float16"),
    *_rates("train-420", "float32"),
    *_rates("four-cores", "float16"),
    Figure(
        "fewest-cores",
        "of DALI's images a CPU-second",
        "float16 ratio images_per_cpu_s",
        LESS_WORK,
        ("float16 forebay images_per_cpu_s", "float16 dali images_per_cpu_s"),
    ),
    Figure(
        "fewest-cores",
        "of DALI's rate",
        "float16 ratio images_per_s",
        FAST_ENOUGH,
        ("float16 forebay images_per_s", "float16 dali images_per_s"),
    ),
    *_rates("multicam", "float32"),
    Figure(
        "multicam",
        "batch time: p99 of median",
        "float32 forebay p99_over_median",
        STEADY,
        ("float32 forebay batch_ms_p99", "float32 forebay batch_ms"),
        most=True,
    ),
    *(
        Figure(
            "first-batch",
            f"{kind} kernels: seconds; DALI's",
            f"first_batch_s {kind}",
            target,
            ("first_batch_s dali",),
            most=True,
        )
        for kind, target in FIRST_BATCH_S.items()
    ),
    Figure(
        "resnet50",
        "of a resident batch's rate",
        "ratio",
        NEAR_RESIDENT,
        ("forebay images_per_s", "resident images_per_s"),
    ),
    Figure("resnet50", "cores busy", "forebay cpu_cores", RESNET_CORES, most=True),
    Figure(
        "memory",
        "MB on the GPU; DALI's",
        "forebay total_mb",
        MEMORY_MB,
        ("dali total_mb",),
        most=True,
    ),
]


def lines(parts: dict[str, Any]) -> Iterator[str]:
    """The table of the parts that were run."""
    for figure in FIGURES:
        if figure.part not in parts:
            continue
        label = f"{figure.part:<13}{figure.name:<32}"
        if "error" in parts[figure.part]:
            yield f"{label}{'':>8}  {figure.bound():<11}failed"
            continue
        result = parts[figure.part]["result"]
        value = _number(result, figure.keys)
        made_of = " / ".join(f"{_number(result, keys):,.5g}" for keys in figure.of)
        yield f"{label}{value:>8.3f}  {figure.verdict(value)}{made_of}"


def _number(result: dict[str, Any], keys: str) -> float:
    found: Any = result
    for key in keys.split():
        found = found[key]
    return float(found)
