"""What the pixels mean for a model: logits of a ResNet-50 fed by Forebay and by torchvision.

    python tests/logits.py PHOTOS

The network has random weights of a fixed seed, and statistics of its normalisation from the photos
as torchvision v2 prepares them. Its logits on Forebay's batches must differ by at most 2 % of their
standard deviation over the photos; those of a control, resized without antialias, must differ by
more, or the test would show nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import torch
from torchvision.models import resnet50
from torchvision.transforms import v2

import forebay
from forebay import transforms as T

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH = 32
MOST = 0.02


def main() -> int:
    """Prints both differences; 1 if one is not what it must be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("photos", type=Path, help="a folder, searched at any depth")
    files = sorted(path for path in parser.parse_args().photos.rglob("*") if path.is_file())
    model = trained_on(torchvision_batches(files, antialias=True))
    expected = logits(model, torchvision_batches(files, antialias=True))
    spread = expected.std(0)
    differences = {
        "forebay": logits(model, forebay_batches(files)),
        "control": logits(model, torchvision_batches(files, antialias=False)),
    }
    parts = {name: ((of - expected).abs() / spread).max() for name, of in differences.items()}
    for name, part in parts.items():
        print(f"{name}: {100 * part:.3f} % of a logit's standard deviation, of {len(files)} photos")
    return int(parts["forebay"] > MOST or parts["control"] <= MOST)


def forebay_batches(files: list[Path]) -> Iterable[torch.Tensor]:
    """As a user's loader for validation gives them."""
    recipe = [T.Resize(256), T.CenterCrop(224), T.Normalize(MEAN, STD)]
    return forebay.Loader(forebay.FileList(files), transforms=recipe, batch_size=BATCH)


def torchvision_batches(files: list[Path], *, antialias: bool) -> Iterable[torch.Tensor]:
    """The same recipe on torchvision's own decoding."""
    from torchvision.io import ImageReadMode, decode_image

    recipe = v2.Compose(
        [
            v2.Resize(256, antialias=antialias),
            v2.CenterCrop(224),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    for first in range(0, len(files), BATCH):
        batch = files[first : first + BATCH]
        yield torch.stack([recipe(decode_image(str(file), ImageReadMode.RGB)) for file in batch])


@torch.no_grad()
def trained_on(batches: Iterable[torch.Tensor]) -> torch.nn.Module:
    """The network, whose layers have seen nothing but these."""
    torch.manual_seed(0)
    model = resnet50()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None  # the mean of all batches
    model.train()
    for images in batches:
        model(images)
    return model.eval()


@torch.no_grad()
def logits(model: torch.nn.Module, batches: Iterable[torch.Tensor]) -> torch.Tensor:
    """Of every photo."""
    return torch.cat([model(images) for images in batches])


if __name__ == "__main__":
    sys.exit(main())
