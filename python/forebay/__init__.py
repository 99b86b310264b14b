"""Forebay: training batches of images for PyTorch, read, decoded and augmented outside Python."""

from __future__ import annotations

from . import ops, transforms
from .errors import ClosedError, Failure, SampleError
from .loader import Loader
from .sources import FileList, ImageFolder, MapSource

__version__ = "0.1.0"  # the one place: pyproject.toml reads it here

__all__ = [
    "ClosedError",
    "Failure",
    "FileList",
    "ImageFolder",
    "Loader",
    "MapSource",
    "SampleError",
    "ops",
    "transforms",
]
