"""Among torch's DataPipes: python 07_datapipe.py [FOLDER], a folder of images."""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from torch.utils.data import DataLoader
from torch.utils.data.datapipes.iter import IterableWrapper

import forebay.datapipes  # noqa: F401  (registers .forebay)
from forebay import transforms as T


def write_photos(root: Path, count: int = 48) -> None:
    """JPEGs of noise."""
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 256, (120, 160, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / f"{number:03d}.jpg")


def labelled(path: Path) -> tuple[Path, int]:
    """A record: a path or the file's bytes, and a label."""
    return path, int(path.stem) % 10


def brightest(batch: tuple) -> tuple[int, float]:
    """Something to do with a batch, in the worker that made it."""
    images, labels = batch  # (8, 3, 96, 96) float32, (8,) int64
    means = images.mean((1, 2, 3))
    return labels[means.argmax()].item(), means.max().item()


def show(root: Path) -> None:
    """The same pipe in this process, with Rust threads, and in worker processes."""
    pipe = (
        IterableWrapper(sorted(root.rglob("*.jpg")))
        .shuffle()
        .sharding_filter()
        .map(labelled)
        .forebay(transforms=[T.RandomResizedCrop(96), T.Normalize(0.5, 0.25)], batch_size=8)
    )
    print(len(pipe), "batches:", [labels.tolist() for _, labels in pipe])
    # Each worker takes its share of the records; batch_size=None: these are batches already.
    for epoch in range(2):
        loader = DataLoader(pipe.map(brightest), batch_size=None, num_workers=2)
        print("epoch", epoch, [f"{label} {mean:.3f}" for label, mean in loader])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        if len(sys.argv) == 1:
            write_photos(Path(made))
        show(Path(sys.argv[1] if len(sys.argv) > 1 else made))
