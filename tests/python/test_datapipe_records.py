"""``.forebay()``: whatever the pipe before gives comes as the batches that a Loader would make."""

import threading
from pathlib import Path

import pytest
import torch
from torch.utils.data import IterDataPipe
from torch.utils.data.datapipes.iter import IterableWrapper

import forebay
import forebay.datapipes
from encoded import encoded_tensor
from forebay import transforms as T

RECIPE = [T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.3)]


def same(batches, expected):
    """Whether batches of images, or of images and labels, are equal."""
    batches, expected = list(batches), list(expected)
    assert len(batches) == len(expected)
    for batch, right in zip(batches, expected, strict=True):
        if isinstance(right, torch.Tensor):
            batch, right = (batch,), (right,)
        assert all(map(torch.equal, batch, right))


def pipe_of(records, **keywords):
    keywords.setdefault("batch_size", 8)
    return IterableWrapper(records).forebay(transforms=RECIPE, **keywords)


@pytest.fixture
def expect(make_loader, paths):
    """The batches of a Loader over the paths, with the place as the label if asked for."""

    def expect(labelled, **keywords):
        labels = list(range(len(paths))) if labelled else None
        keywords.setdefault("transforms", RECIPE)
        return make_loader(forebay.FileList(paths, labels=labels), **keywords)

    return expect


@pytest.mark.parametrize(
    "image",
    [
        str,
        Path,
        lambda path: Path(path).read_bytes(),
        lambda path: bytearray(Path(path).read_bytes()),
        lambda path: encoded_tensor(Path(path).read_bytes()),
    ],
    ids=["str", "Path", "bytes", "bytearray", "tensor"],
)
@pytest.mark.parametrize("labelled", [False, True])
def test_paths_and_bytes_with_and_without_labels(paths, expect, image, labelled):  # RNG-1
    records = [(image(path), n) if labelled else image(path) for n, path in enumerate(paths)]
    pipe, loader = pipe_of(records), expect(labelled)
    for _ in range(2):  # epochs
        same(pipe, loader)


@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize(
    ("batch_size", "drop_last"), [(1, False), (7, False), (7, True), (99, True)]
)
def test_threads_and_batch_size_change_nothing(paths, expect, num_workers, batch_size, drop_last):
    keywords = {"batch_size": batch_size, "drop_last": drop_last}
    pipe = pipe_of(list(zip(paths, range(64), strict=True)), num_workers=num_workers, **keywords)
    expected = list(expect(True, **keywords))
    assert len(pipe) == len(expected)
    same(pipe, expected)


def test_labels_of_any_kind(paths):
    records = [(path, f"label {number}") for number, path in enumerate(paths[:10])]
    labels = [label for _, batch in pipe_of(records, batch_size=4) for label in batch]
    assert labels == [label for _, label in records]


def test_options_are_the_loaders(paths):
    pipe = pipe_of(
        [(path, 2.5) for path in paths[:6]],
        batch_size=3,
        fields={"x": "image", "y": "label", "more": ("index", "key", "size", "valid")},
        dtype=torch.float16,
        memory_format=torch.channels_last,
    )
    first, second = pipe
    assert first["x"].dtype == torch.float16
    assert first["x"].is_contiguous(memory_format=torch.channels_last)
    assert second["y"].tolist() == [2.5] * 3
    index, key, size, valid = second["more"]
    assert index.tolist() == [3, 4, 5]
    assert key == paths[3:6]
    assert size.shape == (3, 2)
    assert valid.all()


def test_bytes_are_called_by_their_place(paths):
    records = [Path(path).read_bytes() for path in paths[:5]]
    keys = [key for batch in pipe_of(records, batch_size=2, fields="key") for key in batch]
    assert keys == [f"record {number}" for number in range(5)]


def test_seed_and_iteration_are_the_keys(paths, expect):
    expected = expect(False, seed=5)
    expected.set_epoch(3)
    pipe = pipe_of(paths, seed=5)
    assert pipe.set_seed(3) is pipe
    same(pipe, expected)
    expected.set_epoch(0)  # what set_seed names is one iteration
    same(pipe, expected)


class Walk(IterDataPipe):
    """Tells which threads walk over it, and how far."""

    def __init__(self, records):
        self.records = records
        self.threads = set()
        self.taken = 0

    def __iter__(self):
        for record in self.records:
            self.threads.add(threading.get_ident())
            self.taken += 1
            yield record


def test_the_pipe_before_runs_in_the_thread_that_iterates(paths):
    walk = Walk(paths)
    assert len(list(walk.forebay(transforms=RECIPE, batch_size=4, num_workers=3))) == 16
    assert walk.threads == {threading.get_ident()}


def test_nothing_is_pulled_before_the_first_batch_and_little_ahead(paths):
    walk = Walk(paths)
    iterator = iter(walk.forebay(transforms=RECIPE, batch_size=4, prefetch_factor=2))
    assert walk.taken == 0
    for number in range(1, 6):
        next(iterator)
        assert walk.taken <= 4 * (number + 2 + 3)


def test_an_endless_pipe(paths):
    class Endless(IterDataPipe):
        def __iter__(self):
            while True:
                yield from paths

    iterator = iter(Endless().forebay(transforms=RECIPE, batch_size=10))
    for _ in range(30):
        assert len(next(iterator)) == 10


def test_a_list_will_do(paths, expect):
    same(
        forebay.datapipes.ForebayIterDataPipe(paths, transforms=RECIPE, batch_size=8),
        expect(False),
    )


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"shuffle": True}, TypeError, r"no shuffle: .*\.shuffle\(\) before"),
        ({"sampler": range(3)}, TypeError, "no sampler: the pipe before is the order"),
        ({"batch_sampler": [[0]]}, TypeError, "no batch_sampler"),
        ({"last_batch": "pad"}, TypeError, "use drop_last="),
        ({"generator": torch.Generator()}, TypeError, "use seed="),
        ({"on_error": "replace"}, ValueError, "random access"),
        ({"no_such_option": 1}, TypeError, "no_such_option"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"fields": "mask"}, ValueError, "fields"),
        ({"transforms": []}, ValueError, "same size"),
    ],
)
def test_what_makes_no_sense_is_told_at_once(paths, keywords, error, words):
    with pytest.raises(error, match=words):
        IterableWrapper(paths).forebay(**{"transforms": RECIPE} | keywords)


def test_a_source_that_is_none_is_told():
    with pytest.raises(TypeError, match=r"source_datapipe must be .* got int"):
        forebay.datapipes.ForebayIterDataPipe(3, transforms=RECIPE)
