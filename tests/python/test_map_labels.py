"""Labels and faults of a user's dataset reach the slots that they belong to (ERR-1)."""

import random
import signal

import numpy as np
import pytest
import torch

import forebay
from forebay import transforms as T
from images import png

RECIPE = [T.Resize((4, 4))]


class Colours:
    """A picture of one colour, another one at every call; the label is the colour."""

    def __init__(self, length, bad=()):
        self.length = length
        self.bad = bad

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        colour = random.randrange(256)
        if index in self.bad:
            return b"no image", colour
        return png(np.full((8, 8, 3), colour, np.uint8)), colour


@pytest.mark.parametrize("workers", [0, 1, 4])
def test_labels_follow_their_images_when_an_index_is_in_flight_twice(workers, make_loader):
    sampler = [0, 1, 0, 0, 1, 0, 2, 2] * 8
    loader = make_loader(
        forebay.MapSource(Colours(3)),
        transforms=RECIPE,
        batch_size=4,
        sampler=sampler,
        num_workers=workers,
    )
    for images, labels in loader:
        assert torch.equal(images[:, 0, 0, 0].long(), labels)


@pytest.mark.parametrize("workers", [0, 2])
def test_labels_follow_their_images_when_samples_are_replaced(workers, make_loader):
    loader = make_loader(
        forebay.MapSource(Colours(6, bad=(1, 4))),
        transforms=RECIPE,
        batch_size=3,
        shuffle=True,
        on_error="replace",
        num_workers=workers,
    )
    for _ in range(20):
        for images, labels in loader:
            assert torch.equal(images[:, 0, 0, 0].long(), labels)


@pytest.mark.parametrize("batch_size", [1, 3])
def test_a_batch_of_bad_samples_only_is_skipped_like_any_other(batch_size, make_loader):
    loader = make_loader(
        forebay.MapSource(
            [(b"bad", 5), (b"bad", 6), (b"bad", 7), (png(np.zeros((8, 8, 3), np.uint8)), 8)]
        ),
        transforms=RECIPE,
        batch_size=batch_size,
        on_error="skip",
        fields=("label", "valid"),
    )
    labels = torch.cat([labels for labels, _ in loader])
    assert labels.tolist() == [-100, -100, -100, 8]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_skipped_labels_are_minus_100_in_every_dtype_that_has_it(dtype, make_loader):
    good = png(np.zeros((8, 8, 3), np.uint8))
    items = [(good, dtype(3)), (b"bad", dtype(4)), (b"bad", dtype(5)), (b"bad", dtype(6))]
    loader = make_loader(
        forebay.MapSource(items),
        transforms=RECIPE,
        batch_size=2,
        on_error="skip",
        fields=("label", "valid"),
    )
    first, second = (labels for labels, _ in loader)
    assert (first.tolist(), second.tolist()) == ([3, -100], [-100, -100])
    assert first.dtype == second.dtype == torch.from_numpy(np.zeros(1, dtype)).dtype


@pytest.mark.parametrize("workers", [1, 2])
def test_giving_up_epochs_leaks_nothing(workers, make_loader):
    data = png(np.zeros((8, 8, 3), np.uint8))
    loader = make_loader(
        forebay.MapSource([(data, i) for i in range(24)]),
        transforms=RECIPE,
        batch_size=4,
        num_workers=workers,
        timeout=60,
    )
    for _ in range(150):
        next(iter(loader))
    assert sum(1 for _ in loader) == 6


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("error", [ValueError("bad \udcff name"), Odd()], ids=["text", "none"])
def test_any_exception_is_a_sample_error_and_the_rest_goes_on(error, workers, make_loader):
    class Data:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            if index == 0:
                raise error
            return png(np.zeros((8, 8, 3), np.uint8)), index

    batches = iter(
        make_loader(
            forebay.MapSource(Data()),
            transforms=RECIPE,
            batch_size=1,
            num_workers=workers,
            timeout=60,
        )
    )
    with pytest.raises(forebay.SampleError) as caught:
        next(batches)
    assert caught.value.__cause__ is error
    assert next(batches)[1].tolist() == [1]


def test_an_exit_in_a_thread_is_a_sample_error(make_loader):
    class Data:
        def __len__(self):
            return 2

        def __getitem__(self, index):
            if index == 0:
                raise SystemExit(3)
            return png(np.zeros((8, 8, 3), np.uint8)), index

    batches = iter(
        make_loader(
            forebay.MapSource(Data()), transforms=RECIPE, batch_size=1, num_workers=1, timeout=60
        )
    )
    with pytest.raises(forebay.SampleError):
        next(batches)
    assert next(batches)[1].tolist() == [1]


def test_ctrl_c_inline_loses_no_sample(make_loader):
    class Data:
        interrupted = False

        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 2 and not self.interrupted:
                self.interrupted = True
                signal.raise_signal(signal.SIGINT)
            return png(np.zeros((8, 8, 3), np.uint8)), index

    batches = iter(
        make_loader(
            forebay.MapSource(Data()), transforms=RECIPE, batch_size=4, num_workers=0, timeout=60
        )
    )
    with pytest.raises(KeyboardInterrupt):
        next(batches)
    assert [labels.tolist() for _, labels in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]
