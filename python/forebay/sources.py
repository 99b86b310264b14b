"""Sources: where samples come from, addressed by index.

**Invariants**
- Names stay packed in one byte tensor with offsets; no list of strings is kept unless the user
  asks for one.
- A folder is scanned at the first need, on a thread of the core, and never while importing.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from torch import Tensor
from torch.utils.data import IterableDataset, Subset

from . import _native
from .labels import Labels, label_column
from .listfile import IMG_EXTENSIONS as IMG_EXTENSIONS
from .listfile import read_list_file
from .names import absolute_root, pack_names

__all__ = ["FileList", "ImageFolder", "MapSource", "Source"]

PathLike: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

_POLL_MS = 50


class Source:
    """Where samples come from. Made by the classes below, not by users."""

    def key(self, index: int) -> str:
        """What errors and the field ``key`` call a sample."""
        raise NotImplementedError

    def length(self) -> int | None:
        """Number of samples, if it has one."""
        raise NotImplementedError

    def delivered(self, indices: Tensor) -> None:
        """These samples were handed out; what was kept for them may go."""


class PackedSource(Source):
    """A source whose samples are files with known names, which the core reads itself."""

    root: str = ""

    @property
    def names(self) -> Tensor:
        """Names relative to the root, concatenated; uint8 ``(bytes,)``."""
        raise NotImplementedError

    @property
    def offsets(self) -> Tensor:
        """Where each name begins, and the end; int64 ``(N + 1,)``."""
        raise NotImplementedError

    @property
    def labels(self) -> Labels:
        """Labels: a tensor ``(N, ...)``, a list of N, or None."""
        raise NotImplementedError

    @property
    def labelled(self) -> bool:
        """Whether there are labels, without scanning."""
        return self.labels is not None

    def __len__(self) -> int:
        """Number of samples."""
        return self.offsets.numel() - 1

    def length(self) -> int:
        """Number of samples."""
        return len(self)

    def key(self, index: int) -> str:
        """Path of a sample as it is opened."""
        start, end = self.offsets[index : index + 2].tolist()
        name = os.fsdecode(bytes(self.names[start:end].numpy()))
        return os.path.join(self.root, name)


_NOT_OF_FOLDERS = {
    "transform": "pass transforms= to the Loader",
    "target_transform": "give forebay.FileList the paths of source.samples and labels of your own",
    "is_valid_file": "give forebay.FileList those of source.samples that are valid",
    "loader": "Forebay reads and decodes; wrap a dataset that reads by itself in forebay.MapSource",
}
"""What torchvision's takes beside our arguments, and what does it here."""


