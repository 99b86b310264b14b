"""The files that are measured: photos, their 4:2:0, six cameras' pictures, and parts of these."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from forebay.cli import report
from forebay.cli.files import list_images
from forebay.cli.pictures import camera_pictures, subsampled_pictures

# Subsamplings by the sampling factors of the first component, the others having 1 by 1.
SUBSAMPLINGS = {(1, 1): "4:4:4", (2, 1): "4:2:2", (2, 2): "4:2:0"}
# Fewer are repeated too often to tell anything.
LEAST_SHARE = 0.05


class Images:
    """Files as often as they are measured, in the page cache; those that differ are `unique`."""

    def __init__(self, unique: list[str], count: int) -> None:
        """Repeats the files to ``count``; reads each once."""
        self.unique = unique[:count]
        self.files = repeated(self.unique, count)
        for file in self.unique:
            Path(file).read_bytes()

    @classmethod
    def photos(cls, folder: str, count: int) -> Images:
        """The images below the folder."""
        return cls(list_images(folder), count)

    @classmethod
    def subsampled(cls, folder: str, count: int) -> Images:
        """The same as 4:2:0."""
        return cls(subsampled_pictures(list_images(folder)[:count]), count)

    @classmethod
    def cameras(cls, folder: str, count: int) -> Images:
        """Pictures of 1600x900."""
        return cls(camera_pictures(list_images(folder)), count)

    def by_subsampling(self) -> dict[str, list[str]]:
        """Those that JPEG engines can decode, of each subsampling that is not rare, repeated."""
        found: dict[str, list[str]] = {}
        for file, name, _ in self._headers():
            found.setdefault(name, []).append(file)
        found.pop("", None)
        least = LEAST_SHARE * len(self.unique)
        return {name: of for name, of in sorted(found.items()) if len(of) >= least}

    def largest(self) -> tuple[int, int]:
        """The largest height and the largest width."""
        sizes = [size for _, _, size in self._headers()]
        return max(height for _, height in sizes), max(width for width, _ in sizes)

    def record(self) -> dict[str, Any]:
        """How many and which, for the record."""
        counts: dict[str, int] = {}
        for _, name, _ in self._headers():
            counts[name or "others"] = counts.get(name or "others", 0) + 1
        of = report.data_record(self.unique)
        return {"unique": len(self.unique), **of, "images": len(self.files), "unique_by": counts}

    def _headers(self) -> Iterator[tuple[str, str, tuple[int, int]]]:
        """File, subsampling (empty for what engines cannot decode), width and height."""
        for file in self.unique:
            with Image.open(file) as image:
                yield file, _subsampling(image), image.size


def _subsampling(image: Image.Image) -> str:
    layers = [tuple(layer[1:3]) for layer in getattr(image, "layer", [])]
    if len(layers) != 3 or "progressive" in image.info or layers[1:] != [(1, 1), (1, 1)]:
        return ""
    return SUBSAMPLINGS.get(layers[0], "")


def repeated(files: list[str], count: int) -> list[str]:
    """The files over and over, ``count`` in all."""
    return list(itertools.islice(itertools.cycle(files), count))
