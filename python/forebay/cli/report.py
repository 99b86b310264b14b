"""What ``forebay bench`` makes of its measurements: medians, ratios, a record for later."""

from __future__ import annotations

import os
import platform
import statistics
from pathlib import Path
from typing import Any

from .. import _native
from ..machine import usable_cores
from ..options import DEFAULT_MAX_PIXELS

_SAMPLED = 200

Row = dict[str, Any]


def median_round(rows: list[Row]) -> Row:
    """The round with the median rate; with several rounds also all of them."""
    middle = _middle(rows)
    return middle if len(rows) == 1 else middle | {"rounds": rows}


def comparison(rows: list[Row]) -> Row:
    """Forebay's median round, the peers', and the median of the ratios round by round."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row["loader"], []).append(row)
    middle = {name: _middle(of) for name, of in by_name.items()}
    own = by_name["forebay"]
    ratio = {
        name: round(
            statistics.median(
                _rate(ours) / _rate(theirs) for ours, theirs in zip(own, of, strict=True)
            ),
            3,
        )
        for name, of in by_name.items()
        if name != "forebay"
    }
    return middle["forebay"] | {
        "ratio": ratio,
        "peers": {name: middle[name] for name in ratio},
        "rounds": rows,
    }


def sweep(option: str, rows: list[Row], compare: bool) -> Row:
    """One comparison, or median round, per value of the option."""
    key = option.replace("-", "_")
    values = list(dict.fromkeys(row[key] for row in rows))
    make = comparison if compare else median_round
    points = [make([row for row in rows if row[key] == value]) for value in values]
    return {"sweep": {"option": option, "values": values}, "points": points}


def rates(report: Row) -> dict[str, float]:
    """Images per second by loader, of a comparison or a single loader."""
    loaders = {report["loader"]: report} | report.get("peers", {})
    return {name: _rate(row) for name, row in loaders.items()}


def _rate(row: Row) -> float:
    return float(row["images_per_s"])


def _middle(rows: list[Row]) -> Row:
    return sorted(rows, key=_rate)[len(rows) // 2]


def versions(rows: list[Row]) -> dict[str, str]:
    """Of all libraries that took part."""
    return {name: version for row in rows for name, version in row["versions"].items()}


def machine_record() -> Row:
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


def data_record(files: list[str]) -> Row:
    """How many images and how large; pixels are looked at in up to 200, spread over all."""
    looked_at = files[:: max(1, len(files) // _SAMPLED)][:_SAMPLED]
    found = [_native.examine_file(file, DEFAULT_MAX_PIXELS) for file in looked_at]
    pixels = [one["width"] * one["height"] for one in found if "width" in one]
    return {
        "images": len(files),
        "mean_bytes": round(statistics.fmean(os.stat(file).st_size for file in files)),
        "mean_pixels": round(statistics.fmean(pixels)) if pixels else None,
    }
