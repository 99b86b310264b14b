"""Writes the numbers in README.md from the records in benches/results.

    python benches/readme.py [--check] [--plot FILE]

A record is what ``forebay bench --compare ... --out FILE`` writes; one a recipe, taken with a warm
cache, all on one machine with one torch. Sweeps, cold runs and runs on a GPU in the same folder
are left alone.

The script owns two things in README.md: what is between ``<!-- bench:begin -->`` and
``<!-- bench:end -->``, and each number between ``<!--n:NAME-->`` and ``<!--/n-->``. It turns
``{{NAME}}`` into such a number. With ``--check`` nothing is written and the exit status says
whether README.md has the records' numbers.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
NUMBER = re.compile(r"<!--n:(\w+)-->.*?<!--/n-->|\{\{(\w+)\}\}")
RECIPES = {"imagenet-train": "train", "imagenet-val": "validation", "multicam": "multicam"}
LOADERS = {
    "forebay": "Forebay",
    "torch-pil": "DataLoader, Pillow, torchvision",
    "torch-v2": "DataLoader, torchvision v2",
    "torch-opencv": "DataLoader, OpenCV",
    "dali": "DALI, CPU",
    "spdl": "SPDL, OpenCV",
}
LIBRARIES = {"torchvision": "torchvision", "pillow": "Pillow", "opencv": "OpenCV"}
LIBRARIES |= {"dali": "DALI", "spdl": "SPDL"}

Record = dict[str, Any]


def load(folder: Path) -> dict[str, Record]:
    """The records by recipe, in README's order.

    Raises:
        ValueError: none, two of one recipe, or of unlike machines.
    """
    found: dict[str, Record] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        report = record.get("report", {})
        if "ratio" not in report or report.get("cache") != "warm":
            continue
        recipe = report["recipe"]
        if recipe in found:
            raise ValueError(f"{path.name}: a second warm comparison of {recipe} in {folder}")
        found[recipe] = record
    if not found:
        raise ValueError(f"no warm comparison in {folder}; forebay bench --compare .. --out writes")
    if len({json.dumps([record["machine"], torch_of(record)]) for record in found.values()}) > 1:
        raise ValueError("the records are of different machines, systems or versions of torch")
    order = [*RECIPES, *sorted(found.keys() - RECIPES.keys())]
    return {recipe: found[recipe] for recipe in order if recipe in found}


def torch_of(record: Record) -> str:
    """Its version without what the wheel was built for."""
    return str(record["versions"]["torch"]).partition("+")[0]


def numbers(records: dict[str, Record]) -> dict[str, str]:
    """What README's sentences may name."""
    any_record = next(iter(records.values()))
    values = {
        "cores": str(any_record["machine"]["usable_cores"]),
        "cpu": any_record["machine"]["cpu"],
        "torch": torch_of(any_record),
    }
    for recipe, short in (("imagenet-train", "train"), ("imagenet-val", "val"), ("multicam",) * 2):
        if recipe not in records:
            continue
        report = records[recipe]["report"]
        ratios = report["ratio"]
        values[f"{short}_best_ratio"] = f"{min(ratios.values()):.1f}"
        if "torch-pil" in ratios:
            memory = report["peers"]["torch-pil"]["pss_mb"] / report["pss_mb"]
            values[f"{short}_ratio"] = f"{ratios['torch-pil']:.1f}"
            values[f"{short}_pss_ratio"] = f"{memory:.1f}".removesuffix(".0")
    if "train_pss_ratio" in values:
        values["pss_ratio"] = values["train_pss_ratio"]
    return values


def conditions(records: dict[str, Record]) -> str:
    """The sentence above the table."""
    sets, batches, workers, rounds = {}, {}, set(), set()
    libraries: dict[str, str] = {}
    for recipe, record in records.items():
        data, report = record["data"], record["report"]
        size = f"{data['mean_bytes'] / 1e3:.0f} kB and {data['mean_pixels'] / 1e6:.1f} megapixels"
        sets.setdefault(f"{data['images']} images of {size}", []).append(
            RECIPES.get(recipe, recipe)
        )
        batches.setdefault(str(report["batch_size"]), []).append(RECIPES.get(recipe, recipe))
        workers.add(report["num_workers"])
        rounds.add(len(report["rounds"]) // (1 + len(report["peers"])))
        libraries |= record["versions"]
    versions = ", ".join(
        f"{shown} {libraries[name].partition('+')[0]}"
        for name, shown in LIBRARIES.items()
        if name in libraries
    )
    first = next(iter(records.values()))
    return (
        f"{by_recipe(sets)} on average; {first['machine']['cpu']}, "
        f"{first['machine']['usable_cores']} cores; torch {torch_of(first)}, {versions}; batches "
        f"of {by_recipe(batches)}, {'/'.join(map(str, sorted(workers)))} threads or worker "
        f"processes; warm page cache. Medians of {'/'.join(map(str, sorted(rounds)))} interleaved "
        "rounds ([method](docs/benchmarks.md), [records](benches/results))."
    )


def by_recipe(values: dict[str, list[str]]) -> str:
    """The first value, and which recipes have others."""
    (first, _), *others = values.items()
    return first + "".join(f" ({', '.join(of)}: {value})" for value, of in others)


def table(records: dict[str, Record]) -> str:
    """All loaders of all recipes; within a recipe Forebay, then the others by rate."""
    lines = [
        "| recipe | loader | images/s | Forebay's rate is | images per core-second | memory, MB "
        "| first batch, s |",
        "|---|---|---|---|---|---|---|",
    ]
    for recipe, record in records.items():
        report = record["report"]
        peers = sorted(report["peers"].values(), key=lambda row: -row["images_per_s"])
        for row in [report, *peers]:
            ratio = report["ratio"].get(row["loader"])
            lines.append(
                f"| {RECIPES.get(recipe, recipe)} | {LOADERS.get(row['loader'], row['loader'])} "
                f"| {row['images_per_s']:,.0f} | {f'{ratio:.2f} times' if ratio else ''} "
                f"| {row['images_per_cpu_s']:,.0f} | {row['pss_mb']:,.0f} "
                f"| {row['first_batch_s']:.2f} |"
            )
    return "\n".join(lines)


def written(readme: str, records: dict[str, Record]) -> str:
    """README with the records' numbers.

    Raises:
        ValueError: markers are missing, or a number that no record has is named.
    """
    if readme.count(BEGIN) != 1 or readme.count(END) != 1:
        raise ValueError(f"README.md must have one {BEGIN} and one {END}")
    before, _, rest = readme.partition(BEGIN)
    after = rest.partition(END)[2]
    values = numbers(records)

    def number(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        if name not in values:
            raise ValueError(f"README.md names {name}; the records have {', '.join(values)}")
        return f"<!--n:{name}-->{values[name]}<!--/n-->"

    before, after = NUMBER.sub(number, before), NUMBER.sub(number, after)
    return f"{before}{BEGIN}\n{conditions(records)}\n\n{table(records)}\n{END}{after}"


def main() -> int:
    """Writes, or checks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    parser.add_argument("--results", type=Path, default=ROOT / "benches/results")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    parser.add_argument("--plot", metavar="FILE", help="also draw the rates, in PNG or SVG")
    arguments = parser.parse_args()
    try:
        records = load(arguments.results)
        readme = arguments.readme.read_text()
        result = written(readme, records)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if arguments.check:
        return int(result != readme)
    arguments.readme.write_text(result)
    if arguments.plot:
        from forebay.cli import plot, report

        plot.require()
        rates = {
            RECIPES.get(name, name): report.rates(of["report"]) for name, of in records.items()
        }
        plot.bars(rates, arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
