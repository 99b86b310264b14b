"""RES-1: a loader goes on, bit for bit, where a state was saved."""

import json

import pytest
import torch
from torch.utils.data import RandomSampler

import forebay
from forebay import transforms as T

RECIPE = [T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.4)]


@pytest.fixture
def make(make_loader):
    def make(**keywords):
        keywords.setdefault("fields", ("image", "index"))
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


def test_t45_in_a_new_process(make, run_python, paths):
    loader = make()
    iterator = iter(loader)
    taken(iterator, 3)
    state = saved(loader)
    images, indices = taken(iterator, 1)
    program = """
        import json, sys, forebay
        from forebay import transforms as T
        loader = forebay.Loader(
            forebay.FileList(sys.argv[2:], labels=list(range(len(sys.argv) - 2))),
            transforms=[T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ColorJitter(0.4)],
            batch_size=8, num_workers=1, shuffle=True, fields=("image", "index"))
        loader.load_state_dict(json.loads(sys.argv[1]))
        images, index = next(iter(loader))
        print(json.dumps([index.tolist(), int(images.long().sum())]))
    """
    process = run_python(program, json.dumps(state), *paths)
    assert json.loads(process.stdout) == [indices, int(images.long().sum())], process.stderr


def test_the_world_may_change_size(make):
    ranks = [make(batch_size=4, rank=rank, world_size=2) for rank in range(2)]
    iterators = [iter(loader) for loader in ranks]
    for iterator in iterators:
        taken(iterator, 3)
    state = saved(ranks[0])
    assert state == saved(ranks[1])
    rest = [taken(iterator) for iterator in iterators]
    alone = make(batch_size=8, rank=0, world_size=1)
    alone.load_state_dict(state)
    _, indices = taken(iter(alone))
    assert sorted(indices) == sorted(rest[0][1] + rest[1][1])


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
    for other in (
        make_loader(forebay.FileList(paths[1:]), transforms=RECIPE),
        make_loader(transforms=[T.CenterCrop(24)]),
    ):
        with pytest.raises(ValueError, match="fingerprint"):
            other.load_state_dict(state)
    with pytest.raises(ValueError, match="version"):
        make().load_state_dict(state | {"version": 99})
    with pytest.raises(ValueError, match="state"):
        make().load_state_dict({"epoch": 1})
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
