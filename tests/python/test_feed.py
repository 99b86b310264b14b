"""Feeds from Python: what a sampler says becomes batches of indices, and can be resumed (RES-1)."""

import random

import pytest
import torch
from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, WeightedRandomSampler

from forebay.feed import PushedFeed
from forebay.options import FeedOptions

LENGTH = 20


class Wire:
    """Takes batches as the core does, at most ``depth`` ahead."""

    def __init__(self, depth=3):
        self.depth = depth
        self.queue = []
        self.ended = False

    def feed_wanted(self):
        return self.depth - len(self.queue)

    def feed(self, indices):
        assert not self.ended
        self.queue.append(indices.tolist())

    def feed_end(self):
        assert not self.ended
        self.ended = True


class Counting:
    """A sampler that keeps its own state."""

    def __init__(self):
        self.place = 0

    def __iter__(self):
        while self.place < LENGTH:
            self.place += 1
            yield self.place - 1
        self.place = 0

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


def make(**keywords):
    return PushedFeed(FeedOptions(**keywords), lambda: LENGTH)


def batches(feed, position=0, saved=None, stop=None):
    """Batches that are handed out until the end, or until ``stop`` of them were."""
    wire, out = Wire(), []
    feed.begin(position, saved)
    while stop is None or len(out) < stop:
        feed.pump(wire)
        if not wire.queue:
            assert wire.ended
            break
        out.append(wire.queue.pop(0))
        feed.delivered()
    return out


@pytest.mark.parametrize(("drop_last", "last"), [(True, [3, 4, 5]), (False, [6])])
def test_a_sampler_is_cut_into_batches(drop_last, last):
    feed = make(sampler=range(7), batch_size=3, drop_last=drop_last)
    assert batches(feed)[-1] == last
    assert len(feed) == len(batches(feed))


def test_a_batch_sampler_makes_the_batches():
    feed = make(batch_sampler=BatchSampler(SequentialSampler(range(7)), 3, drop_last=False))
    assert batches(feed) == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(feed) == 3


def test_the_last_batch_is_known_when_it_is_pushed():
    feed, wire = make(sampler=range(4), batch_size=2), Wire(depth=2)
    feed.begin(0, None)
    feed.pump(wire)
    assert wire.queue == [[0, 1], [2, 3]]
    assert wire.ended


@pytest.mark.parametrize(
    ("sampler", "error", "words"),
    [
        ([0, LENGTH], IndexError, "0..19, got 20"),
        ([-1], IndexError, "got -1"),
        (["a"], TypeError, "ints"),
        ([0.5], TypeError, "ints"),
    ],
)
def test_wrong_indices_are_told(sampler, error, words):
    with pytest.raises(error, match=words):
        batches(make(sampler=sampler))


def test_an_empty_batch_is_told():
    with pytest.raises(ValueError, match="empty batch"):
        batches(make(batch_sampler=[[0], []]))


def test_what_the_sampler_raises_comes_after_the_batches_before_it():
    def broken():
        yield 0
        yield 1
        raise OSError("no more")

    feed, wire = make(sampler=broken(), batch_size=1), Wire()
    feed.begin(0, None)
    feed.pump(wire)
    assert wire.queue == [[0], [1]]
    for _ in range(2):
        assert not wire.ended  # the epoch is not complete, so its state may not say so
        feed.delivered()
        if feed._pushed:
            feed.pump(wire)
    with pytest.raises(OSError, match="no more"):
        feed.pump(wire)
    assert not wire.ended
    feed.pump(wire)
    assert wire.ended


class Interrupted:
    """An iterator of indices, or of batches, that Ctrl-C meets once before item ``at``."""

    def __init__(self, items, at):
        self.items = iter(items)
        self.at = at
        self.given = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.given == self.at:
            self.at = None
            raise KeyboardInterrupt
        self.given += 1
        return next(self.items)


INTERRUPTED = {
    "sampler": lambda at: {"sampler": Interrupted(range(7), at), "batch_size": 2},
    "batch_sampler": lambda at: {"batch_sampler": Interrupted([[0, 1], [2, 3], [4, 5], [6]], at)},
    "a batch": lambda at: {
        "batch_sampler": [[0, 1], Interrupted([2, 3], at % 2), iter([4, 5]), [6]]
    },
}


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("where", INTERRUPTED)
def test_ctrl_c_in_the_sampler_is_raised_and_loses_no_batch(where, at):
    feed, wire, out, raised = make(**INTERRUPTED[where](at)), Wire(), [], 0
    for _ in range(2):  # at the first index, beginning is what is interrupted
        try:
            feed.begin(0, None)
            break
        except KeyboardInterrupt:
            raised += 1
    while wire.queue or not wire.ended:
        try:
            feed.pump(wire)
        except KeyboardInterrupt:
            raised += 1
            continue
        if wire.queue:
            out.append(wire.queue.pop(0))
            feed.delivered()
    assert out == [[0, 1], [2, 3], [4, 5], [6]]
    assert raised == 1


