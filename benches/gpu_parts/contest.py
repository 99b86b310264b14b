"""Forebay and DALI in turn, in one process: what is opened stays open until the last round.

What is open and not asked for a batch has filled its queue and waits; each keeps its threads,
engines and memory, so that only the first round pays for starting them.
"""

from __future__ import annotations

import gc
import statistics
from typing import Any

from forebay.cli.measure import Job
from forebay.cli.pace import endless, quantiles_ms, take
from forebay.cli.peers import peer

from .setup import Setup

Row = dict[str, Any]

# The engines need half a second to start, and until then the CPU decodes.
WARM_UP_S = 1.0
# In later rounds what is queued must go, and nothing starts.
LATER_WARM_UP_S = 0.3
KEPT = 2
COMPARED = ("images_per_s", "images_per_cpu_s")


class Contestant:
    """An open loader of a job, and its row of each round."""

    def __init__(self, job: Job, setup: Setup) -> None:
        """Remembers; opens at the first round."""
        self.job = job
        self.rows: list[Row] = []
        self._setup = setup
        self._made: Any = None
        self._batches: Any = None
        self._batch_s: list[float] = []

    def measure(self) -> Row:
        """One round."""
        job = self.job
        if self._made is None:
            self._made = peer(job.loader).make(
                job.files, job.recipe, job.batch_size, job.workers, job.device, **job.options
            )
            self._batches = endless(self._made)
            least = self._setup.warm_up_images
            take(self._batches, min(WARM_UP_S, 2 * job.seconds), job.device, least=least)
        else:
            take(self._batches, min(LATER_WARM_UP_S, job.seconds), job.device)
        before = self._decoded()
        pace = take(self._batches, job.seconds, job.device)
        decoded = {name: count - before.get(name, 0) for name, count in self._decoded().items()}
        row = {**pace.rates(), **quantiles_ms(pace.batch_s), "images": pace.images}
        row |= {"decoders": decoded} if decoded else {}
        self._batch_s += pace.batch_s
        self.rows.append(row)
        return row

    def _decoded(self) -> dict[str, int]:
        """Images by decoder so far, which DALI does not tell."""
        if self.job.loader != "forebay":
            return {}
        return {name: of["count"] for name, of in self._made.stats()["decoders"].items()}

    def median(self, key: str) -> float:
        """Of the rounds."""
        return statistics.median(row[key] for row in self.rows)

    def summary(self) -> Row:
        """The job, the medians, and quantiles of the batches of all rounds."""
        rates = {key: round(self.median(key), 3) for key in (*COMPARED, "cpu_cores")}
        quantiles = quantiles_ms(self._batch_s)
        quantiles["p99_over_median"] = quantiles["batch_ms_p99"] / quantiles["batch_ms"]
        summary = described(self.job) | rates
        summary |= {key: round(value, 3) for key, value in quantiles.items()}
        return summary | ({"rounds": self.rows} if len(self.rows) > 1 else self.rows[0])

    def close(self) -> None:
        """Lets the loader go."""
        if hasattr(self._made, "close"):
            self._made.close()
        self._made = self._batches = None
        gc.collect()  # DALI's pipelines lie in cycles


def described(job: Job) -> Row:
    """What the job's loader is told, besides files and recipe."""
    return {
        "loader": job.loader,
        "batch_size": job.batch_size,
        "num_workers": job.workers,
        **{name: value for name, value in job.options.items() if name != "largest"},
    }


def contest(own: Job, rivals: list[Job], setup: Setup) -> tuple[Row, list[Job]]:
    """Rounds of Forebay and DALI's candidates, of which the best two stay after the first.

    DALI's best is the candidate with the highest median rate; ratios are medians of the rounds'.

    Returns:
        What was measured, and the jobs of the candidates that stayed, the best first.
    """
    ours = Contestant(own, setup)
    theirs = [Contestant(job, setup) for job in rivals]
    left: list[Row] = []
    for number in range(setup.rounds):
        ours.measure()
        for each in theirs:
            each.measure()
        if number == 0:
            theirs.sort(key=lambda each: -each.median("images_per_s"))
            theirs, dropped = theirs[:KEPT], theirs[KEPT:]
            for each in dropped:
                left.append(each.summary())
                each.close()
    theirs.sort(key=lambda each: -each.median("images_per_s"))
    ratio = {
        key: statistics.median(
            row[key] / of[key] for row, of in zip(ours.rows, theirs[0].rows, strict=True)
        )
        for key in COMPARED
    }
    result = {
        "forebay": ours.summary(),
        "dali": theirs[0].summary(),
        "ratio": {key: round(value, 3) for key, value in ratio.items()},
        "dali_others": [each.summary() for each in theirs[1:]] + left,
    }
    for each in (ours, *theirs):
        each.close()
    return result, [each.job for each in theirs]
