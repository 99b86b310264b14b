"""Bad records, exceptions before, breaking off: nothing is lost, mixed up or kept."""

import gc
import json
import threading
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, IterDataPipe
from torch.utils.data.datapipes.iter import IterableWrapper

import forebay
import forebay.datapipes
from forebay import transforms as T
from images import flat, jpeg

RECIPE = [T.Resize((16, 16))]


def grey(number):
    """A record whose label can be told from its pixels."""
    return jpeg(flat(20, 20, 4 * number)), number


def check(images, labels):
    torch.testing.assert_close(images.float().mean((1, 2, 3)), 4.0 * labels, atol=1.0, rtol=0)
    return labels.tolist()


def drained(iterator):
    """Labels of the batches that come, and the errors."""
    labels, errors = [], []
    while True:
        try:
            labels.append(check(*next(iterator)))
        except forebay.SampleError as error:
            errors.append(error)
        except StopIteration:
            return labels, errors


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_bad_record_is_an_error_and_the_next_batch_follows(tmp_path, num_workers):
    records = [grey(number) for number in range(20)]
    records[5] = str(tmp_path / "missing.jpg"), 5
    records[13] = b"no image", 13
    pipe = IterableWrapper(records).forebay(
        transforms=RECIPE, batch_size=4, num_workers=num_workers
    )
    for _ in range(2):
        labels, errors = drained(iter(pipe))
        assert labels == [[0, 1, 2, 3], [8, 9, 10, 11], [16, 17, 18, 19]]
        assert [(error.index, error.key, error.stage) for error in errors] == [
            (5, str(tmp_path / "missing.jpg"), "read"),
            (13, "record 13", "decode"),
        ]
        assert pipe._window.held() == 0


def test_skipped_records_are_marked_and_logged(tmp_path):
    records = [grey(number) for number in range(8)]
    records[2] = b"", 2
    log = tmp_path / "bad.jsonl"
    pipe = IterableWrapper(records).forebay(
        transforms=RECIPE,
        batch_size=8,
        on_error="skip",
        fields=("image", "label", "valid"),
        quarantine=log,
    )
    ((images, labels, valid),) = pipe
    assert valid.tolist() == [number != 2 for number in range(8)]
    assert labels.tolist() == [0, 1, -100, 3, 4, 5, 6, 7]
    assert not images[2].any()
    assert [json.loads(line)["key"] for line in log.read_text().splitlines()] == ["record 2"]


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (3, "a record must give a path or encoded bytes, got builtins.int"),
        ((b"x", 1, 2), "a record must be a path or bytes, .* got 3 values"),
        (torch.zeros(3, 8, 8), "a record must give"),
    ],
)
def test_what_is_no_record_is_told(record, words):
    with pytest.raises(forebay.SampleError, match=words) as caught:
        list(IterableWrapper([record], deepcopy=False).forebay(transforms=RECIPE))
    assert isinstance(caught.value.__cause__, TypeError)


def test_labels_for_some_records_only_are_told():
    pipe = IterableWrapper([grey(0), grey(1)[0]]).forebay(transforms=RECIPE, batch_size=2)
    with pytest.raises(TypeError, match="a record must give a label for every sample or for none"):
        list(pipe)
    assert pipe._window.held() == 0


class Interrupted(IterDataPipe):
    """Is met by Ctrl-C once, before record ``at``."""

    def __init__(self, count, at):
        self.count = count
        self.at = at
        self.given = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.given == self.at:
            self.at = None
            raise KeyboardInterrupt
        if self.given == self.count:
            raise StopIteration
        self.given += 1
        return grey(self.given - 1)


@pytest.mark.parametrize("at", [0, 1, 4, 17, 19])
def test_ctrl_c_in_the_pipe_before_is_raised_and_loses_no_record(at):
    iterator = iter(Interrupted(20, at).forebay(transforms=RECIPE, batch_size=4, num_workers=1))
    labels = []
    with pytest.raises(KeyboardInterrupt):
        while True:
            labels.append(check(*next(iterator)))
    labels += [check(*batch) for batch in iterator]
    assert [label for batch in labels for label in batch] == list(range(20))