class ImageFolder(PackedSource):
    """A folder with one folder of images per class, by torchvision's rules.

    Classes are the folders of ``root`` in sorted order, numbered from 0; files are found at any
    depth, links followed, in torchvision's order. The folder is scanned at first need: ``len``,
    ``classes``, or the loader's first use.

    Args:
        root: the folder.
        extensions: endings of files that count, in any case.
        allow_empty: accept classes without files.

    Attributes: ``classes``, ``class_to_idx`` and ``labels``, a tensor; ``samples`` (also
    ``imgs``) and ``targets``, torchvision's lists, which are made when they are asked for and
    then kept: some 200 bytes a sample. Changing them changes nothing.

    Raises:
        FileNotFoundError: ``root`` is not a folder (at once); it holds no class folders, or a
            class folder holds no files (when scanned).
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        extensions: str | Sequence[str] = IMG_EXTENSIONS,
        *,
        allow_empty: bool = False,
        **torchvisions: object,
    ) -> None:
        """Checks that the folder is there."""
        for name in (*torchvisions, *(["transform"] if callable(extensions) else [])):
            advice = _NOT_OF_FOLDERS.get(name, "it takes root, extensions and allow_empty")
            raise TypeError(f"ImageFolder takes no {name!r}; {advice}")
        self.root = absolute_root(os.path.expanduser(os.fspath(root)))
        if not os.path.isdir(self.root):
            problem = "a file" if os.path.exists(self.root) else "not there"
            raise FileNotFoundError(
                f"root must be a folder of class folders, got {self.root}, which is {problem}"
            )
        listed = (extensions,) if isinstance(extensions, str) else tuple(extensions)
        if not listed or not all(isinstance(ending, str) and ending for ending in listed):
            raise ValueError(f'extensions must be endings such as ".jpg", got {extensions!r}')
        self.extensions = listed
        self.allow_empty = allow_empty
        self._found: tuple[list[str], Tensor, Tensor, Tensor] | None = None
        self._lists: tuple[list[tuple[str, int]], list[int]] | None = None

    @property
    def classes(self) -> list[str]:
        """Names of the classes; a class's label is its place."""
        return self._scanned()[0]

    @property
    def class_to_idx(self) -> dict[str, int]:
        """Label of each class."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def names(self) -> Tensor:
        """See `PackedSource.names`."""
        return self._scanned()[1]

    @property
    def offsets(self) -> Tensor:
        """See `PackedSource.offsets`."""
        return self._scanned()[2]

    @property
    def labelled(self) -> bool:
        """Always: the class is the label."""
        return True

    @property
    def labels(self) -> Tensor:
        """Each sample's class; int64 ``(N,)``."""
        return self._scanned()[3]

    @property
    def samples(self) -> list[tuple[str, int]]:
        """Path and class of each sample."""
        return self._listed()[0]

    @property
    def imgs(self) -> list[tuple[str, int]]:
        """The same as `samples`."""
        return self._listed()[0]

    @property
    def targets(self) -> list[int]:
        """Each sample's class."""
        return self._listed()[1]

    def __getstate__(self) -> dict[str, Any]:
        """Without torchvision's lists, which a copy makes when asked."""
        return self.__dict__ | {"_lists": None}

    def __repr__(self) -> str:
        """Names the folder, without scanning it."""
        return f"ImageFolder({self.root!r})"

    def _listed(self) -> tuple[list[tuple[str, int]], list[int]]:
        if self._lists is None:
            targets: list[int] = self.labels.tolist()
            packed, ends = bytes(self.names.numpy()), self.offsets.tolist()
            paths = [
                os.path.join(self.root, os.fsdecode(packed[start:end]))
                for start, end in itertools.pairwise(ends)
            ]
            self._lists = list(zip(paths, targets, strict=True)), targets
        return self._lists

    def _scanned(self) -> tuple[list[str], Tensor, Tensor, Tensor]:
        if self._found is None:
            scan = _native.Scan(self.root, self.extensions)
            # Short waits: Ctrl-C is seen between them.
            while (reply := scan.poll(_POLL_MS)) is None:
                pass
            summary, (names, offsets, labels) = reply
            self._check(summary["empty"])
            self._found = summary["classes"], names, offsets, labels
        return self._found

    def _check(self, empty: list[str]) -> None:
        if empty and not self.allow_empty:
            shown = ", ".join(sorted(empty)[:20]) + (", ..." if len(empty) > 20 else "")
            raise FileNotFoundError(
                f"Found no valid file for the classes {shown} in {self.root}. Supported extensions "
                f"are: {', '.join(self.extensions)}; pass extensions= or allow_empty=True"
            )


class FileList(PackedSource):
    """A list of image files.

    Args:
        paths: names of files, or the name of a text file with one ``path label`` a line. The
            label is the number after the last blank; lines without labels are allowed if none
            has one. Names may hold blanks and any other character but a newline. Labels that
            are no numbers go into ``labels``.
        labels: one per name: numbers, equally shaped arrays, a tensor ``(N, ...)``, or anything
            else, which then comes as a list. Not with a text file.
        root: folder of relative names; by default the text file's, or the working folder.

    Raises:
        FileNotFoundError: the text file or ``root`` is not there. Missing images are sample
            errors, found when they are read.
        ValueError: no names, a name that cannot be one, or a different number of labels.
    """

    def __init__(
        self,
        paths: PathLike | Sequence[PathLike],
        labels: Any = None,
        root: str | os.PathLike[str] = "",
    ) -> None:
        """Packs the names; a million take less than a second."""
        if isinstance(paths, (str, bytes, os.PathLike)):
            if labels is not None:
                raise ValueError("labels come from the lines of a text file; leave labels out")
            names: list[Any]
            list_file = Path(os.fsdecode(paths))
            root = root or list_file.absolute().parent
            names, labels = read_list_file(list_file, root)
            origin = repr(str(list_file))
        else:
            names = list(paths)
            origin = f"{len(names)} names"
        # Relative names mean what they mean now, wherever the process goes later.
        self.root = absolute_root(root or os.curdir)
        if not os.path.isdir(self.root):
            raise FileNotFoundError(f"root must be a folder, got {self.root}, which is not one")
        self._names, self._offsets = pack_names(names)
        self._labels = label_column(labels, len(names))
        self._origin = origin

    @property
    def names(self) -> Tensor:
        """See `PackedSource.names`."""
        return self._names

    @property
    def offsets(self) -> Tensor:
        """See `PackedSource.offsets`."""
        return self._offsets

    @property
    def labels(self) -> Labels:
        """See `PackedSource.labels`."""
        return self._labels

    def __repr__(self) -> str:
        """Names the text file, or says how many names it holds."""
        return f"FileList({self._origin})"


