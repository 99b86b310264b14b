"""Trains a small network on generated photos: python 05_train.py."""

import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

import forebay
from forebay import transforms as T

CLASSES = ("across", "down", "aslant")


def write_photos(root: Path, per_class: int = 40) -> None:
    """JPEGs of stripes in noise; their direction is the class."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:96, 0:128]
    for name, along in zip(CLASSES, (y, x, (x + y) / 1.4), strict=True):
        (root / name).mkdir()
        for number in range(per_class):
            stripes = np.sin(along / rng.uniform(3, 5) + rng.uniform(0, 6))[..., None]
            pixels = 128 + 60 * stripes * rng.uniform(0.3, 1, 3) + rng.normal(0, 30, (96, 128, 3))
            pixels = pixels.clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number:03d}.jpg")


def train(root: Path, epochs: int = 4) -> list[float]:
    """The mean loss of each epoch."""
    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 16, 7, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, len(CLASSES))),
    )
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    recipe = [T.RandomResizedCrop(64, scale=(0.5, 1)), T.ColorJitter(0.2), T.Normalize(0.5, 0.25)]
    losses, source = [], forebay.ImageFolder(root)
    with forebay.Loader(source, transforms=recipe, batch_size=16, shuffle=True) as loader:
        for epoch in range(epochs):
            total = 0.0
            for images, labels in loader:  # (16, 3, 64, 64) float32, (16,) int64
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                total += loss.item() / len(loader)
            print(f"epoch {epoch}: loss {total:.3f}")
            losses.append(total)
    return losses


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_photos(Path(folder))
        first, *_, last = train(Path(folder))
    assert last < 0.6 * first, "the loss should fall"
