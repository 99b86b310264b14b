"""Pictures of six cameras' size, made from the photos that ``forebay bench`` is given."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from .. import _native
from .output import Progress

COUNT = 96
WIDTH, HEIGHT = 1600, 900
QUALITY = 93


def camera_pictures(files: list[str]) -> list[str]:
    """JPEGs of 1600x900, quality 93, 4:2:0, from up to 96 of the files, spread over all.

    They are kept in the user's cache folder, in a folder named by the files' content, and made
    once.
    """
    chosen = files[:: max(1, len(files) // COUNT)][:COUNT]
    name = _digest(chosen)
    for base in (_cache(), Path(tempfile.gettempdir())):
        try:
            return _made(chosen, base / "forebay-bench" / name)
        except PermissionError:
            continue
    raise PermissionError("multicam's pictures cannot be kept: no writable cache folder")


def _made(files: list[str], folder: Path) -> list[str]:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("multicam makes its pictures with Pillow: pip install pillow") from error
    folder.mkdir(parents=True, exist_ok=True)
    pictures = [folder / f"{number:04d}.jpg" for number in range(len(files))]
    with Progress("pictures", len(files)) as progress:
        for number, (file, picture) in enumerate(zip(files, pictures, strict=True)):
            if not picture.exists():
                unfinished = picture.with_suffix(f".{os.getpid()}.part")
                with Image.open(file) as photo:
                    large = photo.convert("RGB").resize((WIDTH, HEIGHT))
                large.save(unfinished, "JPEG", quality=QUALITY, subsampling="4:2:0")
                unfinished.replace(picture)
            progress.update(number + 1, f"{number + 1} made")
    return [str(picture) for picture in pictures]


def _digest(files: list[str]) -> str:
    """Names what the pictures are made of: the files' bytes, and how."""
    digest = hashlib.sha256(f"{WIDTH}x{HEIGHT} quality {QUALITY} 4:2:0".encode())
    for file in files:
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return digest.hexdigest()[:16]


def _cache() -> Path:
    return Path(_native.environment("XDG_CACHE_HOME") or "~/.cache").expanduser()
