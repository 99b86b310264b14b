"""Feeds generated photos through Forebay and through DataLoader, and compares."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from .. import ImageFolder, Loader
from .. import transforms as T
from ..machine import usable_cores
from .output import Progress, say, say_json
from .photos import write_photos
from .recipes import RECIPES
from .usage import check_int, check_seconds

_BATCH_SIZE = 32
_SHEET_COLUMNS, _SHEET_SIDE = 8, 160


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.add_argument("--folder", default="demo", help="where photos and contact sheet go")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--num-workers", type=int, help="default: the usable cores")
    parser.add_argument("--seconds", type=float, default=4.0, help="per loader")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Makes the photos, runs both loaders, writes the contact sheet."""
    try:
        torchvision_folder = import_module("torchvision.datasets").ImageFolder
    except ImportError as error:
        raise ImportError(
            f"the comparison needs torchvision ({error}); pip install torchvision"
        ) from error
    check_int("--images", arguments.images, least=_BATCH_SIZE)
    check_seconds("--seconds", arguments.seconds)
    workers = usable_cores() if arguments.num_workers is None else arguments.num_workers
    check_int("--num-workers", workers, least=0)
    photos = Path(arguments.folder) / "photos"
    _make_photos(photos, arguments.images)
    recipe = RECIPES["imagenet-train"]
    with Loader(
        ImageFolder(photos),
        transforms=recipe.forebay(),
        batch_size=_BATCH_SIZE,
        shuffle=True,
        num_workers=workers,
    ) as loader:
        own = _rate("forebay", loader, arguments.seconds)
    peer = _rate(
        "DataLoader",
        torch.utils.data.DataLoader(
            torchvision_folder(photos, recipe.torchvision()),
            batch_size=_BATCH_SIZE,
            shuffle=True,
            num_workers=workers,
            persistent_workers=workers > 0,
        ),
        arguments.seconds,
    )
    sheet = Path(arguments.folder) / "contact_sheet.png"
    _write_sheet(photos, sheet)
    if arguments.json:
        result = {"forebay": own, "dataloader": peer, "workers": workers}
        say_json(result | {"ratio": round(own / peer, 2), "contact_sheet": str(sheet)})
        return 0
    say(f"generated photos, {workers} threads or worker processes each:")
    say(f"  forebay                   {own:8.0f} images/s")
    say(f"  DataLoader + torchvision  {peer:8.0f} images/s")
    say(f"  ratio                     {own / peer:8.2f}")
    say(f"an augmented batch, each image with its label: {sheet}")
    return 0


def _make_photos(folder: Path, count: int) -> None:
    with Progress("photos", count) as progress:
        write_photos(folder, count, lambda number: progress.update(number, f"{number} made"))


def _rate(label: str, loader: Iterable[Any], seconds: float) -> float:
    """Images per second, epoch after epoch, after one epoch of warm-up."""
    for _ in loader:
        pass
    images, begun = 0, time.perf_counter()
    with Progress(label, seconds) as progress:
        while (spent := time.perf_counter() - begun) < seconds:
            for batch, _ in loader:
                images += len(batch)
                spent = time.perf_counter() - begun
                progress.update(spent, f"{images / spent:.0f} images/s")
                if spent >= seconds:
                    break
    return round(images / spent, 1)


def _write_sheet(photos: Path, sheet: Path) -> None:
    """A batch, each image under the name of its class: whether labels fit can be seen."""
    from PIL import Image, ImageDraw

    augment = [
        T.RandomResizedCrop(_SHEET_SIDE),
        T.RandomHorizontalFlip(),
        T.ColorJitter(0.3, 0.3, 0.3, 0.05),
    ]
    source = ImageFolder(photos)
    with Loader(source, transforms=augment, batch_size=_BATCH_SIZE, shuffle=True) as loader:
        images, labels = next(iter(loader))
    rows = images.reshape(-1, _SHEET_COLUMNS, 3, _SHEET_SIDE, _SHEET_SIDE)
    grid = rows.permute(0, 3, 1, 4, 2).reshape(-1, _SHEET_COLUMNS * _SHEET_SIDE, 3)
    picture = Image.fromarray(grid.contiguous().numpy())
    draw = ImageDraw.Draw(picture)
    for place, label in enumerate(labels.tolist()):
        row, column = divmod(place, _SHEET_COLUMNS)
        corner, name = (column * _SHEET_SIDE, row * _SHEET_SIDE), source.classes[label]
        _, _, right, bottom = draw.textbbox((corner[0] + 3, corner[1] + 1), name)
        draw.rectangle((corner, (right + 3, bottom + 3)), fill="black")
        draw.text((corner[0] + 3, corner[1] + 1), name, fill="white")
    picture.save(sheet)
