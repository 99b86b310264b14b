"""ResNet-50 trained in bfloat16 on Forebay's batches, and on one batch that stays where it is."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.nn import functional

from forebay.cli.pace import endless, finish, quantiles_ms, take
from forebay.cli.peers import peer

from .contest import Row, described
from .images import Images
from .setup import Setup
from .throughput import BATCH, TRAIN

# Threads take what three cores can of the work that the model's own kernels would wait for.
_BESIDE_A_MODEL: dict[str, Any] = {"decoders": {"cuda": 0.75, "cpu": 0.25}, "workers": 3}
_WARM_UP_STEPS = 10
# A step takes some 90 ms, several times what a batch does.
_LONGER = 2


class Training:
    """Steps of SGD, each of a whole batch."""

    def __init__(self, device: str) -> None:
        """A model with random weights."""
        from torchvision.models import resnet50

        self._device = torch.device(device).type
        torch.backends.cudnn.benchmark = True
        self._model = resnet50().to(device, memory_format=torch.channels_last)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01, momentum=0.9)

    def steps(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Trains on each batch and hands it on."""
        for images, labels in batches:
            self._optimizer.zero_grad(set_to_none=True)
            with torch.autocast(self._device, dtype=torch.bfloat16):
                loss = functional.cross_entropy(self._model(images), labels)
            loss.backward()
            self._optimizer.step()
            yield images


def resnet50(setup: Setup) -> Row:
    """Images per second of both, in turn; the same model, the same kind of batch."""
    images = Images.photos(setup.data, setup.files)
    options = _BESIDE_A_MODEL if setup.on_gpu else {}
    job = setup.forebay(TRAIN, images.files, BATCH, dtype="float16", **options)
    loader: Any = peer("forebay").make(
        job.files,
        job.recipe,
        job.batch_size,
        job.workers,
        job.device,
        memory_format=torch.channels_last,
        **job.options,
    )
    fed = endless(loader)
    # A copy of a loader's batch, so that both are of the same pixels and strides.
    resident = tuple(part.clone() for part in next(fed))
    training = Training(setup.device)
    feeds = {
        "resident": training.steps(itertools.repeat(resident)),
        "forebay": training.steps(fed),
    }
    steps = _WARM_UP_STEPS if setup.on_gpu else 1
    rows: dict[str, list[Row]] = {name: [] for name in feeds}
    for _ in range(setup.rounds):
        for name, batches in feeds.items():
            for _ in range(steps):
                next(batches)
            finish(setup.device)
            pace = take(batches, _LONGER * setup.seconds, setup.device)
            rows[name].append({**pace.rates(), **quantiles_ms(pace.batch_s)})
    decoders = {name: of["count"] for name, of in loader.stats()["decoders"].items()}
    loader.close()
    ratio = statistics.median(
        of["images_per_s"] / alone["images_per_s"]
        for of, alone in zip(rows["forebay"], rows["resident"], strict=True)
    )
    medians = {
        name: {key: statistics.median(row[key] for row in of) for key in of[0]}
        for name, of in rows.items()
    }
    return {
        **medians,
        "ratio": round(ratio, 4),
        "options": described(job),
        "decoders": decoders,
        "rounds": rows,
    }
