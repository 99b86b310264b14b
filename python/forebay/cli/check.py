"""Decodes every image of a folder; lists what is broken and why, and what is strange."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from pathlib import Path
from typing import BinaryIO

from . import files
from .files import Finding
from .output import say, say_json, written

HUGE_PIXELS = 16_000_000
_FORMATS = {
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".png": "png",
    ".bmp": "bmp",
    ".tif": "tiff",
    ".tiff": "tiff",
    ".webp": "webp",
    ".ppm": "pnm",
    ".pgm": "pnm",
}
# What each kind of strangeness means to who trains on it.
STRANGE = {
    "rotated": "stored turned or mirrored, by EXIF",
    "cmyk": "CMYK",
    "grey": "one channel of grey",
    "alpha": "transparency, which is dropped",
    "progressive": "progressive, slower to decode",
    "huge": f"more than {HUGE_PIXELS // 1_000_000} megapixels",
    "extension": "content of another format than the name says",
    "warnings": "damaged inside, decoded with every row there",
}
_NAMED = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    files.add_arguments(parser)
    parser.add_argument(
        "--quarantine", metavar="FILE", help="write what is broken there, as lines of JSON"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reports; 1 if something is broken."""
    begun = time.perf_counter()
    good = size = 0
    broken: list[dict[str, str]] = []
    strange: dict[str, list[str]] = {kind: [] for kind in STRANGE}
    findings = files.examined(arguments)
    with _lines(arguments.quarantine) as quarantine:
        for file, finding in findings:
            if "reason" in finding:
                broken.append({"key": file, **finding})
                if quarantine is not None:
                    with written("--quarantine", arguments.quarantine):
                        line = {**broken[-1], "key": os.path.abspath(file)}
                        quarantine.write(json.dumps(line).encode() + b"\n")
                continue
            good += 1
            size += finding["bytes"]
            for kind in strangeness(file, finding):
                strange[kind].append(file)
    seconds = time.perf_counter() - begun
    if arguments.json:
        say_json(
            {
                "images": good + len(broken),
                "bytes": size,
                "seconds": round(seconds, 3),
                "broken": broken,
                "strange": strange,
            }
        )
    else:
        _say(good, size, seconds, broken, strange)
    return 1 if broken else 0


def strangeness(file: str, finding: Finding) -> list[str]:
    """The kinds, of `STRANGE`, that a decoded file belongs to."""
    jpeg, components = finding["format"] == "jpeg", finding["components"]
    suffix = Path(file).suffix.lower()
    found = {
        "rotated": finding["oriented"],
        "cmyk": jpeg and components == 4,
        "grey": components in (1, 2),
        "alpha": finding["alpha"],
        "progressive": finding["progressive"],
        "huge": finding["width"] * finding["height"] > HUGE_PIXELS,
        "extension": _FORMATS.get(suffix) != finding["format"],
        "warnings": finding["warnings"] > 0,
    }
    return [kind for kind, true in found.items() if true]


def _lines(file: str | None) -> contextlib.AbstractContextManager[BinaryIO | None]:
    """A file of lines, written anew; None without a name."""
    if not file:
        return contextlib.nullcontext()
    with written("--quarantine", file):
        return open(file, "wb", buffering=0)


def _say(
    good: int,
    size: int,
    seconds: float,
    broken: list[dict[str, str]],
    strange: dict[str, list[str]],
) -> None:
    if broken:
        say(f"broken: {len(broken)}")
        for fault in broken:
            say(f"  {files.shown(fault['key'])}: {fault['stage']}: {fault['reason']}")
    for kind, names in strange.items():
        if not names:
            continue
        say(f"{kind}: {len(names)} ({STRANGE[kind]})")
        for name in names[:_NAMED]:
            say(f"  {files.shown(name)}")
        if len(names) > _NAMED:
            say(f"  and {len(names) - _NAMED} more; --json has all")
    images = good + len(broken)
    say(
        f"{images} images, {size / 1e6:.1f} MB, {len(broken)} broken; "
        f"{images / max(seconds, 1e-9):.0f} images/s"
    )
