"""Photo-like pictures made from numbers, for a demo without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CLASSES = ("discs", "gradients", "stripes", "textures")
HEIGHT, WIDTH = 375, 500


def write_photos(folder: Path, count: int, report: Callable[[int], None]) -> None:
    """Writes ``count`` JPEGs of quality 90 into one folder per class, unless they are there."""
    from PIL import Image

    for number in range(count):
        name = CLASSES[number % len(CLASSES)]
        path = folder / name / f"{number:04d}.jpg"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".part")
            Image.fromarray(picture(name, number)).save(unfinished, "JPEG", quality=90)
            unfinished.replace(path)
        report(number + 1)


def picture(name: str, seed: int) -> NDArray[np.uint8]:
    """A picture ``(375, 500, 3)`` with the detail of a photo: shapes over 1/f noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    base = _gradient(rng, y, x)
    if name == "discs":
        for _ in range(12):
            inside = (y - rng.uniform(0, HEIGHT)) ** 2 + (x - rng.uniform(0, WIDTH)) ** 2
            base[inside < rng.uniform(15, 80) ** 2] = rng.uniform(0, 255, 3)
    elif name == "stripes":
        wave = np.sin((x * rng.uniform(-1, 1) + y * rng.uniform(-1, 1)) * rng.uniform(0.1, 0.5))
        base += wave[..., None] * rng.uniform(20, 60, 3)
    strength = 60 if name == "textures" else 18
    base += _noise(rng)[..., None] * strength * rng.uniform(0.6, 1.0, 3)
    pixels: NDArray[np.uint8] = np.clip(base, 0, 255).astype(np.uint8)
    return pixels


def _gradient(rng: np.random.Generator, y: Any, x: Any) -> Any:
    corners = rng.uniform(20, 235, (4, 3))
    across, down = (x / WIDTH)[..., None], (y / HEIGHT)[..., None]
    top = corners[0] * (1 - across) + corners[1] * across
    bottom = corners[2] * (1 - across) + corners[3] * across
    return top * (1 - down) + bottom * down


def _noise(rng: np.random.Generator) -> Any:
    """Smooth noise of every scale, weaker the finer, so that files are as large as photos'."""
    from PIL import Image

    total = np.zeros((HEIGHT, WIDTH), dtype=np.float32)
    for octave in range(7):
        cell = 1 << octave
        grid = rng.standard_normal((HEIGHT // cell + 2, WIDTH // cell + 2)).astype(np.float32)
        fine = Image.fromarray(grid).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
        total += np.asarray(fine) * cell**0.3
    return total / total.std()