def test_a_generator_that_ctrl_c_ended_is_no_end_of_the_epoch():
    def sampler():
        yield from range(5)
        raise KeyboardInterrupt

    feed, wire = make(sampler=sampler(), batch_size=2), Wire()
    feed.begin(0, None)
    with pytest.raises(KeyboardInterrupt):
        feed.pump(wire)
    feed.pump(wire)
    assert wire.queue == [[0, 1], [2, 3]]
    for _ in wire.queue:
        feed.delivered()
    with pytest.raises(RuntimeError, match="ended at the KeyboardInterrupt") as caught:
        feed.pump(wire)
    assert isinstance(caught.value.__cause__, KeyboardInterrupt)
    assert not wire.ended


def test_a_batch_that_is_none_is_no_end():
    with pytest.raises(TypeError, match="ints"):
        batches(make(batch_sampler=[[1], None, [2]]))


def test_batches_that_are_iterators_resume():
    def fresh():
        return make(batch_sampler=[iter([0, 1]), iter([2]), iter([3, 4])])

    assert batches(fresh(), position=3, saved=fresh().state(running=False)) == [[3, 4]]


def test_a_state_taken_before_the_first_batch_is_exact():
    sampler = {"sampler": RandomSampler(range(LENGTH)), "batch_size": 3}
    torch.manual_seed(1)
    first = make(**sampler)
    first.begin(0, None)
    state = first.state(running=True)
    torch.manual_seed(1)
    expected = batches(make(**sampler))
    torch.manual_seed(2)
    assert batches(make(**sampler), saved=state) == expected


def generator():
    return torch.Generator().manual_seed(3)


SAMPLERS = {
    "own generator": lambda: {
        "sampler": RandomSampler(range(LENGTH), generator=generator()),
        "batch_size": 3,
    },
    "torch's generator": lambda: {"sampler": RandomSampler(range(LENGTH)), "batch_size": 3},
    "with replacement": lambda: {
        "sampler": WeightedRandomSampler([1.0] * LENGTH, LENGTH, generator=generator()),
        "batch_size": 3,
    },
    "batch sampler": lambda: {
        "batch_sampler": BatchSampler(
            RandomSampler(range(LENGTH), generator=generator()), 3, drop_last=False
        )
    },
    "stateful": lambda: {"sampler": Counting(), "batch_size": 3},
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_resumed_epoch_goes_on_as_if_it_had_not_stopped(name):
    torch.manual_seed(0)
    first = make(**SAMPLERS[name]())
    whole = batches(first)
    torch.manual_seed(0)
    stopped = make(**SAMPLERS[name]())
    begun = batches(stopped, stop=3)
    state = stopped.state(running=True)
    torch.manual_seed(random.randrange(1 << 30))
    resumed = make(**SAMPLERS[name]())
    assert begun + batches(resumed, position=9, saved=state) == whole


@pytest.mark.parametrize("name", ["own generator", "with replacement", "batch sampler"])
def test_the_next_epoch_after_a_state_at_the_end_is_the_same(name):
    first = make(**SAMPLERS[name]())
    batches(first)
    state = first.state(running=False)
    expected = batches(first)
    assert batches(make(**SAMPLERS[name]()), saved=state) == expected


def test_set_epoch_reaches_the_sampler_and_the_state():
    from torch.utils.data import DistributedSampler

    def sampler():
        return DistributedSampler(range(LENGTH), num_replicas=2, rank=0)

    feed = make(sampler=sampler(), batch_size=2)
    feed.set_epoch(4)
    expected = batches(feed)
    begun = batches(feed, stop=2)
    resumed = batches(
        make(sampler=sampler(), batch_size=2), position=4, saved=feed.state(running=True)
    )
    assert begun + resumed == expected


def test_a_position_within_a_batch_is_refused():
    with pytest.raises(ValueError, match="position 4"):
        batches(make(batch_sampler=[[0, 1, 2], [3, 4, 5]]), position=4, saved={"rng": None})