class Breaks(IterDataPipe):
    """Raises at a record while it is asked to."""

    def __init__(self, count, at):
        self.count = count
        self.at = at

    def __iter__(self):
        for number in range(self.count):
            if number == self.at:
                raise OSError("the stream broke")
            yield grey(number)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_exception_before_arrives_once_and_whole_batches_follow(num_workers):
    source = Breaks(40, at=26)
    pipe = source.forebay(transforms=RECIPE, batch_size=4, num_workers=num_workers)
    iterator, seen, raised = iter(pipe), [], 0
    while True:
        try:
            seen += check(*next(iterator))
        except OSError as error:
            assert "the stream broke" in str(error)
            raised += 1
        except StopIteration:
            break
    assert raised == 1
    assert seen == list(range(24))
    source.at = None
    assert [label for batch in pipe for label in check(*batch)] == list(range(40))


def test_an_exception_at_the_first_record_leaves_the_pipe_usable():
    source = Breaks(8, at=0)
    pipe = source.forebay(transforms=RECIPE, batch_size=4)
    iterator = iter(pipe)
    with pytest.raises(OSError, match="the stream broke"):
        next(iterator)
    assert next(iterator, None) is None
    source.at = None
    assert len(list(pipe)) == 2


@pytest.mark.parametrize("num_workers", [0, 3])
def test_breaking_off_and_starting_anew_mixes_nothing_up(num_workers):
    pipe = IterableWrapper([grey(number) for number in range(60)]).shuffle()
    pipe = pipe.forebay(transforms=RECIPE, batch_size=5, num_workers=num_workers)
    for round_ in range(30):
        for taken, batch in enumerate(pipe):
            check(*batch)
            if taken == round_ % 5:
                break
    assert sorted(label for batch in pipe for label in check(*batch)) == list(range(60))


def test_an_older_iterator_is_told_so():
    pipe = IterableWrapper([grey(number) for number in range(20)]).forebay(
        transforms=RECIPE, batch_size=5
    )
    first = iter(pipe)
    next(first)
    second = iter(pipe)
    with pytest.raises(RuntimeError, match="invalidated"):
        next(first)
    assert len(list(second)) == 4


def test_records_are_kept_no_longer_than_needed():  # MEM-1
    class Many(IterDataPipe):
        def __iter__(self):
            record = grey(1)
            return (record for _ in range(2000))

    pipe = Many().forebay(transforms=RECIPE, batch_size=10, prefetch_factor=2)
    for _ in range(2):
        held = [pipe._window.held() for _ in pipe]
        assert len(held) == 200
        assert max(held) <= 10 * (2 + 3)
        assert pipe._window.held() == 0
        assert len(pipe._loader._opened().supplier.book) == 0


def test_threads_end_with_the_pipe(paths):  # LIF-1
    def threads():
        return [thread for thread in threading.enumerate() if "forebay" in thread.name]

    gc.collect()
    before = len(threads())
    pipe = IterableWrapper(paths).forebay(transforms=RECIPE, batch_size=5, num_workers=2)
    iterator = iter(pipe)
    assert len(threads()) == before
    next(iterator)
    assert len(threads()) == before + 2
    del pipe, iterator
    gc.collect()
    assert len(threads()) == before


def test_a_bad_record_in_a_worker_names_itself(tmp_path):
    records = [grey(number) for number in range(12)]
    records[5] = str(tmp_path / "missing.jpg"), 5
    pipe = IterableWrapper(records).forebay(transforms=RECIPE, batch_size=4)
    iterator = iter(DataLoader(pipe, batch_size=None, num_workers=1))
    assert check(*next(iterator)) == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match=r"missing\.jpg: read"):
        next(iterator)
    assert check(*next(iterator)) == [8, 9, 10, 11]


def test_paths_may_have_any_name(tmp_path):
    names = ["a b.jpg", "umläut.jpg", "new\nline.jpg"]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(grey(number)[0])
    records = [(Path(tmp_path / name), number) for number, name in enumerate(names)]
    ((images, labels),) = IterableWrapper(records).forebay(transforms=RECIPE, batch_size=3)
    assert check(images, labels) == [0, 1, 2]
