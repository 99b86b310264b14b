"""From what the core hands over to what the user's loop receives.

**Invariants**
- MEM-2: batches are handed on as they are; only labels kept in Python and, under
  ``pin_memory``, the copy into page-locked memory cost one.
- ERR-1: nothing is silent: every failure is counted and logged when its batch is delivered.
- Whatever interrupts `batch` leaves all as it was: only `settle` changes anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from .errors import Failure, SampleError, warn
from .labels import NO_LABEL, fill_skipped, mixed_labels
from .placement import Placement
from .recipe import class_count
from .sources import MapSource, PackedSource, Source
from .supply import LabelBook
from .transforms import Transform

BUILT_IN = ("index", "key", "valid", "size")
# Labels of these types travel through the core; others are looked up here.
CORE_DTYPES = (
    *(torch.bool, torch.uint8, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)


class Delivery:
    """Shapes batches, raises sample errors, keeps the quarantine log."""

    def __init__(
        self,
        source: Source,
        fields: Any,
        collate_fn: Callable[[list[Any]], Any] | None,
        on_error: str,
        quarantine: str | os.PathLike[str] | None,
        transforms: Iterable[Transform],
    ) -> None:
        """Checks that the fields exist."""
        self._mixes = any(step.of_batch for step in transforms)
        self._num_classes = class_count(transforms)
        self._source = source
        self.collate_fn = collate_fn
        self._on_error = on_error
        self._quarantine = None if quarantine is None else os.path.abspath(quarantine)
        self._fields = fields
        self._warned = False
        # A label of the dataset's, after which those of skipped samples are shaped.
        self._example: Any = NO_LABEL
        self.counters = {"batches": 0, "samples": 0, "failures": 0}
        if collate_fn is not None and not callable(collate_fn):
            raise TypeError(f"collate_fn must be callable, got {type(collate_fn).__name__}")
        if isinstance(source, MapSource):
            self._labelled: bool | None = None  # the first batch tells
            self._called = source.called
        else:
            assert isinstance(source, PackedSource)
            self._labelled = source.labelled
            self._called = "the source"
        if fields is not None:
            known = ("image", *(() if self._labelled is False else ("label",)), *BUILT_IN)
            for name in _leaves(fields):
                if name not in known:
                    raise ValueError(f"fields must name some of {', '.join(known)}, got {name!r}")
        if self._mixes and (
            self._labelled is False or (fields is not None and "label" not in _leaves(fields))
        ):
            what = "fields do not name them" if self._labelled is not False else "there are none"
            raise ValueError(f"MixUp and CutMix mix labels, and {what}")

    @property
    def core_labels(self) -> Tensor:
        """Labels that the core delivers; empty when there are none or Python looks them up."""
        labels = self._source.labels if isinstance(self._source, PackedSource) else None
        if isinstance(labels, Tensor) and labels.dtype in CORE_DTYPES:
            return labels
        return torch.empty(0, dtype=torch.int64, device="cpu")

    def batch(
        self,
        reply: dict[str, Any],
        tensors: list[Tensor],
        paths: list[str],
        book: LabelBook | None,
        placement: Placement,
        pin: bool,
    ) -> Any:
        """The batch in the shape that the user asked for; SampleError if it failed."""
        indices, positions, valid = tensors[:3]
        failures = self._failures(reply, book)
        if reply["kind"] == "failed":
            failure, cause = failures[reply["raise"]]
            listed = [failure for failure, _ in failures]
            raise SampleError(
                failure.index, failure.key, failure.stage, failure.reason, listed
            ) from cause
        columns: dict[str, Any] = {"index": indices, "valid": valid, "size": tensors[3]}
        columns.update(zip(paths, tensors[4:], strict=True))
        failed = {failure.position for failure, _ in failures}
        skipped = [
            self._on_error == "skip" and position in failed for position in positions.tolist()
        ]
        if "label" not in columns:
            labels = self._labels(reply, indices.tolist(), skipped, book)
            if labels is not None:
                columns["label"] = labels
        if self._mixes:
            columns["label"] = self._mixed(columns, skipped, reply.get("mixed"))
        return self._shaped(columns, placement, pin)

    def settle(self, reply: dict[str, Any], tensors: list[Tensor], book: LabelBook | None) -> None:
        """Counts and logs a batch of which `batch` has made what it could, and forgets its labels.

        `batch` may be called again before that, and returns the same.
        """
        indices, _, valid = tensors[:3]
        failures = [failure for failure, _ in self._failures(reply, book)]
        self.counters["batches"] += 1
        self.counters["failures"] += len(failures)
        if reply["kind"] == "batch":
            self.counters["samples"] += int(valid.sum())
        if book is not None:
            for token in (*reply["tokens"], *(fault["token"] for fault in reply["failures"])):
                book.forget(token)
        try:
            if failures and self._quarantine is not None:
                self._log(reply["epoch"], failures)
        finally:
            self._source.delivered(indices)

    def _labels(
        self,
        reply: dict[str, Any],
        indices: list[int],
        skipped: list[bool],
        book: LabelBook | None,
    ) -> Tensor | list[Any] | None:
        if book is None:
            assert isinstance(self._source, PackedSource)
            column = self._source.labels
            if column is None:
                return None
            return fill_skipped([column[index] for index in indices], skipped, column[0])
        labels = [
            NO_LABEL if skip else book.label(token)
            for token, skip in zip(reply["tokens"], skipped, strict=True)
        ]
        given = [
            label is not NO_LABEL for label, skip in zip(labels, skipped, strict=True) if not skip
        ]
        if self._labelled is None and given:
            self._labelled = all(given)
        if given and (any(given) != all(given) or given[0] != self._labelled):
            raise TypeError(
                f"{self._called} must give a label for every sample or for none, got both"
            )
        if self._labelled is False:
            return None
        if self._example is NO_LABEL and given:
            self._example = next(label for label in labels if label is not NO_LABEL)
        return fill_skipped(labels, skipped, self._example)

    def _mixed(
        self, columns: dict[str, Any], skipped: list[bool], mixed: dict[str, Any] | None
    ) -> Tensor:
        if "label" not in columns:
            raise ValueError(f"MixUp and CutMix mix labels, and {self._called} gives none")
        count = self._num_classes
        if count is None:
            classes = getattr(self._source, "classes", None)
            count = None if classes is None else len(classes)
        return mixed_labels(columns["label"], skipped, count, mixed)

    def _shaped(self, columns: dict[str, Any], placement: Placement, pin: bool) -> Any:
        fields = self._fields
        if fields is None:
            fields = ("image", "label") if "label" in columns else "image"
        names = _leaves(fields)
        if "label" in names and "label" not in columns:
            raise ValueError(f"fields name 'label', but {self._called} gives none; leave it out")
        if "key" in names:
            columns["key"] = [self._source.key(index) for index in columns["index"].tolist()]
        if "valid" not in names and not self._warned and not bool(columns["valid"].all()):
            self._warned = True
            warn(
                "a batch holds padded or skipped samples, which only the field 'valid' tells "
                'apart; add "valid" to fields'
            )
        for name in names:
            if isinstance(columns[name], Tensor):
                columns[name] = placement.place(name, columns[name])
                if pin and not columns[name].is_cuda:
                    columns[name] = columns[name].pin_memory()
        if self.collate_fn is None:
            return _shape(fields, columns.__getitem__)
        count = len(columns["index"])
        return self.collate_fn(
            [_shape(fields, lambda name, i=i: columns[name][i]) for i in range(count)]  # type: ignore[misc]
        )

    def _failures(
        self, reply: dict[str, Any], book: LabelBook | None
    ) -> list[tuple[Failure, BaseException | None]]:
        """The batch's failures in order, each with the exception of the user's dataset."""
        found = []
        for fault in reply["failures"]:
            index = fault["index"]
            failure = Failure(
                fault["position"],
                index,
                self._source.key(index),
                fault["stage"],
                fault["reason"],
                fault["attempt"],
            )
            cause = None
            if book is not None and failure.stage == "dataset":
                cause = book.error(fault["token"])
            found.append((failure, cause))
        return found

    def _log(self, epoch: int, failures: list[Failure]) -> None:
        assert self._quarantine is not None
        lines = "".join(
            json.dumps(
                {
                    "epoch": epoch,
                    "position": failure.position,
                    "index": failure.index,
                    "key": failure.key,
                    "stage": failure.stage,
                    "reason": failure.reason,
                }
            )
            + "\n"
            for failure in failures
        )
        # One write to a file opened for appending: lines of several ranks do not mix.
        try:
            with open(self._quarantine, "ab", buffering=0) as log:
                log.write(lines.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise OSError(error.errno, f"quarantine: {error.strerror}", self._quarantine) from None


def _shape(fields: Any, column: Callable[[str], Any]) -> Any:
    if isinstance(fields, str):
        return column(fields)
    if isinstance(fields, dict):
        return {name: _shape(field, column) for name, field in fields.items()}
    return tuple(_shape(field, column) for field in fields)


def _leaves(fields: Any) -> list[str]:
    if isinstance(fields, str):
        return [fields]
    if not isinstance(fields, (tuple, list, dict)) or not fields:
        raise TypeError(
            f"fields must be a name, a tuple of names or a dict of names, got {fields!r}"
        )
    parts = fields.values() if isinstance(fields, dict) else fields
    return [name for part in parts for name in _leaves(part)]
