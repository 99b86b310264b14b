"""How far Forebay's transforms are from torchvision v2's, on photos.

    python tests/parity.py PHOTOS [--limit N] [--write docs/transforms.md]

Both get the same decoded pixels and the same parameters, as ranges that leave nothing to draw, of
numbers that float32, in which torchvision draws, holds exactly where that matters. The table says
the largest and the mean difference over all values, in steps of 255; a difference beyond its bound
ends with 1. --write puts the table between its marks in a page.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torchvision.transforms import InterpolationMode
from torchvision.transforms import v2 as V

import forebay
from forebay import transforms as T

BATCH = 16
# Larger than most photos: what lies outside is padding on both sides.
FRAME = 512
MARKS = "<!-- parity:begin -->", "<!-- parity:end -->"


class Case(NamedTuple):
    """One transform of both, and how far apart they may be."""

    label: str
    own: Any
    peer: Any
    bound: int


def same(bound: int, label: str, name: str, *args: Any, **options: Any) -> Case:
    """A transform that both call alike."""
    return Case(
        label, getattr(T, name)(*args, **options), getattr(V, name)(*args, **options), bound
    )


def cases() -> Iterator[Case]:
    """What the table has, in its order."""
    for name in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        mode, bound = InterpolationMode(name), 0 if name.startswith("nearest") else 1
        own = T.Resize((224, 160), interpolation=name)
        yield Case(f"Resize, {name}", own, V.Resize((224, 160), interpolation=mode), bound)
    yield same(1, "Resize, larger", "Resize", 500)
    whole = {"scale": (1, 1), "ratio": (1, 1)}
    yield same(1, "RandomResizedCrop", "RandomResizedCrop", 224, **whole)
    yield same(0, "CenterCrop", "CenterCrop", (300, 200))
    for mode in ("constant", "edge", "reflect", "symmetric"):
        yield same(0, f"Pad, {mode}", "Pad", (5, 2), padding_mode=mode)
    for name in ("RandomHorizontalFlip", "RandomVerticalFlip", "RandomGrayscale", "RandomInvert"):
        yield same(0, name, name, p=1)
    for name in ("RandomAutocontrast", "RandomEqualize"):
        yield same(0, name, name, p=1)
    yield same(0, "Grayscale", "Grayscale", 3)
    yield same(0, "RandomPosterize", "RandomPosterize", 3, p=1)
    yield same(0, "RandomSolarize", "RandomSolarize", 128, p=1)
    for change, amount in (("brightness", 1.4), ("contrast", 0.6), ("saturation", 1.5)):
        yield same(1, f"ColorJitter, {change}", "ColorJitter", **{change: (amount, amount)})
    yield same(1, "ColorJitter, hue", "ColorJitter", hue=(0.2, 0.2))
    yield same(0, "RandomAdjustSharpness", "RandomAdjustSharpness", 1.7, p=1)
    for name in ("nearest", "bilinear"):
        mode = InterpolationMode(name)
        own, peer = T.RandomRotation((33, 33), name), V.RandomRotation((33, 33), mode)
        yield Case(f"RandomRotation, {name}", own, peer, 0)
        tilt = {"degrees": (20, 20), "scale": (1.25, 1.25), "shear": (10, 10, 5, 5), "fill": 9}
        own = T.RandomAffine(**tilt, interpolation=name)
        yield Case(f"RandomAffine, {name}", own, V.RandomAffine(**tilt, interpolation=mode), 0)
    yield same(1, "GaussianBlur", "GaussianBlur", 7, sigma=(1.5, 1.5))


def measure(case: Case, files: list[Path], pixels: list[torch.Tensor]) -> tuple[int, float]:
    """The largest and the mean difference."""
    most, total, count = 0, 0, 0
    source, frame = forebay.FileList(files), V.CenterCrop(FRAME)
    recipe = [case.own, T.CenterCrop(FRAME)]
    with forebay.Loader(source, transforms=recipe, batch_size=BATCH) as loader:
        originals = iter(pixels)
        for image in (image for batch in loader for image in batch):
            expected = frame(case.peer(next(originals)))
            difference = (image.int() - expected.int()).abs()
            most = max(most, int(difference.max()))
            total += int(difference.sum())
            count += difference.numel()
    return most, total / count


def table(files: list[Path], pixels: list[torch.Tensor]) -> tuple[str, list[str]]:
    """The table, and what is beyond its bound."""
    lines = ["| transform | largest difference | mean difference | bound |", "|---|---|---|---|"]
    beyond = []
    for case in cases():
        most, mean = measure(case, files, pixels)
        lines.append(f"| {case.label} | {most} | {mean:.4f} | {case.bound} |")
        print(lines[-1], flush=True)
        if most > case.bound:
            beyond.append(case.label)
    return "\n".join(lines), beyond


def main() -> int:
    """Prints the table; 1 if a transform is beyond its bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("photos", type=Path, help="a folder, searched at any depth")
    parser.add_argument("--limit", type=int, default=100, help="photos at most")
    parser.add_argument("--write", type=Path, help="a page with the table's marks")
    arguments = parser.parse_args()
    files = sorted(path for path in arguments.photos.rglob("*") if path.is_file())
    files = files[: arguments.limit]
    if not files:
        parser.error(f"{arguments.photos} holds no files")
    encoded = [torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8) for path in files]
    text, beyond = table(files, [forebay.ops.decode_image(of) for of in encoded])
    if arguments.write:
        begin, end = MARKS
        versions = f"torchvision {version('torchvision')}, torch {version('torch')}"
        said = f"{begin}\n{len(files)} photos, {versions}:\n\n{text}\n{end}"
        page = arguments.write.read_text()
        found = re.search(f"{re.escape(begin)}.*{re.escape(end)}", page, re.DOTALL)
        if not found:
            parser.error(f"{arguments.write} has no {begin}")
        arguments.write.write_text(page[: found.start()] + said + page[found.end() :])
    if beyond:
        print(f"beyond their bounds: {', '.join(beyond)}", file=sys.stderr)
    return int(bool(beyond))


def version(package: str) -> str:
    """Without the build's name."""
    return str(import_module(package).__version__).split("+")[0]


if __name__ == "__main__":
    sys.exit(main())
