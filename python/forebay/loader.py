"""The Loader: DataLoader's keywords, batches from the core.

**Invariants**
- Every ``iter()`` begins the next epoch; an older iterator raises ClosedError.
- RES-1: the state speaks of batches handed out.
- LIF-1: garbage collection, ``close`` and the interpreter's exit end the threads; a Loader pickles
  as its options, and a forked child opens a pipeline of its own.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from . import machine
from .checks import check_int
from .dataloader import DataLoaderNames, refusing_surplus
from .delivery import Delivery
from .errors import ClosedError
from .feed import PushedFeed
from .iterator import BatchIterator
from .options import (
    DEFAULT_MAX_PIXELS,
    EngineOptions,
    FeedOptions,
    SampleOptions,
)
from .session import Session
from .sources import MapSource, Source, checked_source

__all__ = ["Loader"]


class Loader(DataLoaderNames):
    """Batches of decoded, transformed images, read and made by threads outside Python.

    Args:
        source: `ImageFolder`, `FileList` or `MapSource`.
        transforms: list of `forebay.transforms`; must give every image the same size.
        batch_size: samples per batch and rank.
        shuffle: a new permutation of the whole source every epoch.
        sampler: indices from Python: this rank's share as it stands. Excludes ``shuffle``.
        batch_sampler: batches of indices. Excludes batch_size, shuffle, sampler, drop_last.
        num_workers: threads; by default the cores this process may use, divided among the ranks
            of this machine, and 0 inside a DataLoader worker. 0: all in the calling thread.
        pin_memory: page-locked batches; without CUDA it warns and goes on without.
        prefetch_factor: batches in flight in total, 3 by default.
        persistent_workers: accepted; threads always persist.
        drop_last: drop what does not fill the last batch; short for ``last_batch="drop"``.
        timeout: seconds that ``next`` may wait before RuntimeError; 0 waits.
        generator: draws the seed, and nothing else. Excludes ``seed``.
        collate_fn: makes the batch from a list of samples, which are views of it.
        device: where batches are delivered: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, a number or a
            torch.device, which is for ``image`` and ``label``; or a dict of devices by field. One
            GPU a loader. docs/gpu.md says what ``next`` does to streams.
        seed: of the order and all augmentation, 0 by default. Equal on all ranks.
        rank: this process's rank; by default torch.distributed's or the launcher's.
        world_size: number of ranks, together with ``rank``.
        last_batch: ``"drop"``; ``"partial"``, a smaller batch (default on one rank); ``"pad"``,
            completed to a multiple of the ranks, ``valid`` False (default on several).
        on_error: ``"raise"`` SampleError and go on with the next batch; ``"skip"``: zeros, label
            -100, ``valid`` False; ``"replace"`` by another sample.
        fields: what a batch holds: a name, or a tuple or dict of names out of ``image``,
            ``label``, ``index``, ``key``, ``valid``, ``size`` (height and width before the
            transforms). Default ``("image", "label")``, or ``"image"`` without labels.
        dtype: of images; by default what the transforms say, else uint8.
        memory_format: ``torch.contiguous_format`` or ``torch.channels_last``.
        orientation: ``"apply"`` or ``"ignore"`` the EXIF orientation.
        mode: ``"RGB"``, or ``"GRAY"`` for one channel, as Pillow's ``convert("L")`` makes it before
            the transforms. Threads decode grey images, also where a GPU renders them.
        truncated: ``"error"``, or ``"accept"`` what was there of a JPEG or PNG.
        max_pixels: larger images are refused before memory is taken; so are JPEGs of more scans
            than it allows for.
        memory_budget: bytes, or text such as ``"2GiB"``, that the engine may hold; by default
            1 GiB, and 3 GiB where images go to a GPU, whose memory counts, too. Batches in the
            user's hands do not count.
        max_errors: bad samples since the loader was opened, beyond which it fails for good.
        quarantine: file to which one JSON line per bad sample is appended.
        fidelity: ``"full"``: libjpeg-turbo's pixels exactly. ``"fast"``: threads decode a JPEG at a
            half, a quarter or an eighth of its size where one antialiased resize makes it smaller
            by at least 1.5 times that; results differ by less than 1.5 of 255 on average, and
            99.9 % of a photo's values by at most 16. What a GPU decodes or renders is always exact.
        decoders: None, all that there are (with a GPU its cores, and its JPEG engines for what
            these cannot decode); ``"cpu"`` alone; or parts of the images that each of them can
            decode, ``{"cuda": 0.5, "hardware": 0.3}``, of which threads decode the rest.
        deterministic: which decoder an image goes to depends on its index and header only, never on
            what is free. Default: what torch says (``torch.are_deterministic_algorithms_enabled``).
            Makes no difference where engines give the CPU's pixels, as those of an H200 do.
        affinity: False lets the threads run on every processor of the process. By default they stay
            on those of the GPU's NUMA node, and page-locked memory with them.

    Raises:
        ValueError: a value out of range or keywords that contradict each other.
        TypeError: a value of a wrong type.
        NotImplementedError: a value that this version does not offer.

    Coming from DataLoader: there are no worker processes, so ``worker_init_fn``,
    ``multiprocessing_context``, ``in_order`` and ``pin_memory_device`` do not exist here.
    DataLoader's attributes do: ``dataset`` is the source.

    Determinism: batches depend on source, recipe, seed and epoch alone; not on threads, prefetch
    or, as a global sequence, on the ranks.
    Threads: a Loader is used from one thread at a time.
    Cost: constructing reads nothing; a folder is scanned and the pipeline opened at first use.
    """

    _epoch: int
    _upcoming: dict[str, Any] | None  # the state at which the next iter() begins

    @refusing_surplus
    def __init__(
        self,
        source: Source,
        *,
        transforms: Any = (),
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int | None = None,
        pin_memory: bool = False,
        prefetch_factor: int | None = None,
        persistent_workers: bool = True,
        drop_last: bool = False,
        timeout: float = 0,
        generator: torch.Generator | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        device: Any = "cpu",
        seed: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        last_batch: str | None = None,
        on_error: str = "raise",
        fields: Any = None,
        dtype: torch.dtype | None = None,
        memory_format: torch.memory_format = torch.contiguous_format,
        orientation: str = "apply",
        mode: str = "RGB",
        truncated: str = "error",
        max_pixels: int = DEFAULT_MAX_PIXELS,
        memory_budget: int | str | None = None,
        max_errors: int | None = None,
        quarantine: str | os.PathLike[str] | None = None,
        fidelity: str = "full",
        decoders: Any = None,
        deterministic: bool | None = None,
        affinity: bool | None = None,
    ) -> None:
        """Checks every keyword; see the class."""
        self._source = checked_source(source)
        feed = FeedOptions(
            batch_size=batch_size,
            shuffle=shuffle,
            sampler=sampler,
            batch_sampler=batch_sampler,
            drop_last=drop_last,
            last_batch=last_batch,
            seed=seed,
            generator=generator,
            rank=rank,
            world_size=world_size,
        )
        self._sample = SampleOptions(
            transforms=transforms,
            dtype=dtype,
            memory_format=memory_format,
            orientation=orientation,
            mode=mode,
            truncated=truncated,
            max_pixels=max_pixels,
            fidelity=fidelity,
            deterministic=deterministic,
        )
        self._engine = EngineOptions(
            num_workers=num_workers,
            pin_memory=pin_memory,
            prefetch_factor=prefetch_factor,
            persistent_workers=persistent_workers,
            timeout=timeout,
            memory_budget=memory_budget,
            on_error=on_error,
            max_errors=max_errors,
            quarantine=quarantine,
            device=device,
            decoders=decoders,
            affinity=affinity,
        )
        self._delivery = Delivery(
            source, fields, collate_fn, on_error, quarantine, self._sample.transforms
        )
        self._feed = feed.drawn()
        self._seed_given = seed is not None
        self._generator = generator
        self._check_length()
        self._pushed = self._make_pushed()
        self._reset()

    @property
    def source(self) -> Source:
        """Where the samples come from."""
        return self._source

    def __len__(self) -> int:
        """Batches in an epoch, equal in every epoch and on every rank (ORD-3)."""
        if self._pushed is not None:
            return len(self._pushed)
        count = self._source.length()
        assert count is not None  # checked at construction
        _, world_size = self._resolved_place()
        batch = self._feed.batch_size * world_size
        drop = self._feed.resolved_last_batch(world_size) == "drop"
        return count // batch if drop else -(-count // batch)

    def __iter__(self) -> BatchIterator:
        """Begins the next epoch, or goes on where a loaded state says."""
        session = self._opened()
        upcoming = self._upcoming or _beginning(self._epoch + 1)
        epoch, position = upcoming["epoch"], 0
        if upcoming["position"]:
            # A feed counts its own samples only; the core translates.
            _, position = session.pipeline.check_state(_core_part(upcoming))
        # An iterator that fails to begin has ended the older one all the same.
        self._serial += 1
        session.begin(epoch, position, upcoming.get("sampler"))
        self._upcoming = None
        self._epoch = epoch
        return BatchIterator(self, session, self._serial)

    def set_epoch(self, epoch: int) -> None:
        """Names the epoch that the next ``iter()`` begins.

        After `load_state_dict`, naming the loaded epoch keeps the loaded position.
        """
        epoch = check_int("epoch", epoch, least=0, most=(1 << 63) - 1)
        if self._upcoming is None or self._upcoming["epoch"] != epoch:
            self._upcoming = _beginning(epoch)
            if self._pushed is not None:
                self._pushed.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, counting the batches handed out: small, and fit for JSON."""
        session = self._opened()
        state = session.state()
        upcoming = self._upcoming or (_beginning(0) if self._epoch < 0 else {})
        state |= upcoming
        if self._pushed is not None and "sampler" not in state:
            running = not upcoming and state["epoch"] == self._epoch
            state["sampler"] = self._pushed.state(running)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next ``iter()`` go on where ``state`` was saved; reads no data.

        The state's seed becomes the loader's, unless the loader was given one.

        Raises:
            ValueError: the state is of another source, recipe, seed or version.
        """
        if not isinstance(state, dict):
            raise TypeError(f"state must be a dict from state_dict(), got {type(state).__name__}")
        if not {"version", "epoch", "position"} <= state.keys():
            listed = ", ".join(map(repr, state)) or "none"
            hint = next((name for name, part in state.items() if isinstance(part, dict)), None)
            raise ValueError(
                f"state must be what state_dict() returned, got keys {listed:.200}"
                + ("" if hint is None else f"; did you mean state[{hint!r}]?")
            )
        if (self._pushed is not None) != ("sampler" in state):
            had, has = ("no ", "a") if self._pushed is not None else ("a ", "none")
            raise ValueError(f"state was saved with {had}sampler, and this loader has {has}")
        seed = state.get("seed")
        adopt = not self._seed_given and isinstance(seed, int) and seed != self._feed.seed
        own = {"seed": self._feed.seed} if adopt else {}
        self._opened().pipeline.check_state(_core_part(state) | own)
        # From here on nothing fails: a refused state leaves the loader as it was.
        if adopt:
            self._release()
            self._feed = replace(self._feed, seed=seed)
        self._serial += 1
        self._upcoming = dict(state)

    def stats(self) -> dict[str, Any]:
        """Counters of every stage so far, and of Python's side."""
        return self._opened().stats()

    def describe(self) -> dict[str, Any]:
        """What was resolved: fields, rank, world size, threads, decoders, seed.

        ``steps`` says what is done to an image, in order, and where: pairs of a step and
        ``"cpu"``, ``"hardware"`` (a GPU's JPEG engines) or ``"cuda"`` (its cores).
        """
        session = self._opened()
        core = session.pipeline.describe()
        on_gpu = core["renderer"] == "cuda"
        rendering = [*map(repr, self._sample.transforms), "write"]
        return core | {
            "steps": [
                ("read", "cpu"),
                ("plan", "cpu"),
                ("decode", " or ".join(core["decoders"])),
                *([("inverse DCT, where the CPU left it", "cuda")] if on_gpu else []),
                *((step, core["renderer"]) for step in rendering),
            ],
            "source": repr(self._source),
            "rank": session.rank,
            "world_size": session.world_size,
            "workers": session.workers,
            "seed": self._feed.seed,
            "sampler": self._pushed is not None,
        }

    def close(self) -> None:
        """Ends the threads; waits at most a second. Later use raises ClosedError."""
        self._closed = True
        self._release()

    def __enter__(self) -> Loader:
        """The loader, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def __repr__(self) -> str:
        """Names the source and the size of batches."""
        return f"Loader({self._source!r}, batch_size={self.batch_size})"

    def __getstate__(self) -> dict[str, Any]:
        """The options; the copy begins at epoch 0 with a pipeline of its own."""
        names = ("_source", "_feed", "_sample", "_engine", "_delivery", "_seed_given")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes the options."""
        self.__dict__.update(state)
        self._generator = None
        self._pushed = self._make_pushed()
        self._reset()

    def _reset(self) -> None:
        self._closed = False
        self._serial = 0
        self._epoch = -1
        self._upcoming = None
        self._place: tuple[int, int] | None = None
        self._session: Session | None = None
        self._finalizer: weakref.finalize[..., Loader] | None = None

    def _make_pushed(self) -> PushedFeed | None:
        return PushedFeed(self._feed, self._source.length) if self._feed.pushed else None

    def _check_length(self) -> None:
        """Refuses what needs a length of a source that has none, without scanning a folder."""
        length = self._source.length() if isinstance(self._source, MapSource) else 1
        if length == 0:
            raise ValueError(f"source must hold samples, got {self._source!r}, whose length is 0")
        if length is not None:
            return
        if not self._feed.pushed:
            raise ValueError(
                f"{self._source!r} has no length, which the built-in order needs; "
                "pass sampler= or batch_sampler="
            )
        if self._engine.on_error == "replace":
            raise ValueError(
                f'on_error="replace" needs a source with a length, got {self._source!r}; '
                'use "skip" or "raise"'
            )

    def _resolved_place(self) -> tuple[int, int]:
        if self._place is None:
            self._place = machine.resolve_rank(self._feed.rank, self._feed.world_size)
        return self._place

    def _opened(self) -> Session:
        """The session of this process, opened at first use."""
        if self._closed:
            raise ClosedError("the loader is closed; make a new Loader")
        if self._session is not None and self._session.pid != os.getpid():
            # Forked: the parent's pipeline has no threads here, and its handle is left alone.
            if self._finalizer is not None:
                self._finalizer.detach()
            self._session = None
            self._upcoming = self._upcoming or _beginning(self._epoch + 1)
        if self._session is None:
            self._session = Session(
                self._source,
                self._feed,
                self._sample,
                self._engine,
                self._delivery,
                self._pushed,
                self._resolved_place(),
            )
            self._finalizer = weakref.finalize(self, self._session.close)
            self._finalizer.atexit = False  # session.py closes those that are left
        return self._session

    def _release(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._session = self._finalizer = None


def _beginning(epoch: int) -> dict[str, Any]:
    return {"epoch": epoch, "position": 0}


def _core_part(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name != "sampler"}
