"""RES-1: a loader goes on, bit for bit, where a state was saved."""

import json
import signal
import threading
import time

import pytest
import torch
from torch.utils.data import RandomSampler

import forebay
from forebay import transforms as T

RECIPE = [T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.4)]


@pytest.fixture
def make(make_loader, device):
    def make(**keywords):
        keywords = {"fields": ("image", "index"), "device": device} | keywords
        if "sampler" not in keywords:
            keywords.setdefault("shuffle", True)
        return make_loader(transforms=RECIPE, **keywords)

    return make


def taken(iterator, count=None):
    """Pixels and indices of the next batches, as flat sequences."""
    batches = list(iterator) if count is None else [next(iterator) for _ in range(count)]
    if not batches:
        return torch.empty(0), []
    images, indices = zip(*batches, strict=True)
    return torch.cat(images), torch.cat(indices).tolist()


def saved(loader):
    """The state as a checkpoint keeps it."""
    return json.loads(json.dumps(loader.state_dict()))


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"num_workers": 3, "prefetch_factor": 5},
        {"num_workers": 0},
        {"batch_size": 5},
    ],
)
def test_t45_the_rest_of_the_epoch_is_bit_identical(make, other):
    loader = make(prefetch_factor=4, batch_size=4)
    loader.set_epoch(2)
    iterator = iter(loader)
    taken(iterator, 7)
    state = saved(loader)
    assert (state["epoch"], state["position"]) == (2, 28)
    images, indices = taken(iterator)
    resumed = make(**{"batch_size": 4, **other})
    resumed.load_state_dict(state)
    assert saved(resumed) == state
    got_images, got_indices = taken(iter(resumed))
    assert got_indices == indices
    assert torch.equal(got_images, images)
    following = taken(iter(loader))
    got = taken(iter(resumed))
    assert got[1] == following[1]
    assert torch.equal(got[0], following[0])


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(("before", "after"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_state_goes_on_on_another_device(make_loader, before, after):
    keywords = {"transforms": RECIPE, "shuffle": True, "fields": ("image", "index")}
    loader = make_loader(device=before, **keywords)
    iterator = iter(loader)
    taken(iterator, 3)
    resumed = make_loader(device=after, batch_size=5, **keywords)
    resumed.load_state_dict(saved(loader))
    images, indices = taken(iterator)
    got_images, got_indices = taken(iter(resumed))
    assert got_indices == indices
    assert torch.equal(got_images.cpu(), images.cpu())


def test_states_at_the_edges(make):
    loader = make()
    assert (saved(loader)["epoch"], saved(loader)["position"]) == (0, 0)
    for _ in loader:
        pass
    state = saved(loader)
    assert (state["epoch"], state["position"]) == (1, 0)
    expected = taken(iter(loader))[1]
    resumed = make()
    resumed.load_state_dict(state)
    assert taken(iter(resumed))[1] == expected


class Interrupted(RandomSampler):
    """Raises at its eleventh index, once, in a generator or in an iterator that lives on."""

    def __init__(self, *arguments, lives_on, error, **keywords):
        super().__init__(*arguments, **keywords)
        self.lives_on = lives_on
        self.error = error

    def __iter__(self):
        indices = super().__iter__()
        return self.Living(self, indices) if self.lives_on else self.generator_over(indices)

    def generator_over(self, indices):
        for place, index in enumerate(indices):
            if place == 10:
                self.interrupt()
            yield index

    def interrupt(self):
        error, self.error = self.error, None
        if error is not None:
            raise error

    class Living:
        def __init__(self, sampler, indices):
            self.sampler = sampler
            self.rest = enumerate(indices)
            self.place = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.place += 1
            if self.place == 11:
                self.sampler.interrupt()
            return next(self.rest)[1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("lives_on", [False, True])
def test_the_state_after_an_exception_in_the_sampler_goes_on_with_the_next_batch(
    make, lives_on, error
):
    def sampler(error=None):
        generator = torch.Generator().manual_seed(4)
        return Interrupted(range(32), generator=generator, lives_on=lives_on, error=error)

    expected = taken(iter(make(sampler=sampler(), batch_size=2)))[1]
    loader = make(sampler=sampler(error), batch_size=2)
    iterator, got = iter(loader), []
    with pytest.raises(error):
        while True:
            got += taken(iterator, 1)[1]
    state = saved(loader)
    assert (state["epoch"], state["position"]) == (0, len(got))
    resumed = make(sampler=sampler(), batch_size=2)
    resumed.load_state_dict(state)
    assert got + taken(iter(resumed))[1] == expected
    if error is KeyboardInterrupt and lives_on:
        assert got + taken(iterator)[1] == expected
    elif error is KeyboardInterrupt:
        with pytest.raises(RuntimeError, match="ended at the KeyboardInterrupt"):
            while True:
                got += taken(iterator, 1)[1]
        assert saved(loader)["position"] == len(got) == 10
    else:
        assert got == expected[:10]
        assert list(iterator) == []


def test_the_padded_end_is_the_next_epochs_beginning(make):
    loader = make(batch_size=24, rank=2, world_size=3, fields=("image", "index", "valid"))
    for _ in loader:
        pass
    assert (saved(loader)["epoch"], saved(loader)["position"]) == (1, 0)


def test_set_epoch_names_the_epoch_and_keeps_a_loaded_position(make):
    loader = make()
    loader.set_epoch(5)
    assert (saved(loader)["epoch"], saved(loader)["position"]) == (5, 0)
    iterator = iter(loader)
    taken(iterator, 2)
    state = saved(loader)
    rest = taken(iterator)[1]
    same, other = make(), make()
    same.load_state_dict(state)
    same.set_epoch(5)
    assert taken(iter(same))[1] == rest
    other.load_state_dict(state)
    other.set_epoch(6)
    assert len(taken(iter(other))[1]) == 64


def test_t46_resuming_reads_only_what_comes(make):
    loader = make(batch_size=2, prefetch_factor=2)
    iterator = iter(loader)
    taken(iterator, 25)
    resumed = make(batch_size=2, prefetch_factor=2, num_workers=1)
    resumed.load_state_dict(saved(loader))
    next(iter(resumed))
    assert resumed.stats()["read"]["count"] <= (2 + 1) * 2


def test_t48_a_state_of_something_else_is_refused(make, make_loader, paths):
    state = saved(make())
    labels = list(range(64))
    for other in (
        make_loader(forebay.FileList(paths[1:], labels=labels[1:]), transforms=RECIPE),
        make_loader(forebay.FileList(paths[::-1], labels=labels), transforms=RECIPE),
        make_loader(forebay.FileList(paths, labels=labels[::-1]), transforms=RECIPE),
        make_loader(forebay.MapSource(paths), transforms=RECIPE),
        make_loader(transforms=[T.CenterCrop(24)]),
        make_loader(transforms=[T.RandomResizedCrop(25), *RECIPE[1:]]),
        make_loader(transforms=RECIPE, dtype=torch.float32),
        make_loader(transforms=RECIPE, orientation="ignore"),
        make(shuffle=False),
    ):
        with pytest.raises(ValueError, match="fingerprint"):
            other.load_state_dict(state)
    with pytest.raises(ValueError, match="version"):
        make().load_state_dict(state | {"version": 99})
    for wrong in ({"epoch": 1}, state | {"position": 65}, state | {"position": -1}):
        with pytest.raises(ValueError, match="state"):
            make().load_state_dict(wrong)
    with pytest.raises(TypeError, match="state_dict"):
        make().load_state_dict("state")
    with pytest.raises(ValueError, match="sampler"):
        make(sampler=[0]).load_state_dict(state)


def test_the_seed_comes_with_the_state_unless_one_was_given(make):
    loader = make(seed=11)
    iterator = iter(loader)
    taken(iterator, 2)
    state = saved(loader)
    rest = taken(iterator)[1]
    resumed = make()
    resumed.load_state_dict(state)
    assert taken(iter(resumed))[1] == rest
    with pytest.raises(ValueError, match="seed"):
        make(seed=12).load_state_dict(state)


def test_a_sampler_is_replayed(make):
    def sampler():
        return RandomSampler(range(64), generator=torch.Generator().manual_seed(1))

    loader = make(sampler=sampler())
    iterator = iter(loader)
    taken(iterator, 3)
    state = saved(loader)
    images, indices = taken(iterator)
    resumed = make(sampler=sampler(), num_workers=1)
    resumed.load_state_dict(state)
    got_images, got_indices = taken(iter(resumed))
    assert got_indices == indices
    assert torch.equal(got_images, images)
    assert taken(iter(resumed))[1] == taken(iter(loader))[1]


class Interrupting:
    """A dataset that sends the consumer a signal just before some of its samples are there."""

    def __init__(self, paths, at):
        self.paths, self.at = paths, at
        self.consumer = threading.get_ident()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if index in self.at:
            time.sleep(0.05)  # the consumer waits by now
            signal.pthread_kill(self.consumer, signal.SIGUSR1)
            time.sleep(0.005)
        return self.paths[index], index


@pytest.fixture
def interrupting():
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("interrupting")
def test_res_1_a_signal_while_a_batch_comes_loses_none(make_loader, paths, device):
    source = forebay.MapSource(Interrupting(paths[:12], {2, 3, 7, 11}))
    loader = make_loader(
        source, batch_size=1, num_workers=1, prefetch_factor=1, device=device, fields="label"
    )
    batches, got, states = iter(loader), [], []
    while len(got) < 12:
        try:
            got.append(int(next(batches)))
        except KeyboardInterrupt:
            states.append((len(got), loader.state_dict()["position"]))
    assert got == list(range(12)) and next(batches, None) is None
    assert [count for count, _ in states] == [2, 3, 7, 11]
    assert all(count == position for count, position in states)


@pytest.mark.parametrize("kind", ["list", "sampler", "map"])
def test_res_1_a_signal_while_a_batch_is_shaped_loses_none(
    make_loader, paths, monkeypatch, kind, tmp_path
):
    """Whatever was done until then is done again, and counted once."""
    paths = [*paths[:5], __file__, *paths[6:10]]
    source = forebay.FileList(paths, labels=list(range(10)))
    if kind == "map":
        source = forebay.MapSource(list(zip(paths, range(10), strict=True)))
    log = tmp_path / "bad.jsonl"
    options = {"sampler": list(range(10))} if kind == "sampler" else {}
    loader = make_loader(
        source, batch_size=2, fields=("label", "valid"), on_error="skip", quarantine=log, **options
    )
    shaped, interrupt = forebay.delivery.Delivery._shaped, True

    def interrupted(*arguments):
        nonlocal interrupt
        interrupt = not interrupt
        if not interrupt:
            raise KeyboardInterrupt
        return shaped(*arguments)

    monkeypatch.setattr(forebay.delivery.Delivery, "_shaped", interrupted)
    batches, got, hits = iter(loader), [], 0
    while len(got) < 5:
        try:
            got.append(next(batches)[0].tolist())
        except KeyboardInterrupt:
            hits += 1
            state = loader.state_dict()
            assert (state["epoch"], state["position"]) == (0, 2 * len(got))
    assert got == [[0, 1], [2, 3], [4, -100], [6, 7], [8, 9]] and hits == 5
    assert next(batches, None) is None
    counted = loader.stats()["python"]
    assert (counted["batches"], counted["samples"], counted["failures"]) == (5, 9, 1)
    assert len(log.read_text().splitlines()) == 1
    assert loader.state_dict()["epoch"] == 1


def test_a_full_gpu_loses_no_batch(make_loader, paths, monkeypatch):
    """Labels are placed last, when images are there already."""
    loader = make_loader(forebay.FileList(paths[:4], labels=list(range(4))), batch_size=2)
    place, full = forebay.placement.Placement.place, True

    def placed(*arguments):
        if full:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return place(*arguments)

    monkeypatch.setattr(forebay.placement.Placement, "place", placed)
    batches = iter(loader)
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError):
            next(batches)
    assert loader.state_dict()["position"] == 0
    full = False
    assert [labels.tolist() for _, labels in batches] == [[0, 1], [2, 3]]
