"""The Loader's keywords as three frozen dataclasses, each checked once, when it is made.

`FeedOptions` says which samples come when, `SampleOptions` what is made of each, and
`EngineOptions` how the work is done. What a keyword means is in the docstring of `Loader`.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from . import _native
from .checks import check_choice, check_flag, check_int, parse_bytes
from .placement import Placement
from .recipe import check_channels, checked_transforms, split
from .transforms import Transform
from .transforms.base import dtype_name

# Pillow refuses images of more than this many pixels.
DEFAULT_MAX_PIXELS = 178_956_970
# On a GPU it counts the device's memory, too: three batches of 256 photos take 1.1 GiB of both.
_MEMORY_BUDGETS = {"cpu": 1 << 30, "cuda": 3 << 30}
DEFAULT_DEPTH = 3
# A century; beyond what a clock can count, waiting for ever is 0.
_LONGEST_S = 3.2e9
# The core counts the samples of a batch over all ranks in 32 bits.
_MOST_SAMPLES = (1 << 32) - 1


@dataclass(frozen=True)
class FeedOptions:
    """Which samples come when: the built-in order, or what a sampler says."""

    batch_size: int = 1
    shuffle: bool | None = None
    sampler: Iterable[Any] | None = None
    batch_sampler: Iterable[Any] | None = None
    drop_last: bool = False
    last_batch: str | None = None
    seed: int | None = None
    generator: torch.Generator | None = None
    rank: int | None = None
    world_size: int | None = None

    def __post_init__(self) -> None:
        """Refuses what DataLoader refuses, and contradictions among our own keywords."""
        if self.batch_size is None:
            raise ValueError(
                "batch_size must be an int >= 1, got None; Loader always makes batches, use "
                "batch_size=1 or batch_sampler"
            )
        _take_int(self, "batch_size", least=1)
        check_flag("drop_last", self.drop_last)
        if self.shuffle is not None:
            check_flag("shuffle", self.shuffle)
        self._check_samplers()
        self._check_seed()
        self._check_rank()
        self._check_last_batch()

    @property
    def pushed(self) -> bool:
        """Indices come from Python."""
        return self.sampler is not None or self.batch_sampler is not None

    def drawn(self) -> FeedOptions:
        """The same with a seed: the given one, one drawn from the generator, or 0."""
        seed = self.seed or 0
        if self.generator is not None:
            empty = torch.empty((), dtype=torch.int64, device=self.generator.device)
            seed = int(empty.random_(generator=self.generator))
        return replace(self, seed=seed, generator=None)

    def resolved_last_batch(self, world_size: int) -> str:
        """``"drop"``, ``"partial"`` or ``"pad"`` for this many ranks."""
        if self.drop_last or self.last_batch == "drop":
            return "drop"
        if self.pushed:
            return "partial"
        if self.last_batch == "partial" and world_size > 1:
            raise ValueError(
                f'last_batch="partial" with world_size={world_size} would give the ranks different '
                'numbers of samples; use "pad" or "drop"'
            )
        return self.last_batch or ("partial" if world_size == 1 else "pad")

    def _check_samplers(self) -> None:
        if self.sampler is not None and self.shuffle:
            raise ValueError(
                "sampler and shuffle=True contradict each other: the sampler is the order; "
                "use shuffle=False"
            )
        if self.batch_sampler is not None:
            wrong = {
                "batch_size": self.batch_size != 1,
                "shuffle": bool(self.shuffle),
                "sampler": self.sampler is not None,
                "drop_last": self.drop_last,
                "last_batch": self.last_batch is not None,
            }
            named = [f"{name}={getattr(self, name)!r}" for name, bad in wrong.items() if bad]
            if named:
                raise ValueError(
                    f"batch_sampler makes the batches, so it excludes {', '.join(named)}; "
                    "leave these at their defaults"
                )
        for name in ("sampler", "batch_sampler"):
            value = getattr(self, name)
            if value is not None and not (
                hasattr(value, "__iter__") or hasattr(value, "__getitem__")
            ):
                raise TypeError(f"{name} must be iterable, got {type(value).__name__}")

    def _check_last_batch(self) -> None:
        if self.last_batch is None:
            return
        check_choice("last_batch", self.last_batch, ("drop", "partial", "pad"))
        if self.drop_last and self.last_batch != "drop":
            raise ValueError(
                f'drop_last=True means last_batch="drop", got last_batch={self.last_batch!r}; '
                "give one of the two"
            )
        if self.sampler is not None and self.last_batch == "pad":
            raise ValueError(
                'last_batch="pad" needs the built-in order, and a sampler is this rank\'s share '
                'as it stands; use "partial" or "drop"'
            )
        if self.world_size is not None:
            self.resolved_last_batch(self.world_size)

    def _check_seed(self) -> None:
        if self.generator is not None and not isinstance(self.generator, torch.Generator):
            raise TypeError(
                f"generator must be a torch.Generator, got {type(self.generator).__name__}"
            )
        if self.seed is not None:
            _take_int(self, "seed", least=0, most=(1 << 63) - 1)
            if self.generator is not None:
                raise ValueError(
                    f"generator draws the seed, so it excludes seed={self.seed}; give one of them"
                )

    def _check_rank(self) -> None:
        if (self.rank is None) != (self.world_size is None):
            raise ValueError(
                f"rank={self.rank} and world_size={self.world_size} must be given together"
            )
        if self.rank is not None and self.world_size is not None:
            _take_int(self, "world_size", least=1)
            _take_int(self, "rank", least=0, most=self.world_size - 1)
        if self.batch_size * (self.world_size or 1) > _MOST_SAMPLES:
            raise ValueError(
                f"batch_size must stay below 2^32 over all ranks, got {self.batch_size} with "
                f"world_size={self.world_size or 1}"
            )


@dataclass(frozen=True)
class SampleOptions:
    """What is made of each sample."""

    transforms: Iterable[Transform] = ()
    dtype: torch.dtype | None = None
    memory_format: torch.memory_format = torch.contiguous_format
    orientation: str = "apply"
    mode: str = "RGB"
    truncated: str = "error"
    max_pixels: int = DEFAULT_MAX_PIXELS
    fidelity: str = "full"
    deterministic: bool | None = None

    def __post_init__(self) -> None:
        """Checks the values and translates the transforms."""
        object.__setattr__(self, "transforms", checked_transforms(self.transforms))
        if self.dtype is not None:
            dtype_name(self.dtype, "dtype")
        if self.memory_format not in (torch.contiguous_format, torch.channels_last):
            raise ValueError(
                "memory_format must be torch.contiguous_format or torch.channels_last, "
                f"got {self.memory_format}"
            )
        check_choice("orientation", self.orientation, ("apply", "ignore"))
        check_choice("truncated", self.truncated, ("error", "accept"))
        _take_int(self, "max_pixels", least=1)
        if self.mode in ("RGB_ALPHA", "UNCHANGED"):
            raise NotImplementedError(
                f'mode={self.mode!r} is not offered for batches; use "RGB" or "GRAY", or '
                f"forebay.ops.decode_images(..., mode={self.mode!r})"
            )
        check_choice("mode", self.mode, ("RGB", "GRAY"))
        check_channels(self.transforms, self.mode)
        check_choice("fidelity", self.fidelity, ("full", "fast"))
        if self.deterministic is not None:
            check_flag("deterministic", self.deterministic)
        _native.check_recipe(self.recipe())

    def is_deterministic(self) -> bool:
        """What the user says, or torch."""
        if self.deterministic is None:
            return torch.are_deterministic_algorithms_enabled()
        return self.deterministic

    def recipe(self) -> dict[str, Any]:
        """The core's recipe."""
        channels_last = self.memory_format == torch.channels_last
        of_images, of_batch = split(self.transforms)
        return {
            "transforms": [step.to_dict() for step in of_images],
            # Left out where nothing is asked for, as the mode is: older recipes keep their states.
            **({"batch": [step.to_dict() for step in of_batch]} if of_batch else {}),
            "dtype": None if self.dtype is None else dtype_name(self.dtype, "dtype"),
            "layout": "channels_last" if channels_last else "contiguous",
            **({"mode": self.mode} if self.mode != "RGB" else {}),
        }

    def decode(self) -> dict[str, Any]:
        """How encoded images are read."""
        names = ("orientation", "max_pixels", "truncated", "fidelity")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class EngineOptions:
    """How the work is done."""

    num_workers: int | None = None
    pin_memory: bool = False
    prefetch_factor: int | None = None
    persistent_workers: bool = True
    timeout: float = 0
    memory_budget: int | str | None = None
    on_error: str = "raise"
    max_errors: int | None = None
    quarantine: str | os.PathLike[str] | None = None
    device: Any = "cpu"
    decoders: Any = None
    affinity: bool | None = None

    def __post_init__(self) -> None:
        """Checks the values."""
        if self.num_workers is not None:
            _take_int(self, "num_workers", least=0, most=4096)
        if self.prefetch_factor is not None:
            _take_int(self, "prefetch_factor", least=1, most=4096)
            if self.num_workers == 0:
                raise ValueError(
                    f"prefetch_factor={self.prefetch_factor} needs threads, got num_workers=0; "
                    "leave prefetch_factor out or use num_workers >= 1"
                )
        for name in ("pin_memory", "persistent_workers"):
            check_flag(name, getattr(self, name))
        right = "timeout must be seconds >= 0 (0: wait)"
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, numbers.Real):
            raise TypeError(f"{right}, got {self.timeout!r}")
        if not 0 <= self.timeout <= _LONGEST_S:
            raise ValueError(f"{right}, got {self.timeout!r:.80}")
        object.__setattr__(self, "timeout", float(self.timeout))
        check_choice("on_error", self.on_error, ("raise", "skip", "replace"))
        if self.max_errors is not None:
            _take_int(self, "max_errors", least=0)
        if self.memory_budget is not None:
            budget = parse_bytes("memory_budget", self.memory_budget)
            object.__setattr__(self, "memory_budget", budget)
        if self.quarantine is not None:
            if not isinstance(self.quarantine, (str, os.PathLike)):
                raise TypeError(f"quarantine must be the name of a file, got {self.quarantine!r}")
            log = Path(self.quarantine).absolute()
            if "\0" in str(log):
                raise ValueError(f"quarantine must be the name of a file, got {str(log)!r}")
            if not log.parent.is_dir() or log.is_dir():
                raise FileNotFoundError(
                    f"quarantine must be a file in an existing folder, got {self.quarantine!s}"
                )
        self.placement()
        if self.affinity is not None and not isinstance(self.affinity, bool):
            raise NotImplementedError(
                f"affinity={self.affinity!r} is not offered; use False, or bind the process with "
                "taskset or os.sched_setaffinity, which its threads inherit"
            )

    def engine(self, workers: int, cpus: list[int] | None, renderer: str) -> dict[str, Any]:
        """The core's engine options for this many threads, on these processors.

        ``renderer`` is where images are delivered, ``"cpu"`` or ``"cuda"``.
        """
        budget = self.memory_budget
        return {
            "workers": workers,
            "depth": self.prefetch_factor or DEFAULT_DEPTH,
            "memory_budget": _MEMORY_BUDGETS[renderer] if budget is None else budget,
            "on_error": self.on_error,
            "max_errors": self.max_errors,
            "cpus": cpus,
            "ranges": _native.environment("FOREBAY_NVTX") == "1",
        }

    def placement(self, sample: SampleOptions | None = None) -> Placement:
        """Where batches are delivered, and which decoders may be used for samples as asked for."""
        placement = Placement.of(self.device, self.decoders)
        if sample is None:
            return placement
        if sample.mode == "GRAY":
            return placement.by_threads()
        return placement.deterministic() if sample.is_deterministic() else placement


def _take_int(options: object, name: str, **limits: int) -> None:
    """Checks an option and keeps it as an int, whatever kind of integer it was."""
    object.__setattr__(options, name, check_int(name, getattr(options, name), **limits))
