"""What each decoder does alone, by subsampling: the sum is what all could do together."""

from __future__ import annotations

from typing import Any

from .contest import Contestant, Row
from .images import Images, repeated
from .setup import Setup

DECODERS: dict[str, Any] = {
    "cuda": {"cuda": 1.0},
    "hardware": {"hardware": 1.0},
    "cpu": "cpu",
}


def own_rates(setup: Setup, recipe: str, images: Images, batch_size: int, dtype: str) -> Row:
    """Rows by subsampling and decoder; images per second of the set as a whole, and their sum.

    Of the whole set a decoder's rate is that of the subsamplings after one another, each by its
    share; what the engines cannot decode is left out.
    """
    groups = images.by_subsampling()
    decoders = DECODERS if setup.on_gpu else {"cpu": "cpu"}
    rows: dict[str, dict[str, Row]] = {}
    for name, files in groups.items():
        rows[name] = {}
        for decoder, value in decoders.items():
            job = setup.forebay(
                recipe, repeated(files, setup.files), batch_size, dtype=dtype, decoders=value
            )
            contestant = Contestant(job, setup)
            rows[name][decoder] = contestant.measure()
            contestant.close()
    count = sum(map(len, groups.values()))
    whole = {
        decoder: round(
            count
            / sum(len(groups[name]) / of[decoder]["images_per_s"] for name, of in rows.items()),
            1,
        )
        for decoder in decoders
    }
    return {"by_subsampling": rows, "whole": whole, "sum": round(sum(whole.values()), 1)}
