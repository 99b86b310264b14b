"""Measures loaders on your images: rate, cores, memory, time to the first batch."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from .. import machine
from . import plot, report
from .cold import ColdFiles
from .files import list_images
from .measure import Job
from .output import Progress, say, say_json, written
from .peers import PEERS, require
from .peers.dali import HW_LOAD
from .recipes import RECIPES
from .report import Row
from .usage import UsageError, check_int, check_seconds

ROUNDS = 3
_SWEPT = ("num-workers", "batch-size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.add_argument("--data", required=True, help="folder of images, searched at any depth")
    parser.add_argument("--recipe", choices=sorted(RECIPES), default="imagenet-train")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--loader", choices=sorted(PEERS), default="forebay")
    which.add_argument("--compare", metavar="A,B,..", help="measure these in turn; one is forebay")
    parser.add_argument("--rounds", type=int, help=f"default: {ROUNDS} of --compare, else 1")
    parser.add_argument("--batch-size", type=int, help="default: the recipe's, 16 to 64")
    parser.add_argument("--num-workers", type=int, help="default: the usable cores")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of the batches")
    parser.add_argument(
        "--fidelity", choices=("full", "fast"), default="full", help="of Forebay; default: full"
    )
    parser.add_argument(
        "--dali-hw-load",
        type=float,
        metavar="SHARE",
        help=f"of images for the JPEG engines in DALI; default: {HW_LOAD}",
    )
    parser.add_argument(
        "--sweep", metavar="OPTION=N,N,..", help="num-workers=.. or batch-size=..: measure at each"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="per measurement")
    parser.add_argument(
        "--cold", action="store_true", help="keep the files out of the page cache meanwhile"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--out", metavar="FILE", help="write command, machine and results as JSON")
    parser.add_argument("--plot", metavar="FILE", help="draw the rates, in PNG or SVG")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measures and reports."""
    names = _names(arguments)
    rounds = _rounds(arguments)
    check_seconds("--seconds", arguments.seconds)
    option, values = _sweep(arguments)
    recipe = RECIPES[arguments.recipe]
    others = [name for name in names if recipe.peers and name not in recipe.peers]
    if recipe.peers and others:
        raise UsageError(
            f"--recipe {arguments.recipe} is carried out by {', '.join(recipe.peers)}, not by "
            f"{', '.join(others)}"
        )
    job = Job(
        names[0],
        arguments.recipe,
        [],
        recipe.batch_size if arguments.batch_size is None else arguments.batch_size,
        machine.usable_cores() if arguments.num_workers is None else arguments.num_workers,
        arguments.seconds,
        arguments.cold,
        arguments.device,
    )
    check_int("--batch-size", job.batch_size, least=1)
    check_int("--num-workers", job.workers, least=0)
    options = {"dali": _dali_options(arguments), "forebay": _forebay_options(arguments)}
    if job.device != "cpu" and not torch.cuda.is_available():
        raise RuntimeError("--device cuda needs a GPU, and torch finds none")
    if arguments.plot:
        plot.require()
    require(names)
    files = list_images(arguments.data)
    if recipe.pictures:
        files = recipe.pictures(files)
    job = dataclasses.replace(job, files=files)
    points = [_at(job, option, value) for value in values] or [job]
    jobs = [
        dataclasses.replace(at, loader=name, options=options.get(name, {}))
        for at in points
        for name in names
    ]
    rows = _measured_all(jobs * rounds, arguments.data)
    compare = bool(arguments.compare)
    if values:
        result = report.sweep(option, rows, compare)
    else:
        result = report.comparison(rows) if compare else report.median_round(rows)
    if arguments.out:
        _write_record(arguments, files, rows, result)
    if arguments.plot:
        plot.draw(result, arguments.plot)
    if arguments.json:
        say_json(result)
    else:
        _say_table(rows, result, rounds)
    return 0


# The baseline is taken by the child itself, after torch and before anything else: pages that it
# shares with other processes count the same then and later.
_CHILD = """
import torch
rollup = open("/proc/self/smaps_rollup").read()
from forebay.cli.measure import main
main(rollup)
"""


def measured(job: Job) -> Row:
    """One measurement in a process of its own, so that memory and CPU time are its alone."""
    with ColdFiles(job.files) if job.cold else contextlib.nullcontext():
        child = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=job.to_json(),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    if child.returncode != 0:
        raise RuntimeError(f"measuring {job.loader} failed with status {child.returncode}")
    row: Row = json.loads(child.stdout.splitlines()[-1])
    if "error" in row:
        raise RuntimeError(f"measuring {job.loader} failed: {row['error']}")
    return row


