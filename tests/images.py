"""Test images, made from numbers: no files are kept."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from PIL import Image


def photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Pixels (height, width, 3) uint8 with smooth and fine structure."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
    noise = rng.integers(-12, 13, (height, width, 3), dtype=np.int16)
    return np.clip(smooth + noise, 0, 255).astype(np.uint8)


def flat(height: int, width: int, value: int) -> np.ndarray:
    """Pixels of one grey value, by which a sample can be told after decoding."""
    return np.full((height, width, 3), value, dtype=np.uint8)


def jpeg(pixels: np.ndarray, quality: int = 90, orientation: int | None = None, **save) -> bytes:
    """Encodes as JPEG, optionally with an EXIF orientation."""
    buffer = io.BytesIO()
    image = Image.fromarray(pixels)
    if orientation is not None:
        exif = Image.Exif()
        exif[0x0112] = orientation
        save["exif"] = exif
    image.save(buffer, "JPEG", quality=quality, **save)
    return buffer.getvalue()


def smooth_jpeg(height: int, width: int, seed: int = 0) -> bytes:
    """A JPEG of any size, made fast."""
    coarse = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    smooth.save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def png(pixels: np.ndarray) -> bytes:
    """Encodes as PNG."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def pillow_rgb(encoded: bytes) -> np.ndarray:
    """What Pillow decodes, as RGB."""
    return np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB"))


def write_folder(root: Path, classes: int, per_class: int, seed: int = 0) -> list[Path]:
    """Class folders of JPEGs of various sizes; the files in torchvision's order."""
    files = []
    for label in range(classes):
        folder = root / f"class_{label:02d}"
        folder.mkdir(parents=True)
        for number in range(per_class):
            place = label * per_class + number
            height, width = 40 + 7 * (place % 5), 44 + 9 * (place % 4)
            path = folder / f"{number:03d}.jpg"
            path.write_bytes(jpeg(photo(height, width, seed + place)))
            files.append(path)
    return files


def write_list(root: Path, count: int, seed: int = 0) -> list[str]:
    """A flat folder of JPEGs."""
    root.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in range(count):
        path = root / f"{number:04d}.jpg"
        path.write_bytes(jpeg(photo(40 + number % 7, 50 + number % 5, seed + number)))
        paths.append(str(path))
    return paths


def _cmyk(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert("CMYK").save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


# What JPEG engines take, in several subsamplings, and what is left to the CPU.
KINDS = {
    "444": lambda pixels, _: jpeg(pixels, subsampling=0),
    "422": lambda pixels, _: jpeg(pixels, subsampling=1),
    "420": lambda pixels, _: jpeg(pixels, subsampling=2),
    "420, low": lambda pixels, _: jpeg(pixels, quality=40, subsampling=2),
    "restarts": lambda pixels, _: jpeg(pixels, subsampling=2, restart_marker_blocks=3),
    "turned": lambda pixels, number: jpeg(pixels, orientation=1 + number % 8),
    "grey": lambda pixels, _: jpeg(pixels[..., 0]),
    "progressive": lambda pixels, _: jpeg(pixels, progressive=True),
    "cmyk": lambda pixels, _: _cmyk(pixels),
    "png": lambda pixels, _: png(pixels),
}


def write_mixed(root: Path, per_kind: int, kinds: Iterable[str] = tuple(KINDS)) -> list[str]:
    """Files of the kinds in turn, with sides of 64 to 250 pixels, even and odd."""
    root.mkdir(parents=True, exist_ok=True)
    paths = []
    kinds = list(kinds)
    for number in range(per_kind * len(kinds)):
        height, width = 64 + 31 * number % 187, 64 + 53 * number % 187
        path = root / f"{number:04d}.img"
        path.write_bytes(KINDS[kinds[number % len(kinds)]](photo(height, width, number), number))
        paths.append(str(path))
    return paths
