"""Parts that compare rates: the training recipe in four ways, and the cameras'."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from forebay.cli.measure import Job

from .contest import Row, contest
from .images import Images
from .own_rates import own_rates
from .setup import Candidate, Setup

# What takes the fewest cores.
FEWEST: dict[str, Any] = {"decoders": {"cuda": 1.0}, "workers": 3}
TRAIN, CAMERAS = "imagenet-train", "multicam"
BATCH, CAMERAS_BATCH = 256, 48
# Larger batches and fewer threads are tried, too, where they are DALI's better choices.
SWEEP: list[Candidate] = [
    (256, 16, 0.8),
    (512, 16, 0.8),
    (512, 12, 0.7),
    (256, 8, 0.65),
    (256, 16, 0.65),
]
SWEEP_ON_FOUR: list[Candidate] = [(256, 4, 0.95), (512, 4, 0.8), (256, 4, 0.8)]
SWEEP_CAMERAS: list[Candidate] = [(48, 16, 0.8), (48, 16, 0.65), (48, 16, 0.95), (48, 8, 0.8)]


def train(setup: Setup) -> Row:
    """The photos, in float16 and float32."""
    return _both_dtypes(setup, Images.photos(setup.data, setup.files))


def train_420(setup: Setup) -> Row:
    """The photos as 4:2:0."""
    return _both_dtypes(setup, Images.subsampled(setup.data, setup.files))


def four_cores(setup: Setup) -> Row:
    """The photos in float16; the process is limited to four cores."""
    images = Images.photos(setup.data, setup.files)
    result, _ = _compared(setup, TRAIN, images, BATCH, SWEEP_ON_FOUR, dtype="float16")
    return _beside({"float16": result}, own_rates(setup, TRAIN, images, BATCH, "float16"), images)


def fewest_cores(setup: Setup) -> Row:
    """The GPU's cores decode all that they can: images per CPU-second beside DALI's best."""
    images = Images.photos(setup.data, setup.files)
    result, _ = _compared(setup, TRAIN, images, BATCH, SWEEP, dtype="float16", **FEWEST)
    return {"float16": result, "data": images.record()}


def multicam(setup: Setup) -> Row:
    """Pictures of 1600x900, 48 a batch, in float32 as the recipe says."""
    images = Images.cameras(setup.data, setup.files)
    result, _ = _compared(setup, CAMERAS, images, CAMERAS_BATCH, SWEEP_CAMERAS, dtype="float32")
    own = own_rates(setup, CAMERAS, images, CAMERAS_BATCH, "float32")
    return _beside({"float32": result}, own, images)


def _both_dtypes(setup: Setup, images: Images) -> Row:
    """DALI's candidates are swept in float16; the best two of these run in float32."""
    half, best = _compared(setup, TRAIN, images, BATCH, SWEEP, dtype="float16")
    rivals = [replace(job, options=job.options | {"dtype": "float32"}) for job in best]
    ours = setup.forebay(TRAIN, images.files, BATCH, dtype="float32")
    single, _ = contest(ours, rivals, setup)
    own = own_rates(setup, TRAIN, images, BATCH, "float16")
    return _beside({"float16": half, "float32": single}, own, images)


def _compared(
    setup: Setup,
    recipe: str,
    images: Images,
    batch_size: int,
    sweep: list[Candidate],
    *,
    dtype: str,
    **options: Any,
) -> tuple[Row, list[Job]]:
    own = setup.forebay(recipe, images.files, batch_size, dtype=dtype, **options)
    largest = images.largest()
    rivals = [
        setup.dali(recipe, images.files, candidate, dtype=dtype, largest=largest)
        for candidate in sweep
    ]
    return contest(own, rivals, setup)


def _beside(results: dict[str, Row], own: Row, images: Images) -> Row:
    """Results by dtype, each with Forebay's rate as a part of what the decoders do alone."""
    for result in results.values():
        result["of_own_rates"] = round(result["forebay"]["images_per_s"] / own["sum"], 3)
    return {**results, "own_rates": own, "data": images.record()}
