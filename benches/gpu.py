"""Forebay beside DALI on a GPU: rates, cores, first batch, memory, and a training's loss of rate.

    python benches/gpu.py --data FOLDER [--parts train,multicam,..] [--out FILE]
    python benches/gpu.py --data FOLDER --device cpu --files 400 --seconds 0.2 --rounds 1

Each part is a process of its own with a time limit. What a part finds goes into the record at once
and replaces what was there of that part; a part that fails says why there and on stdout. With
``--device cpu`` the parts are only tried, with batches of a sixteenth. docs/benchmarks.md says what
the parts are.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from gpu_parts import PARTS, verdicts
from gpu_parts.setup import Setup

from forebay.cli import report
from forebay.cli.peers import peer

SECONDS, ROUNDS, FILES, LIMIT_S = 1.5, 3, 20_000, 150.0
WARM_UP_IMAGES = 6_000

Row = dict[str, Any]


def main() -> int:
    """Runs the parts and says what they found; 1 if one failed."""
    arguments = _arguments()
    if arguments.part:
        return _run_here(arguments)
    names = list(PARTS) if arguments.parts is None else arguments.parts.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"--parts must be of {', '.join(PARTS)}, got {unknown[0]!r}", file=sys.stderr)
        return 2
    done: dict[str, Row] = {}
    for name in names:
        begun = time.monotonic()
        found = _run_apart(name, arguments.limit)
        done[name] = {
            "command": _command(arguments, name),
            "wall_s": round(time.monotonic() - begun, 1),
            **found,
        }
        print(f"{name}: {done[name].get('error', 'measured')} ({done[name]['wall_s']:.0f} s)")
        sys.stdout.flush()
        if arguments.out:
            _merge(Path(arguments.out), name, dict(done[name]))
    print()
    for line in verdicts.lines(done):
        print(line)
    return int(any("error" in part for part in done.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of photos, searched at any depth")
    parser.add_argument("--parts", metavar="A,B,..", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--files", type=int, default=FILES, help="photos are repeated to so many")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for each part")
    parser.add_argument("--out", metavar="FILE", help="record into which the parts go as JSON")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    return parser.parse_args()


def _run_here(arguments: argparse.Namespace) -> int:
    """The process of a part: its result, or its error, as a line of JSON."""
    on_gpu = arguments.device != "cpu"
    setup = Setup(
        data=str(Path(arguments.data).resolve()),
        device=arguments.device,
        seconds=arguments.seconds,
        rounds=arguments.rounds,
        files=arguments.files,
        warm_up_images=WARM_UP_IMAGES if on_gpu else 0,
    )
    found: Row
    try:
        found = {"result": PARTS[arguments.part].run(setup)}
    except Exception as error:
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {error}"}
    # Last: naming the GPU makes a context, which counts to a first batch and to memory.
    print(json.dumps(found | {"versions": _versions(on_gpu)}))
    return 0


def _run_apart(name: str, limit_s: float) -> Row:
    """The part in a process group of its own, which ends with it."""
    command = [sys.executable, *sys.argv, "--part", name]
    with _limited_to(PARTS[name].cores):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        said, _ = child.communicate(timeout=limit_s)
        found: Row = json.loads(said.splitlines()[-1])
        return found
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {limit_s:.0f} s"}
    except (IndexError, ValueError):
        return {"error": f"ended with status {child.returncode} and no result"}
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@contextlib.contextmanager
def _limited_to(cores: int | None) -> Iterator[None]:
    """Processes started meanwhile get a mask of so many cores, before they start any thread."""
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(usable)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


def _versions(on_gpu: bool) -> Row:
    """Of everything that takes part."""
    found: Row = {}
    for name in ("forebay", "dali"):
        with contextlib.suppress(ImportError):
            found |= peer(name).versions()
    if not on_gpu:
        return found
    found["cuda"] = torch.version.cuda
    with contextlib.suppress(RuntimeError):
        found["gpu"] = torch.cuda.get_device_name()
    if shutil.which("nvidia-smi"):
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        said = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False).stdout
        found["driver"] = (said.splitlines() or [""])[0].strip()
    return found


def _command(arguments: argparse.Namespace, name: str) -> str:
    """That measures this part again; folders left out."""
    words = ["python benches/gpu.py --parts", name]
    for option in ("device", "seconds", "rounds", "files"):
        words += [f"--{option}", str(getattr(arguments, option))]
    return " ".join(words)


def _merge(file: Path, name: str, part: Row) -> None:
    """Puts the part into the record; parts of another machine or other versions go."""
    record: Row = json.loads(file.read_text()) if file.exists() else {}
    versions = part.pop("versions", None)
    if "error" in part:  # it may have failed before it could tell
        versions = record.get("versions") or versions
    conditions = {"machine": report.machine_record(), "versions": versions}
    kept = record.get("parts", {})
    if any(record.get(key) not in (None, value) for key, value in conditions.items()):
        print(f"{file.name} was of another machine or other versions; its parts are dropped")
        kept = {}
    parts = kept | {name: part}
    ordered = {each: parts[each] for each in PARTS if each in parts}
    file.write_text(json.dumps({**conditions, "parts": ordered}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
