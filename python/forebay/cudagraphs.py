"""Batches as the inputs of a captured CUDA graph, which reads the same addresses in every replay.

A batch lies where there was room for it, and ``next`` refuses to run while a graph is captured.
So the graph reads tensors of its own, into which each batch is copied::

    batches = iter(loader)  # drop_last=True: a graph's inputs have one shape
    inputs = StaticInputs(next(batches))
    with torch.cuda.graph(graph):
        step(*inputs.batch)
    graph.replay()  # a capture runs nothing
    for batch in batches:
        inputs.copy_(batch)
        graph.replay()
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

__all__ = ["StaticInputs"]


class StaticInputs:
    """Tensors that stay where they are, shaped as a batch: a tensor, or a nest of tuples and dicts.

    Args:
        batch: an example, whose values are copied; of every tensor the shape, dtype and memory
            format are kept.
        device: where the tensors are; by default each where it is in the example. A graph reads
            tensors of the GPU alone.

    Attributes:
        batch: the tensors in the example's nest.

    Raises:
        TypeError: the example holds something else than tensors.

    Streams: construct it outside the capture. Copies run on the current stream, so that a replay
    on that stream reads what was copied before it.
    """

    def __init__(self, batch: Any, *, device: torch.device | str | int | None = None) -> None:
        """Allocates the tensors and copies the example."""
        self.batch: Any = _allocated(batch, device, "batch")
        self.copy_(batch)

    def copy_(self, batch: Any) -> Any:
        """Copies a batch into the tensors; from the GPU and pinned memory without waiting.

        Returns:
            ``self.batch``.

        Raises:
            ValueError: the batch has another nest, shape or dtype than the example; nothing was
                copied.
        """
        for static, given in list(_pairs(self.batch, batch, "batch")):
            static.copy_(given, non_blocking=True)
        return self.batch


def _allocated(value: Any, device: Any, name: str) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_like(value, device=device, requires_grad=False)
    if isinstance(value, dict):
        return {key: _allocated(part, device, f"{name}[{key!r}]") for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_allocated(part, device, f"{name}[{i}]") for i, part in enumerate(value))
    raise TypeError(f"{name} must be a tensor, or a tuple or dict of them, got {value!r:.80}")


def _pairs(static: Any, given: Any, name: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Each static tensor with what is to be copied into it."""
    if isinstance(static, Tensor):
        wanted, got = _described(static), _described(given)
        if wanted != got:
            raise ValueError(f"{name} must be {wanted}, as the example was, got {got}")
        yield static, given
    elif isinstance(static, dict):
        if not isinstance(given, dict) or given.keys() != static.keys():
            raise ValueError(f"{name} must be a dict of {', '.join(map(repr, static))}")
        for key, part in static.items():
            yield from _pairs(part, given[key], f"{name}[{key!r}]")
    else:
        if not isinstance(given, (tuple, list)) or len(given) != len(static):
            raise ValueError(f"{name} must be a tuple of {len(static)}")
        for place, (part, other) in enumerate(zip(static, given, strict=True)):
            yield from _pairs(part, other, f"{name}[{place}]")


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"a {type(value).__name__}"
    return f"{value.dtype} of shape {tuple(value.shape)}"
