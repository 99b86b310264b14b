"""What all parts of the GPU's benchmarks share: the command line's choices, and jobs from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from forebay import machine
from forebay.cli.measure import Job

# Batch size, threads and the engines' share of images.
Candidate = tuple[int, int, float]


@dataclass(frozen=True)
class Setup:
    """The command line's choices."""

    data: str
    device: str
    seconds: float  # of each measurement, after its warm-up
    rounds: int
    files: int  # photos are repeated to so many
    warm_up_images: int

    @property
    def on_gpu(self) -> bool:
        """Whether images are delivered there."""
        return self.device != "cpu"

    def forebay(self, recipe: str, files: list[str], batch_size: int, **options: Any) -> Job:
        """Forebay as a user gets it, unless ``options`` say otherwise."""
        workers = options.pop("workers", None)
        if workers is None:
            workers = machine.default_workers(self.on_gpu and options.get("decoders") != "cpu")
        return self._job("forebay", recipe, files, batch_size, workers, options)

    def dali(self, recipe: str, files: list[str], candidate: Candidate, **options: Any) -> Job:
        """DALI with a candidate's settings, and no more threads than there are cores."""
        batch_size, threads, hw_load = candidate
        options |= {"mmap": True}
        if self.on_gpu:
            options["hw_load"] = hw_load
        threads = min(threads, machine.usable_cores())
        return self._job("dali", recipe, files, batch_size, threads, options)

    def _job(
        self,
        loader: str,
        recipe: str,
        files: list[str],
        batch_size: int,
        workers: int,
        options: dict[str, Any],
    ) -> Job:
        return Job(
            loader=loader,
            recipe=recipe,
            files=files,
            batch_size=self.scaled(batch_size),
            workers=workers,
            seconds=self.seconds,
            device=self.device,
            options=options,
        )

    def scaled(self, batch_size: int) -> int:
        """A sixteenth on the CPU, where the parts are only tried."""
        return batch_size if self.on_gpu else max(1, batch_size // 16)
