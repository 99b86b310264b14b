"""Goes on where a checkpoint was saved: python 03_resume.py [FOLDER], a folder of images."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import forebay
from forebay import transforms as T


def write_photos(root: Path, count: int = 24) -> None:
    """JPEGs of noise."""
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 256, (120, 160, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / f"{number:03d}.jpg")


def make_loader(root: Path, **keywords: int) -> forebay.Loader:
    """The same source, recipe and seed each time; threads and batch size may differ."""
    return forebay.Loader(
        forebay.FileList(sorted(root.rglob("*.jpg"))),
        transforms=[T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.ColorJitter(0.4)],
        shuffle=True,
        seed=7,
        fields=("image", "index"),
        **keywords,
    )


def show(root: Path) -> None:
    """Saves after two batches and compares what follows with what a new loader gives."""
    with (
        make_loader(root, batch_size=4) as first,
        make_loader(root, batch_size=6, num_workers=1) as second,
    ):
        batches = iter(first)
        for _ in range(2):
            next(batches)
        checkpoint = json.dumps(first.state_dict())
        print(checkpoint)
        images, index = map(torch.cat, zip(*batches, strict=True))

        second.load_state_dict(json.loads(checkpoint))
        again, again_index = map(torch.cat, zip(*second, strict=True))
        print(tuple(images.shape), images.dtype, index.tolist())
        print("the same bytes:", torch.equal(images, again) and torch.equal(index, again_index))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        if len(sys.argv) == 1:
            write_photos(Path(made))
        show(Path(sys.argv[1] if len(sys.argv) > 1 else made))
