"""SPDL's pipeline of threads with OpenCV's decoder and resize.

SPDL's own decoder needs FFmpeg's shared libraries from the system, which its packages do not
bring; OpenCV in its threads needs nothing and releases the interpreter's lock while it works.

A thread makes a whole batch. Image by image, with a stage that stacks them, is what SPDL's first
examples show, but its scheduling then takes a third of the rate.

Pixels: see ``opencv.py``. Batches go on across epochs, so that threads never wait for the end of
one; in the training recipe they come in the order in which they are ready.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import torch

from ..recipes import RECIPES
from .copied import copied
from .opencv import OpenCVRecipe

_BATCHES_AHEAD = 3


def make(
    files: list[str], recipe: str, batch_size: int, workers: int, device: str = "cpu"
) -> Iterable[Any]:
    """An endless iterator of batches; 0 workers are taken as 1, as SPDL has no other way."""
    found = RECIPES[recipe]
    threads = max(1, workers)
    torch.set_num_threads(1)  # each of SPDL's threads would start a team of torch's
    load = OpenCVRecipe(found)

    def batch(names: list[str]) -> torch.Tensor:
        images = torch.stack([load(name) for name in names])
        return images if device == "cpu" else images.pin_memory()

    pipeline = (
        import_module("spdl.pipeline")
        .PipelineBuilder()
        .add_source(_names(files, found.shuffle, batch_size))
        .pipe(
            batch,
            concurrency=threads,
            output_order="completion" if found.shuffle else "input",
        )
        .add_sink(_BATCHES_AHEAD)
        .build(num_threads=threads, max_failures=0)
    )
    return copied(_batches(pipeline), device)


def _names(files: list[str], shuffle: bool, batch_size: int) -> Iterator[list[str]]:
    """Batches of names, epoch after epoch."""
    names = itertools.chain.from_iterable(
        random.sample(files, len(files)) if shuffle else files for _ in itertools.count()
    )
    while True:
        yield list(itertools.islice(names, batch_size))


def _batches(pipeline: Any) -> Iterator[Any]:
    with pipeline.auto_stop():
        yield from pipeline


def versions() -> dict[str, str]:
    """Libraries that do the work."""
    metadata: Any = import_module("importlib.metadata")
    return {
        "spdl": metadata.version("spdl"),
        "torch": torch.__version__,
        "torchvision": import_module("torchvision").__version__,
        "opencv": import_module("cv2").__version__,
    }
