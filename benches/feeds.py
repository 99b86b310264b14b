"""What Python in the feed costs: a dataset and a Sampler beside the built-in source and order.

    python benches/feeds.py FOLDER [--out FILE]

Interleaved rounds of the training recipe over the same files: ``FileList`` with ``shuffle=True``,
``FileList`` with a torch ``RandomSampler``, and ``MapSource`` over a map-style dataset that gives
paths and labels, with the sampler. A list of a million names is timed to its first batch, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.utils.data import Dataset, RandomSampler

import forebay
from forebay.cli import report
from forebay.cli.files import list_images
from forebay.cli.recipes import RECIPES

BATCH = 64
NAMES = 1_000_000
# An epoch's start waits up to 20 ms for a dataset's threads, which counts in short epochs.
REPEATS = 10


class Paths(Dataset):
    """As torchvision's ImageFolder with a loader that gives the path."""

    def __init__(self, files: list[str]) -> None:
        """Takes the files; labels are their places."""
        self.samples = [(file, place) for place, file in enumerate(files)]

    def __len__(self) -> int:
        """Number of files."""
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[str, int]:
        """A path and its label."""
        return self.samples[index]


def loaders(files: list[str], workers: int) -> dict[str, forebay.Loader]:
    """One of each kind."""
    transforms = RECIPES["imagenet-train"].forebay
    labels = list(range(len(files)))
    options = {"transforms": transforms(), "batch_size": BATCH, "num_workers": workers}
    listed, mapped = forebay.FileList(files, labels), forebay.MapSource(Paths(files))
    return {
        "built-in": forebay.Loader(listed, shuffle=True, **options),
        "sampler": forebay.Loader(listed, sampler=RandomSampler(labels), **options),
        "dataset and sampler": forebay.Loader(mapped, sampler=RandomSampler(labels), **options),
    }


def rate(loader: forebay.Loader, seconds: float) -> float:
    """Images a second over whole epochs."""
    images, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        images += sum(len(batch) for batch, _ in loader)
    return images / (time.perf_counter() - started)


def million_names(file: str) -> float:
    """Seconds from a list of paths to the first batch."""
    paths = [file] * NAMES
    started = time.perf_counter()
    transforms = RECIPES["imagenet-train"].forebay()
    with forebay.Loader(forebay.FileList(paths), transforms=transforms, batch_size=BATCH) as loader:
        next(iter(loader))
    return time.perf_counter() - started


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="folder of images")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="per measurement")
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--out", help="write the figures as JSON")
    arguments = parser.parse_args()
    files = list_images(arguments.data) * REPEATS
    kinds = loaders(files, arguments.num_workers)
    for loader in kinds.values():
        rate(loader, 0.5)
    rounds = [
        {name: rate(loader, arguments.seconds) for name, loader in kinds.items()}
        for _ in range(arguments.rounds)
    ]
    medians = {name: statistics.median(row[name] for row in rounds) for name in kinds}
    ratios = {
        name: statistics.median(row[name] / row["built-in"] for row in rounds) for name in kinds
    }
    names_s = million_names(files[0])
    for name, median in medians.items():
        print(f"{name:<22}{median:>8.0f} images/s {ratios[name]:>7.3f} of built-in")
    print(f"a million names to the first batch: {names_s:.2f} s")
    if arguments.out:
        record = {
            "command": "python benches/feeds.py " + " ".join(sys.argv[2:]),
            "machine": report.machine_record(),
            "versions": {"torch": torch.__version__, "forebay": forebay.__version__},
            "data": report.data_record(files),
            "images_per_s": {name: round(value, 1) for name, value in medians.items()},
            "of_built_in": {name: round(value, 4) for name, value in ratios.items()},
            "million_names_first_batch_s": round(names_s, 3),
        }
        Path(arguments.out).write_text(json.dumps(record, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
