"""Mean and standard deviation per channel over all pixels of a folder's images."""

from __future__ import annotations

import argparse
import math

from . import files
from .files import Finding
from .output import complain, fail, say, say_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    files.add_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reports; bad files are named on stderr and left out."""
    total, broken = Total(), []
    for file, finding in files.examined(arguments):
        if "reason" in finding:
            broken.append(f"{files.shown(file)}: {finding['stage']}: {finding['reason']}")
        else:
            total.add(finding)
    for fault in broken:
        complain(f"left out: {fault}")
    if not total.images:
        return fail(f"stats: none of {len(broken)} files could be decoded")
    if arguments.json:
        say_json(
            {
                "mean": total.mean(),
                "std": total.std(),
                "images": total.images,
                "pixels": total.pixels,
                "broken": len(broken),
            }
        )
        return 0
    for name, values in (("mean", total.mean()), ("std", total.std())):
        say(f"{name:<7}" + ", ".join(f"{value:.6f}" for value in values))
    say(f"images {total.images}")
    say(f"pixels {total.pixels}")
    if broken:
        say(f"broken {len(broken)}, left out")
    return 0


class Total:
    """Sums over images, in integers: exact, and independent of the order."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.images = self.pixels = 0
        self._sums = [0, 0, 0]
        self._squares = [0, 0, 0]

    def add(self, finding: Finding) -> None:
        """Adds a decoded file."""
        self.images += 1
        self.pixels += finding["width"] * finding["height"]
        for channel, (values, squares) in enumerate(finding["sums"]):
            self._sums[channel] += values
            self._squares[channel] += squares

    def mean(self) -> list[float]:
        """Of red, green and blue, on the scale 0..1, rounded once."""
        return [value / (255 * self.pixels) for value in self._sums]

    def std(self) -> list[float]:
        """Of the population: the root of the mean squared difference from the mean."""
        return [
            math.sqrt((self.pixels * squares - value * value) / (255 * self.pixels) ** 2)
            for value, squares in zip(self._sums, self._squares, strict=True)
        ]
