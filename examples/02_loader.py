"""Training and validation batches: python 02_loader.py [FOLDER], a folder of class folders."""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import forebay
from forebay import transforms as T

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def write_photos(root: Path, count: int = 24) -> None:
    """JPEGs of noise in two class folders."""
    rng = np.random.default_rng(0)
    for number in range(count):
        path = root / f"class_{number % 2}" / f"{number:03d}.jpg"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (240, 320, 3), dtype=np.uint8)).save(path)


def show(root: Path) -> None:
    """Prints what the first batches hold."""
    source = forebay.ImageFolder(root)
    print(f"{len(source)} images of {len(source.classes)} classes")
    train = forebay.Loader(
        source,
        transforms=[T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.Normalize(MEAN, STD)],
        batch_size=8,
        shuffle=True,
        drop_last=True,
    )
    validate = forebay.Loader(
        source,
        transforms=[T.Resize(256), T.CenterCrop(224), T.Normalize(MEAN, STD)],
        batch_size=8,
        fields={"x": "image", "y": "label", "where": "key"},
    )
    with train, validate:
        for images, labels in train:
            print("train   ", tuple(images.shape), images.dtype, labels.tolist())
        batch = next(iter(validate))
        print("validate", tuple(batch["x"].shape), batch["y"].dtype, Path(batch["where"][0]).name)
        stats = train.stats()
        print(stats["passes"], "passes over the pixels of", stats["samples"], "samples")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        show(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            write_photos(Path(folder))
            show(Path(folder))
