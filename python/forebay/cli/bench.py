"""Measures loaders on your images: rate, cores, memory, time to the first batch."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..machine import usable_cores
from ..options import check_int
from ..sources import IMG_EXTENSIONS
from .measure import Job
from .output import Progress, say, say_json
from .peers import PEERS
from .recipes import RECIPES

ROUNDS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.add_argument("--data", required=True, help="folder of images, searched at any depth")
    parser.add_argument("--recipe", choices=sorted(RECIPES), default="imagenet-train")
    parser.add_argument("--loader", choices=sorted(PEERS), default="forebay")
    parser.add_argument(
        "--compare", metavar="A,B", help=f"measure these in turn, {ROUNDS} rounds; one is forebay"
    )
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--num-workers", type=int, help="default: the usable cores")
    parser.add_argument("--seconds", type=float, default=10.0, help="per measurement")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--out", metavar="FILE", help="write command, machine and results as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measures and reports."""
    check_int("--batch-size", arguments.batch_size, least=1)
    if not 0 < arguments.seconds < float("inf"):
        raise ValueError(f"--seconds must be above 0, got {arguments.seconds}")
    workers = usable_cores() if arguments.num_workers is None else arguments.num_workers
    check_int("--num-workers", workers, least=0)
    names = _names(arguments)
    files = list_images(arguments.data)
    rows: list[dict[str, Any]] = []
    schedule = names * (ROUNDS if arguments.compare else 1)
    with Progress("bench", len(schedule)) as progress:
        for number, name in enumerate(schedule):
            progress.update(number, name)
            job = Job(
                name, arguments.recipe, files, arguments.batch_size, workers, arguments.seconds
            )
            rows.append(measured(job))
        progress.update(len(schedule))
    report = summary(rows) if arguments.compare else rows[0]
    if arguments.out:
        record = {"command": _command(arguments), "machine": machine_record(), "report": report}
        Path(arguments.out).write_text(json.dumps(record, indent=2) + "\n")
    if arguments.json:
        say_json(report)
    else:
        _say_table(rows, report)
    return 0


def list_images(folder: str) -> list[str]:
    """Images below a folder, sorted."""
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"--data must be a folder of images, got {folder}")
    files = [
        os.path.join(where, name)
        for where, _, names in os.walk(folder, followlinks=True)
        for name in names
        if name.lower().endswith(IMG_EXTENSIONS)
    ]
    if not files:
        raise ValueError(
            f"--data must hold images ({', '.join(IMG_EXTENSIONS)}), found none below {folder}"
        )
    return sorted(files)


# The baseline is taken by the child itself, after torch and before anything else: pages that it
# shares with other processes count the same then and later.
_CHILD = """
import torch
rollup = open("/proc/self/smaps_rollup").read()
from forebay.cli.measure import main
main(rollup)
"""


def measured(job: Job) -> dict[str, Any]:
    """One measurement in a process of its own, so that memory and CPU time are its alone."""
    child = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=job.to_json(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if child.returncode != 0:
        raise RuntimeError(f"measuring {job.loader} failed with status {child.returncode}")
    row: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Forebay's median round, the peers', and the median of the ratios round by round."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["loader"], []).append(row)
    medians = {name: _median_round(of) for name, of in by_name.items()}
    own = by_name["forebay"]
    peers = [name for name in by_name if name != "forebay"]
    ratio = {
        name: round(
            statistics.median(
                ours["images_per_s"] / theirs["images_per_s"]
                for ours, theirs in zip(own, by_name[name], strict=True)
            ),
            3,
        )
        for name in peers
    }
    return medians["forebay"] | {
        "ratio": ratio,
        "peers": {name: medians[name] for name in peers},
        "rounds": rows,
    }


def machine_record() -> dict[str, Any]:
    """What a reader of numbers wants to know; no host names, no paths."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "usable_cores": usable_cores(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _median_round(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: float(row["images_per_s"]))
    return ordered[len(ordered) // 2]


def _names(arguments: argparse.Namespace) -> list[str]:
    if not arguments.compare:
        return [arguments.loader]
    names = [name.strip() for name in arguments.compare.split(",")]
    unknown = [name for name in names if name not in PEERS]
    if unknown or len(set(names)) != len(names) or len(names) < 2 or "forebay" not in names:
        raise ValueError(
            f"--compare must be forebay and others of {', '.join(sorted(PEERS))}, "
            f"got {arguments.compare!r}"
        )
    return names


def _command(arguments: argparse.Namespace) -> str:
    """The command with the names of folders left out."""
    options = {
        name: value
        for name, value in vars(arguments).items()
        if name not in ("command", "run", "data", "out", "json") and value is not None
    }
    words = [f"--{name.replace('_', '-')} {value}" for name, value in options.items()]
    return " ".join(["forebay bench", *words])


def _say_table(rows: list[dict[str, Any]], report: dict[str, Any]) -> None:
    say(f"{'loader':<12}{'images/s':>10}{'cores':>8}{'per core':>10}{'PSS MB':>9}{'first s':>9}")
    for row in rows:
        say(
            f"{row['loader']:<12}{row['images_per_s']:>10.0f}{row['cpu_cores']:>8.2f}"
            f"{row['images_per_cpu_s']:>10.0f}{row['pss_mb']:>9.0f}{row['first_batch_s']:>9.2f}"
        )
    for name, ratio in report.get("ratio", {}).items():
        say(f"forebay / {name}: {ratio:.2f} (median of {ROUNDS} rounds)")