class MapSource(Source):
    """A map-style dataset in Python whose items are encoded images.

    ``dataset[i]`` returns a path or encoded bytes (``bytes``, a bytes-like object or a uint8
    tensor ``(n,)``), alone or as a tuple ``(image, label)``. It is called from the loader's
    threads, several at once; an exception in it is a sample error with ``__cause__``.

    Args:
        dataset: has ``__getitem__``, and ``__len__`` unless a sampler names the indices. A
            method ``key(i)`` names samples in errors; an int ``fingerprint`` tells apart
            versions of the data when a state is loaded.
    """

    called = "dataset[i]"
    """What messages call an item."""

    def __init__(self, dataset: Any) -> None:
        """Checks the protocol, and what is known not to give encoded images."""
        if isinstance(dataset, Source):
            raise TypeError(
                f"dataset is a source of Forebay's, {dataset!r}; pass it to the Loader itself"
            )
        advice = _subset_advice(dataset) or _decoding_advice(dataset)
        if advice:
            raise TypeError(f"dataset {advice}")
        if not hasattr(dataset, "__getitem__") or isinstance(dataset, IterableDataset):
            raise TypeError(
                f"dataset must have __getitem__ (a map-style dataset), got {type(dataset).__name__}"
            )
        self.dataset = dataset

    def __len__(self) -> int:
        """Number of samples; TypeError if the dataset has none."""
        return len(self.dataset)

    def length(self) -> int | None:
        """Number of samples, if the dataset has one."""
        try:
            return len(self.dataset)
        except (TypeError, NotImplementedError):  # Dataset.__len__ of some libraries raises it
            return None

    def key(self, index: int) -> str:
        """What the dataset calls a sample, or its index in brackets."""
        named = getattr(self.dataset, "key", None)
        return str(named(index)) if callable(named) else f"{type(self.dataset).__name__}[{index}]"

    def fingerprint(self) -> int:
        """A number below 2**63 that differs between datasets."""
        own = getattr(self.dataset, "fingerprint", None)
        kind = type(self.dataset)
        text = f"{kind.__module__}.{kind.__qualname__}:{self.length()}:{own!r}"
        if callable(own):
            text = f"{kind.__module__}.{kind.__qualname__}:{self.length()}:{own()!r}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    def __repr__(self) -> str:
        """Names the dataset's type."""
        return f"MapSource({type(self.dataset).__name__})"


def checked_source(source: Any) -> Source:
    """The source itself, or a TypeError that says what to use instead."""
    if isinstance(source, Source):
        return source
    kind = type(source)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(source, (str, os.PathLike)):
        advice = "use forebay.ImageFolder(root) or forebay.FileList(paths)"
    elif kind.__name__ == "ImageFolder":
        advice = "use forebay.ImageFolder(root)"
    elif subset := _subset_advice(source):
        raise TypeError(f"source {subset}")
    elif isinstance(source, IterableDataset):
        advice = (
            "of a DataPipe call .forebay(transforms=..., batch_size=...), which "
            "forebay.datapipes adds; other streams need a map-style dataset"
        )
    else:
        advice = "wrap a dataset whose items are paths or encoded bytes in forebay.MapSource"
    raise TypeError(f"source must be an ImageFolder, FileList or MapSource, got {name}; {advice}")


def _subset_advice(given: Any) -> str | None:
    """How to take a part of a source of ours, if a Subset of one was given."""
    if not isinstance(given, Subset):
        return None
    nested = isinstance(given.dataset, Subset)
    if not isinstance(_whole(given), Source):
        return None
    indices = "indices into the source" if nested else "subset.indices"
    return (
        "is a torch Subset of a Forebay source, whose samples Python cannot index; pass the source "
        f"and its indices: Loader(source, sampler=SubsetRandomSampler({indices})), or "
        f"sampler={indices} for their own order"
    )


def _decoding_advice(dataset: Any) -> str | None:
    """How to get encoded images out of torchvision's folders, if one that decodes was given."""
    whole = _whole(dataset)
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(whole).__mro__}
    if "torchvision.datasets.folder.DatasetFolder" not in kinds:
        return None
    loader = getattr(whole, "loader", None)
    if not str(getattr(loader, "__module__", "")).startswith("torchvision."):
        return None
    return (
        f"is torchvision's {type(whole).__name__}, whose items are decoded; use "
        "forebay.ImageFolder(root), or leave decoding to Forebay: "
        "torchvision.datasets.ImageFolder(root, loader=lambda path: path)"
    )


def _whole(dataset: Any) -> Any:
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    return dataset