def _measured_all(jobs: list[Job], folder: str) -> list[Row]:
    rows = []
    with Progress("bench", len(jobs)) as progress:
        for number, job in enumerate(jobs):
            progress.update(number, job.loader)
            try:
                rows.append(measured(job))
            except RuntimeError as error:
                hint = f"forebay check {shlex.quote(folder)} lists broken files"
                raise RuntimeError(f"{error}; {hint}") from None
        progress.update(len(jobs))
    return rows


def _names(arguments: argparse.Namespace) -> list[str]:
    if not arguments.compare:
        return [arguments.loader]
    names = [name.strip() for name in arguments.compare.split(",")]
    unknown = [name for name in names if name not in PEERS]
    if unknown or len(set(names)) != len(names) or len(names) < 2 or "forebay" not in names:
        raise UsageError(
            f"--compare must be forebay and others of {', '.join(sorted(PEERS))}, "
            f"got {arguments.compare!r}"
        )
    return names


def _rounds(arguments: argparse.Namespace) -> int:
    rounds: int = arguments.rounds
    if rounds is None:
        return ROUNDS if arguments.compare else 1
    check_int("--rounds", rounds, least=1)
    return rounds


def _forebay_options(arguments: argparse.Namespace) -> dict[str, Any]:
    return {} if arguments.fidelity == "full" else {"fidelity": arguments.fidelity}


def _dali_options(arguments: argparse.Namespace) -> dict[str, float]:
    share = arguments.dali_hw_load
    if share is None:
        return {} if arguments.device == "cpu" else {"hw_load": HW_LOAD}
    if arguments.device == "cpu":
        raise UsageError("--dali-hw-load is a GPU's: it needs --device cuda")
    if not 0 <= share <= 1:
        raise UsageError(f"--dali-hw-load must be between 0 and 1, got {share}")
    return {"hw_load": share}


def _sweep(arguments: argparse.Namespace) -> tuple[str, list[int]]:
    """The option and its values; without a sweep no values."""
    if not arguments.sweep:
        return "", []
    option, _, listed = arguments.sweep.partition("=")
    values = [int(value) for value in listed.split(",") if value.strip().isdigit()]
    least = 0 if option == "num-workers" else 1
    if (
        option not in _SWEPT
        or len(values) != len(listed.split(","))
        or len(set(values)) != len(values)
        or min(values) < least
    ):
        raise UsageError(
            f"--sweep must be num-workers=0,1,.. or batch-size=1,2,.., got {arguments.sweep!r}"
        )
    if getattr(arguments, option.replace("-", "_")) is not None:
        raise UsageError(f"--sweep {option}= and --{option} contradict each other")
    return option, values


def _at(job: Job, option: str, value: int) -> Job:
    if option == "num-workers":
        return dataclasses.replace(job, workers=value)
    return dataclasses.replace(job, batch_size=value)


def _write_record(
    arguments: argparse.Namespace, files: list[str], rows: list[Row], result: Row
) -> None:
    record = {
        "command": _command(arguments),
        "machine": report.machine_record(),
        "versions": report.versions(rows),
        "data": report.data_record(files),
        "report": result,
    }
    with written("--out", arguments.out):
        Path(arguments.out).write_text(json.dumps(record, indent=2) + "\n")


def _command(arguments: argparse.Namespace) -> str:
    """The command with the names of folders left out."""
    left_out = {"command", "run", "data", "out", "plot", "json"}
    left_out |= {"loader"} if arguments.compare else set()
    words = ["forebay bench"]
    for name, value in vars(arguments).items():
        if name not in left_out and value not in (None, False, "full"):
            words.append(f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}"))
    return " ".join(words)


def _say_table(rows: list[Row], result: Row, rounds: int) -> None:
    say(
        f"{'loader':<14}{'workers':>8}{'batch':>7}{'images/s':>10}{'cores':>8}{'per core':>10}"
        f"{'PSS MB':>9}{'first s':>9}"
    )
    for row in rows:
        say(
            f"{row['loader']:<14}{row['num_workers']:>8}{row['batch_size']:>7}"
            f"{row['images_per_s']:>10.0f}{row['cpu_cores']:>8.2f}{row['images_per_cpu_s']:>10.0f}"
            f"{row['pss_mb']:>9.0f}{row['first_batch_s']:>9.2f}"
        )
    key = result["sweep"]["option"] if "sweep" in result else ""
    for point in result.get("points", [result]):
        at = f" at {key} {point[key.replace('-', '_')]}" if key else ""
        for name, ratio in point.get("ratio", {}).items():
            say(f"forebay / {name}{at}: {ratio:.2f} (median of {rounds} rounds)")
