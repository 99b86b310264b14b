"""The Loader's keywords as three frozen dataclasses, each checked once, when it is made.

`FeedOptions` says which samples come when, `SampleOptions` what is made of each, and
`EngineOptions` how the work is done. What a keyword means is in the docstring of `Loader`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from .recipe import checked_transforms
from .transforms import Transform, dtype_name

# Pillow refuses images of more than this many pixels.
DEFAULT_MAX_PIXELS = 178_956_970
DEFAULT_MEMORY_BUDGET = 1 << 30
DEFAULT_DEPTH = 3
# No count or size of ours comes near; the core's numbers have 64 bits.
_MOST = (1 << 62) - 1
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


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
        check_int("batch_size", self.batch_size, least=1)
        for name in ("drop_last", "shuffle"):
            value = getattr(self, name)
            if not isinstance(value, bool) and not (name == "shuffle" and value is None):
                raise TypeError(f"{name} must be True or False, got {value!r}")
        self._check_samplers()
        self._check_last_batch()
        self._check_seed()
        self._check_rank()

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
            check_int("seed", self.seed, least=0, most=(1 << 63) - 1)
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
            check_int("world_size", self.world_size, least=1)
            check_int("rank", self.rank, least=0, most=self.world_size - 1)


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
    decoders: Any = None
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
        check_int("max_pixels", self.max_pixels, least=1)
        check_offered("mode", self.mode, "RGB", ("unchanged", "index", "L", "GRAY"))
        check_offered("fidelity", self.fidelity, "full", ("fast",))
        if self.decoders not in (None, "cpu"):
            raise NotImplementedError(
                f'decoders={self.decoders!r} is not offered; leave it out or use "cpu"'
            )
        if self.deterministic not in (None, True, False):
            raise TypeError(f"deterministic must be True or False, got {self.deterministic!r}")

    def recipe(self) -> dict[str, Any]:
        """The core's recipe."""
        channels_last = self.memory_format == torch.channels_last
        return {
            "transforms": [transform.to_dict() for transform in self.transforms],
            "dtype": None if self.dtype is None else dtype_name(self.dtype, "dtype"),
            "layout": "channels_last" if channels_last else "contiguous",
        }

    def decode(self) -> dict[str, Any]:
        """How encoded images are read."""
        names = ("orientation", "max_pixels", "truncated")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class EngineOptions:
    """How the work is done."""

    num_workers: int | None = None
    pin_memory: bool = False
    prefetch_factor: int | None = None
    persistent_workers: bool = True
    timeout: float = 0
    memory_budget: int | str = DEFAULT_MEMORY_BUDGET
    on_error: str = "raise"
    max_errors: int | None = None
    quarantine: str | os.PathLike[str] | None = None
    device: Any = "cpu"
    affinity: Any = None

    def __post_init__(self) -> None:
        """Checks the values."""
        if self.num_workers is not None:
            check_int("num_workers", self.num_workers, least=0, most=4096)
        if self.prefetch_factor is not None:
            check_int("prefetch_factor", self.prefetch_factor, least=1, most=4096)
            if self.num_workers == 0:
                raise ValueError(
                    f"prefetch_factor={self.prefetch_factor} needs threads, got num_workers=0; "
                    "leave prefetch_factor out or use num_workers >= 1"
                )
        for name in ("pin_memory", "persistent_workers"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        if not isinstance(self.timeout, (int, float)) or not 0 <= self.timeout < math.inf:
            raise ValueError(f"timeout must be seconds >= 0 (0: wait), got {self.timeout!r}")
        check_choice("on_error", self.on_error, ("raise", "skip", "replace"))
        if self.max_errors is not None:
            check_int("max_errors", self.max_errors, least=0)
        object.__setattr__(self, "memory_budget", parse_bytes("memory_budget", self.memory_budget))
        if self.quarantine is not None:
            log = Path(self.quarantine).absolute()
            if not log.parent.is_dir() or log.is_dir():
                raise FileNotFoundError(
                    f"quarantine must be a file in an existing folder, got {self.quarantine!s}"
                )
        self._check_device()
        if self.affinity is not None:
            raise NotImplementedError(
                f"affinity={self.affinity!r} is not offered; bind the process with taskset or "
                "os.sched_setaffinity, which its threads inherit"
            )

    def engine(self, workers: int) -> dict[str, Any]:
        """The core's engine options for this many threads."""
        return {
            "workers": workers,
            "depth": self.prefetch_factor or DEFAULT_DEPTH,
            "memory_budget": self.memory_budget,
            "on_error": self.on_error,
            "max_errors": self.max_errors,
        }

    def _check_device(self) -> None:
        devices = self.device.values() if isinstance(self.device, dict) else [self.device]
        for device in devices:
            if torch.device(device).type != "cpu":
                raise NotImplementedError(
                    f'device={str(device)!r} is not offered by this version; use device="cpu", '
                    "pin_memory=True and batch.to(device, non_blocking=True)"
                )


def check_int(argument: str, value: object, *, least: int, most: int = _MOST) -> None:
    """Refuses what is not an int in range."""
    right = f">= {least}" if most == _MOST else f"in {least}..{most}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{argument} must be an int {right}, got {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{argument} must be an int {right}, got {value}")


def check_choice(argument: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuses what is not one of the choices."""
    if value not in choices:
        right = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{argument} must be one of {right}, got {value!r}")


def check_offered(argument: str, value: object, offered: str, later: tuple[str, ...]) -> None:
    """Refuses what is not offered, apart from what is not known at all."""
    if value == offered:
        return
    kind = NotImplementedError if value in later else ValueError
    raise kind(f'{argument}={value!r} is not offered; use {argument}="{offered}"')


def parse_bytes(argument: str, value: object) -> int:
    """Bytes from an int, or from text such as ``"2GiB"`` or ``"512MB"`` (1 KB is 1024 bytes)."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", value, re.IGNORECASE)
        if found is None:
            raise ValueError(f'{argument} must be bytes, or text such as "2GiB", got {value!r}')
        value = int(float(found.group(1)) * _UNITS[found.group(2).upper()])
    check_int(argument, value, least=1)
    assert isinstance(value, int)
    return value
