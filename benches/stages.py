"""Where one core's time goes per image, by stage, from samples of the fused training recipe.

    make profile DATA=FOLDER
    python benches/stages.py FOLDER [--rounds N] [--out FILE]

Builds the bench ``decode`` with symbols, runs its variant "fused" (RandomResizedCrop(224), a flip,
normalised float32) on one thread under ``perf record``, and adds up the samples by the function
they fell in. The stages are those of ``docs/performance.md``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The first that matches a symbol decides.
STAGES = {
    "entropy decoding": r"huffman|decode_mcu|fill_bit|decode_block|prefetch",
    "inverse DCT": r"idct",
    "upsampling and colour": r"upsample|ycc|rgb_convert|h2v|sep_up|gray_rgb|process_data",
    "resample across": r"pixel::horizontal",
    "resample down": r"pixel::vertical",
    "colour program": r"pixel::color",
    "write": r"pixel::write",
    "probe": r"probe",
    "libjpeg's other work": r"jpeg|jzero|jcopy|jinit|_image|read_markers|get_s|start_|decompress",
}
OTHER = "everything else"


def main() -> int:
    """Profiles and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="folder of JPEGs")
    parser.add_argument("--rounds", type=int, default=10, help="over all photos (default: 10)")
    parser.add_argument("--out", help="write the figures as JSON")
    arguments = parser.parse_args()
    if shutil.which("perf") is None:
        print("perf is missing: apt-get install linux-perf", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        samples = Path(folder) / "perf.data"
        bench = [str(built()), str(Path(arguments.data).resolve()), str(arguments.rounds), "fused"]
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", "4000", "-o", str(samples)]
        said = subprocess.run(record + bench, check=True, stdout=subprocess.PIPE, text=True)
        shares = by_stage(samples)
    rate = float(re.search(r"([\d.]+) images/s", said.stdout)[1])
    table(shares, rate)
    if arguments.out:
        figures = {"images_per_s": rate, "share": {name: round(at, 4) for name, at in shares}}
        Path(arguments.out).write_text(json.dumps(figures, indent=2) + "\n")
    return 0


def built() -> Path:
    """The bench's executable."""
    command = ["cargo", "bench", "-q", "-p", "forebay-codec", "--bench", "decode", "--no-run"]
    said = subprocess.run(
        [*command, "--message-format=json"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    messages = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("{")]
    return Path(next(one["executable"] for one in messages if one.get("executable")))


def by_stage(samples: Path) -> list[tuple[str, float]]:
    """Shares of all samples, the largest first."""
    report = ["perf", "report", "-i", str(samples), "--stdio", "--no-children", "-g", "none"]
    report += ["--sort", "symbol", "-F", "overhead,symbol", "--percent-limit", "0"]
    said = subprocess.run(report, check=True, capture_output=True, text=True).stdout
    sums = dict.fromkeys([*STAGES, OTHER], 0.0)
    for percent, symbol in re.findall(r"^\s*([\d.]+)%\s+\[.\]\s+(.*?)\s*$", said, re.MULTILINE):
        sums[stage_of(symbol)] += float(percent) / 100
    # Samples in the kernel are of page faults and the clock.
    sums[OTHER] += max(0.0, 1 - sum(sums.values()))
    return sorted(sums.items(), key=lambda item: -item[1])


def stage_of(symbol: str) -> str:
    """The stage whose function it is."""
    found = (name for name, pattern in STAGES.items() if re.search(pattern, symbol))
    return next(found, OTHER)


def table(shares: list[tuple[str, float]], rate: float) -> None:
    """Prints the shares and the time of each."""
    print(f"{'stage':<24}{'share':>7}{'µs an image':>14}")
    for name, share in shares:
        print(f"{name:<24}{100 * share:>6.1f}%{1e6 * share / rate:>14.0f}")
    print(f"{'all':<24}{'100.0%':>7}{1e6 / rate:>14.0f}   {rate:.0f} images/s on one thread")


if __name__ == "__main__":
    sys.exit(main())
