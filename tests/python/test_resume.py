"""RES-1: a loader goes on, bit for bit, where a state was saved."""

import json

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
