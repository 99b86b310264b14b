"""Draws what ``forebay bench`` measured, with matplotlib."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from .report import Row, rates

_COLOURS = {"forebay": "#0b6e4f"}
_OTHERS = ("#8d99ae", "#d08c60", "#6d597a", "#5b8e7d", "#bc4b51", "#457b9d")
_DPI = 120
_AXES = {"num-workers": "threads or worker processes", "batch-size": "batch size"}


def require() -> None:
    """Raises ImportError with the command that installs matplotlib, unless it is there."""
    if find_spec("matplotlib") is None:
        raise ImportError("--plot needs matplotlib: pip install matplotlib")


def draw(report: Row, file: str) -> None:
    """A sweep as lines, everything else as bars, in the format that the file's name says."""
    if "sweep" in report:
        _lines(report, file)
    else:
        bars({report["recipe"]: rates(report)}, file)


def bars(recipes: dict[str, dict[str, float]], file: str) -> None:
    """Images per second, a panel with its own scale for each recipe and a bar for each loader."""
    names = list(dict.fromkeys(name for rate in recipes.values() for name in rate))
    figure = _figure(width=1.2 + 2.8 * len(recipes))
    panels = figure.subplots(1, len(recipes), squeeze=False)[0]
    for axes, (recipe, rate) in zip(panels, recipes.items(), strict=True):
        colours = [_colour(name, names) for name in rate]
        drawn = axes.bar(range(len(rate)), list(rate.values()), color=colours)
        axes.bar_label(drawn, fmt="%.0f", fontsize=8)
        axes.set_xticks(
            range(len(rate)), list(rate), rotation=40, ha="right", rotation_mode="anchor"
        )
        axes.set_title(recipe, fontsize=10)
        _finish(axes)
    figure.savefig(file, dpi=_DPI)


def _lines(report: Row, file: str) -> None:
    option, values = report["sweep"]["option"], report["sweep"]["values"]
    figure = _figure(width=6.0)
    axes = figure.subplots()
    series = [rates(point) for point in report["points"]]
    for name in series[0]:
        heights = [point[name] for point in series]
        axes.plot(values, heights, marker="o", label=name, color=_colour(name, list(series[0])))
    axes.set_xticks(values)
    axes.set_xlabel(_AXES[option])
    axes.set_title(report["points"][0]["recipe"], fontsize=10)
    axes.legend(fontsize=8, frameon=False)
    _finish(axes)
    figure.savefig(file, dpi=_DPI)


def _figure(width: float) -> Any:
    # Without pyplot, which would look for a screen.
    return import_module("matplotlib.figure").Figure(figsize=(width, 3.6), layout="constrained")


def _finish(axes: Any) -> None:
    axes.set_ylabel("images/s")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)


def _colour(name: str, names: list[str]) -> str:
    others = [other for other in names if other not in _COLOURS]
    return _COLOURS.get(name) or _OTHERS[others.index(name) % len(_OTHERS)]
