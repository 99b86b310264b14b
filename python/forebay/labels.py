"""Labels: how a source's labels become a column, and a batch's labels a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

Labels: TypeAlias = "Tensor | list[Any] | None"

# What losses ignore by default; stands where a bad sample was skipped (ERR-1).
SKIPPED = -100


class NoLabel:
    """Stands for the label of a sample that came without one."""


NO_LABEL = NoLabel()


def label_column(labels: Any, count: int) -> Labels:
    """A source's labels as a tensor ``(N, ...)``, dtype kept; as a list if they do not stack."""
    if labels is None:
        return None
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        raise TypeError(f"labels must be a sequence, got {type(labels).__name__}")
    if len(labels) != count:
        raise ValueError(f"labels must hold one per name ({count}), got {len(labels)}")
    if isinstance(labels, Tensor):
        return labels.detach().to("cpu").contiguous()
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "biuf":
        return torch.from_numpy(np.ascontiguousarray(labels))
    return stack_labels(list(labels))


def stack_labels(labels: Sequence[Any]) -> Tensor | list[Any]:
    """Numbers and equally shaped arrays as one tensor, dtype kept; anything else as a list.

    Python ints become int64 and floats float64, as DataLoader makes them.
    """
    kinds = set(map(type, labels))
    if kinds == {bool}:
        return torch.tensor(labels, device="cpu")
    if kinds == {int}:
        try:
            return torch.from_numpy(np.array(labels, dtype=np.int64))
        except OverflowError:
            return list(labels)
    if kinds and kinds <= {int, float}:
        return torch.from_numpy(np.array(labels, dtype=np.float64))
    if all(isinstance(label, (Tensor, np.ndarray, np.generic)) for label in labels):
        try:
            tensors = [torch.as_tensor(label).detach().cpu() for label in labels]
        except TypeError:  # arrays of strings or objects
            return list(labels)
        if len({(tensor.shape, tensor.dtype) for tensor in tensors}) == 1:
            return torch.stack(tensors)
    return list(labels)


def fill_skipped(
    labels: list[Any], skipped: Sequence[bool], example: Any = NO_LABEL
) -> Tensor | list[Any]:
    """A batch's labels; -100 where a sample was skipped, 0 in dtypes that have no -100.

    A batch without a single good label takes its form from ``example``, if there is one.
    """
    good = [label for label, skip in zip(labels, skipped, strict=True) if not skip]
    if not good and example is not NO_LABEL:
        return fill_skipped([*labels, example], [*skipped, False])[:-1]
    if not good:
        return torch.full((len(labels),), SKIPPED)
    stacked = stack_labels(good)
    if isinstance(stacked, list):
        return [SKIPPED if skip else label for label, skip in zip(labels, skipped, strict=True)]
    if len(good) == len(labels):
        return stacked
    value = SKIPPED if stacked.dtype.is_signed and not stacked.dtype.is_complex else 0
    column = torch.full((len(labels), *stacked.shape[1:]), value, dtype=stacked.dtype)
    column[~torch.tensor(skipped, device="cpu")] = stacked
    return column


def mixed_labels(
    labels: Tensor | list[Any],
    skipped: Sequence[bool],
    num_classes: int | None,
    mixed: dict[str, Any] | None,
) -> Tensor:
    """Labels as rows of a number for each class, mixed as the batch's images were.

    ``mixed`` has the ``weights`` of a sample's own row, mix by mix, and the ``partners``, by sample
    that of the other one; None if nothing was mixed. Rows of skipped samples are zeros.

    Raises:
        TypeError: labels are neither class numbers nor rows.
        ValueError: a class number is not below ``num_classes``, or that is not known.
    """
    rows = _class_rows(labels, skipped, num_classes)
    if mixed is None:
        return rows
    partners = [
        own if partner is None else partner for own, partner in enumerate(mixed["partners"])
    ]
    for weight in mixed["weights"]:
        rows = rows[partners].mul_(1 - weight).add_(rows.mul(weight))
    return rows


def _class_rows(
    labels: Tensor | list[Any], skipped: Sequence[bool], num_classes: int | None
) -> Tensor:
    if not isinstance(labels, Tensor) or labels.is_complex():
        raise TypeError(f"MixUp and CutMix need labels that stack, got {labels!r:.80}")
    absent = torch.tensor(skipped, device=labels.device)
    if labels.ndim == 2:
        rows = labels if labels.is_floating_point() else labels.float()
        return rows.masked_fill(absent[:, None], 0)
    if labels.ndim != 1 or labels.is_floating_point():
        raise TypeError(
            "MixUp and CutMix need class numbers, integers, or rows of a number for each class; "
            f"got labels of shape {tuple(labels.shape[1:])} and {labels.dtype} per sample"
        )
    if num_classes is None:
        raise ValueError(
            "MixUp and CutMix need num_classes: labels are class numbers, and the source does not "
            "know how many there are"
        )
    numbers = labels.long().masked_fill(absent, 0)
    wrong = numbers[(numbers < 0) | (numbers >= num_classes)]
    if len(wrong):
        raise ValueError(
            f"labels must be class numbers below num_classes={num_classes}, got {int(wrong[0])}"
        )
    rows = torch.zeros(len(numbers), num_classes, device=labels.device)
    rows[torch.arange(len(numbers), device=labels.device), numbers] = 1
    return rows.masked_fill_(absent[:, None], 0)
