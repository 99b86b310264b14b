"""NVIDIA DALI's pipeline on the CPU or a GPU, with its iterator for PyTorch.

Pixels: decoded by libjpeg-turbo, which of a random crop decodes the crop alone, or on a GPU by
nvJPEG, which shares the images out between the JPEG engines and CUDA; resized with
antialiasing by a triangle, as Pillow does. Colour jitter is ``color_twist``: the four changes as
one linear map in a fixed order, contrast about half grey instead of the image's mean. Centred
crops lie one pixel aside where the middle falls between two.

Batches go on across epochs, so that threads never wait for the end of one; shuffling is by DALI's
buffer of 1024 files. Batches are handed out without a copy, which is the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import torch

from ..recipes import MEAN, RATIO, RECIPES, SCALE, STD, Recipe

# Of DALI's own examples; the best value depends on the GPU and the images.
HW_LOAD = 0.8
_BUFFER = 1024


def make(
    files: list[str],
    recipe: str,
    batch_size: int,
    workers: int,
    device: str = "cpu",
    dtype: str = "float32",
    hw_load: float = HW_LOAD,
    largest: tuple[int, int] | None = None,
    mmap: bool = False,
) -> Iterable[Any]:
    """An endless iterator of batches; 0 workers are taken as 1, as DALI has no other way.

    ``hw_load`` is the share of images for the GPU's JPEG engines, ``largest`` the height and width
    for which memory for them is taken at once. A mapped file (``mmap``) costs no copy of the
    encoded bytes, but stays in the page cache while a sample of it waits, and --cold says that
    none does.
    """
    dali: Any = import_module("nvidia.dali")
    fn: Any = import_module("nvidia.dali.fn")
    found = RECIPES[recipe]
    pipeline = dali.Pipeline(
        batch_size=batch_size,
        num_threads=max(1, workers),
        device_id=None if device == "cpu" else torch.device(device).index or 0,
    )
    decoder: dict[str, Any] = {"device": "cpu"}
    if device != "cpu":
        decoder = {"device": "mixed", "hw_decoder_load": hw_load}
        if largest:
            decoder["preallocate_height_hint"], decoder["preallocate_width_hint"] = largest
    with pipeline:
        encoded, _ = fn.readers.file(
            files=files,
            labels=[0] * len(files),
            random_shuffle=found.shuffle,
            initial_fill=min(len(files), _BUFFER),
            dont_use_mmap=not mmap,
        )
        pipeline.set_outputs(_steps(dali, fn, encoded, found, decoder, dtype))
    iterator = import_module("nvidia.dali.plugin.pytorch").DALIGenericIterator
    return _images(iterator(pipeline, ["image"]))


def _steps(
    dali: Any, fn: Any, encoded: Any, recipe: Recipe, decoder: dict[str, Any], dtype: str
) -> Any:
    """The recipe as DALI's graph; what follows the decoder runs where its images are."""
    triangle = {"interp_type": dali.types.INTERP_LINEAR, "antialias": True}
    unturned = {"adjust_orientation": False, **decoder}
    if recipe.resized_crop:
        images = fn.decoders.image_random_crop(
            encoded, random_area=SCALE, random_aspect_ratio=RATIO, num_attempts=10, **unturned
        )
        images = fn.resize(images, size=(recipe.resized_crop,) * 2, **triangle)
    else:
        images = fn.decoders.image(encoded, **unturned)
    if isinstance(recipe.resize, tuple):
        images = fn.resize(images, size=recipe.resize, **triangle)
    elif recipe.resize:
        images = fn.resize(images, resize_shorter=recipe.resize, **triangle)
    last: dict[str, Any] = {}
    if recipe.crop:
        last = {"crop": recipe.crop, "crop_pos_y": 1.0 if recipe.bottom else 0.5}
    if recipe.jitter:
        if recipe.crop:
            images = fn.crop(images, **last)
            last = {}
        images = _jittered(fn, images, recipe.jitter)
    if recipe.flip:
        last["mirror"] = fn.random.coin_flip(probability=recipe.flip)
    return fn.crop_mirror_normalize(
        images,
        dtype={"float32": dali.types.FLOAT, "float16": dali.types.FLOAT16}[dtype],
        output_layout="CHW",
        mean=[255 * mean for mean in MEAN],
        std=[255 * std for std in STD],
        **last,
    )


def _jittered(fn: Any, images: Any, jitter: tuple[float, float, float, float]) -> Any:
    brightness, contrast, saturation, hue = jitter
    return fn.color_twist(
        images,
        brightness=fn.random.uniform(range=(1 - brightness, 1 + brightness)),
        contrast=fn.random.uniform(range=(1 - contrast, 1 + contrast)),
        saturation=fn.random.uniform(range=(1 - saturation, 1 + saturation)),
        hue=fn.random.uniform(range=(-360 * hue, 360 * hue)),
    )


def _images(iterator: Any) -> Iterator[Any]:
    for batch in iterator:
        yield batch[0]["image"]


def versions() -> dict[str, str]:
    """Libraries that do the work."""
    return {"dali": import_module("nvidia.dali").__version__, "torch": torch.__version__}
