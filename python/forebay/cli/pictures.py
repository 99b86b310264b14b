"""JPEGs made from the photos that ``forebay bench`` is given: of cameras, of 12 MP, and 4:2:0."""

from __future__ import annotations

import hashlib
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .. import _native, machine
from .output import Progress

COUNT = 96
LARGE_COUNT = 64


@dataclass(frozen=True)
class Form:
    """How a photo is saved, 4:2:0 in any case; ``size`` is width and height, None the photo's.

    ``noise`` is the standard deviation of what a sensor adds to its pixels, in steps of 255.
    """

    quality: int
    size: tuple[int, int] | None = None
    noise: float = 0.0

    def __str__(self) -> str:
        """Names it in the digest of what pictures are made of."""
        size = "as is" if self.size is None else f"{self.size[0]}x{self.size[1]}"
        noise = f" noise {self.noise}" if self.noise else ""
        return f"{size} quality {self.quality} 4:2:0{noise}"


CAMERA = Form(93, (1600, 900))
SUBSAMPLED = Form(92)
LARGE = Form(92, (4000, 3000), noise=4.0)


def camera_pictures(files: list[str]) -> list[str]:
    """JPEGs of 1600x900, quality 93, 4:2:0, from up to 96 of the files, spread over all."""
    return _kept(_spread(files, COUNT), CAMERA)


def large_pictures(files: list[str]) -> list[str]:
    """JPEGs of 12 MP with a sensor's noise, quality 92, 4:2:0, from up to 64 of the files."""
    return _kept(_spread(files, LARGE_COUNT), LARGE)


def _spread(files: list[str], count: int) -> list[str]:
    return files[:: max(1, len(files) // count)][:count]


def subsampled_pictures(files: list[str]) -> list[str]:
    """All of the files as JPEGs of quality 92, 4:2:0, in their sizes."""
    return _kept(files, SUBSAMPLED)


def _kept(files: list[str], form: Form) -> list[str]:
    """The pictures, made once: in the user's cache folder, in a folder named by their content."""
    name = _digest(files, form)
    for base in (_cache(), Path(tempfile.gettempdir())):
        try:
            return _made(files, base / "forebay-bench" / name, form)
        except PermissionError:
            continue
    raise PermissionError("the pictures cannot be kept: no writable cache folder")


def _made(files: list[str], folder: Path, form: Form) -> list[str]:
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures are made with Pillow: pip install pillow") from error
    folder.mkdir(parents=True, exist_ok=True)
    pictures = [folder / f"{number:04d}.jpg" for number in range(len(files))]
    # Pillow lets go of the interpreter's lock while it decodes, resizes and encodes.
    threads = ThreadPoolExecutor(machine.usable_cores())
    with Progress("pictures", len(files)) as progress, threads:
        for number, _ in enumerate(threads.map(partial(_make, form), files, pictures)):
            progress.update(number + 1, f"{number + 1} made")
    return [str(picture) for picture in pictures]


def _make(form: Form, file: str, picture: Path) -> None:
    from PIL import Image

    if picture.exists():
        return
    unfinished = picture.with_suffix(f".{os.getpid()}.part")
    with Image.open(file) as photo:
        pixels = photo.convert("RGB")
    if form.size:
        pixels = pixels.resize(form.size)
    if form.noise:
        pixels = _noisy(pixels, form.noise)
    pixels.save(unfinished, "JPEG", quality=form.quality, subsampling="4:2:0")
    unfinished.replace(picture)


def _noisy(pixels: Any, deviation: float) -> Any:
    """The same noise on every picture, as it is independent of what is on it."""
    from PIL import Image

    values = np.asarray(pixels)
    noise = np.random.default_rng(0).standard_normal(values.shape, np.float32) * deviation
    return Image.fromarray(np.clip(np.rint(values + noise), 0, 255).astype(np.uint8))


def _digest(files: list[str], form: Form) -> str:
    """Names what the pictures are made of: the files' bytes, and how."""
    digest = hashlib.sha256(str(form).encode())
    for file in files:
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return digest.hexdigest()[:16]


def _cache() -> Path:
    return Path(_native.environment("XDG_CACHE_HOME") or "~/.cache").expanduser()
