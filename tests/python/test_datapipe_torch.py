"""``.forebay()`` among torch's own: sharding, seeds, length, pickling, DataLoader's workers."""

import copy
import pickle
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, IterDataPipe, get_worker_info
from torch.utils.data.datapipes.iter import IterableWrapper
from torch.utils.data.graph import traverse_dps
from torch.utils.data.graph_settings import apply_random_seed, apply_sharding

import forebay
import forebay.datapipes
from forebay import transforms as T

RECIPE = [T.RandomResizedCrop(24), T.RandomHorizontalFlip()]


def labelled(path):
    """A record with the file's number as its label."""
    return path, int(Path(path).stem)


def labels_of(batch):
    return batch[1].tolist()


def even(path):
    return int(Path(path).stem) % 2 == 0


def without_eight(labels):
    return 8 not in labels


def with_worker(batch):
    return (*batch, get_worker_info().id)


@pytest.fixture
def make(paths):
    def make(shuffle=False, count=64, **keywords):
        keywords.setdefault("batch_size", 8)
        pipe = IterableWrapper(paths[:count])
        pipe = pipe.shuffle() if shuffle else pipe
        return pipe.sharding_filter().map(labelled).forebay(transforms=RECIPE, **keywords)

    return make


def by_label(batches):
    """Each sample's image by its label; fails on a sample that comes twice."""
    found = {}
    for images, labels, *_ in batches:
        for image, label in zip(images, labels.tolist(), strict=True):
            assert label not in found
            found[label] = image.clone()
    return found


def equal(found, expected):
    assert found.keys() == expected.keys()
    return all(torch.equal(found[label], expected[label]) for label in expected)


def test_the_functional_form_is_registered():
    assert "forebay" in IterDataPipe.functions
    assert "forebay" in dir(IterableWrapper([]))


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_apply_sharding_gives_every_record_once_with_its_own_draws(make, paths, shards):  # RNG-1
    expected = by_label(forebay.Loader(forebay.FileList(paths, range(64)), transforms=RECIPE))
    found = {}
    for shard in range(shards):
        pipe = make(rank=shard, world_size=shards)
        apply_sharding(pipe, shards, shard)
        part = by_label(pipe)
        assert sorted(part) == list(range(shard, 64, shards))
        assert len(pipe) == -(-len(part) // 8)
        found |= part
    assert equal(found, expected)


def test_sharding_twice_is_told_by_torch(make):
    pipe = make().sharding_filter()
    with pytest.raises(RuntimeError, match="Sharding twice"):
        apply_sharding(pipe, 2, 0)


def test_the_graph_is_seen_through(make):
    pipe = make(shuffle=True, collate_fn=lambda samples: samples).map(len)
    names = []
    graph = traverse_dps(pipe)
    while graph:
        ((node, graph),) = graph.values()
        names.append(type(node).__name__.removesuffix("IterDataPipe"))
    assert names == ["Mapper", "Forebay", "Mapper", "ShardingFilter", "Shuffler", "IterableWrapper"]


def test_apply_random_seed_makes_iterations_repeat(make):
    def run(seed):
        apply_random_seed(pipe, torch.Generator().manual_seed(seed))
        batches = list(pipe)
        return [labels_of(batch) for batch in batches], by_label(batches)

    pipe = make(shuffle=True)
    first, other, again = run(1), run(2), run(1)
    assert first[0] == again[0] != other[0]
    assert equal(first[1], again[1])
    assert not equal(first[1], other[1])


@pytest.mark.parametrize("seed", ["x", 1.5, None, True])
def test_a_seed_that_is_no_int_is_told_at_once(make, seed):
    with pytest.raises(TypeError, match="seed must be an int, got"):
        make().set_seed(seed)


def test_length_follows_the_pipe_before(make, paths):
    assert [len(make(count=count)) for count in (64, 63, 57, 1)] == [8, 8, 8, 1]
    assert [len(make(count=count, drop_last=True)) for count in (64, 63, 7)] == [8, 7, 0]
    without = IterableWrapper(paths).filter(bool).forebay(transforms=RECIPE)
    with pytest.raises(TypeError, match=r"FilterIterDataPipe.* has no len"):
        len(without)
    assert len(list(without)) == 64


@pytest.mark.parametrize("how", [lambda pipe: pickle.loads(pickle.dumps(pipe)), copy.deepcopy])
@pytest.mark.parametrize("used", [False, True])
def test_a_copy_is_a_pipe_of_its_own(make, how, used):
    pipe = make()
    if used:  # an open pipeline does not go along
        iterator = iter(pipe)
        next(iterator)
    twin = how(pipe)
    assert len(pickle.dumps(pipe)) < 20_000
    assert equal(by_label(twin), by_label(make()))
    if used:
        assert len(list(iterator)) == 7


def test_a_seed_that_waits_goes_along(make):
    pipe = make().set_seed(7)
    expected = by_label(pickle.loads(pickle.dumps(pipe)))
    assert equal(by_label(pipe), expected)
    assert not equal(by_label(make()), expected)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_dataloader_gives_every_record_once(make, num_workers):
    loader = DataLoader(make(shuffle=True), batch_size=None, num_workers=num_workers)
    assert len(loader) == 8
    orders = []
    for _ in range(2):
        batches = list(loader)
        assert sorted(by_label(batches)) == list(range(64))
        orders.append([labels_of(batch) for batch in batches])
    assert orders[0] != orders[1]


def seeded(num_workers, pipe, seed=11, **keywords):
    generator = torch.Generator().manual_seed(seed)
    return DataLoader(
        pipe, batch_size=None, num_workers=num_workers, generator=generator, **keywords
    )


def test_workers_change_no_pixel(make):  # RNG-1
    for seed in (1, 2):
        assert equal(by_label(seeded(0, make(), seed)), by_label(seeded(2, make(), seed)))


@pytest.mark.parametrize("persistent", [False, True])
def test_every_epoch_of_workers_draws_anew_and_can_be_repeated(make, persistent):
    def run():
        loader = seeded(2, make(), persistent_workers=persistent)
        return [by_label(loader) for _ in range(2)]

    first, again = run(), run()
    assert not equal(first[0], first[1])
    assert all(map(equal, first, again))


def test_spawned_workers(make):
    pipe = make(count=16).map(with_worker)
    loader = DataLoader(pipe, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    batches = list(loader)
    assert [labels_of(batch) for batch in batches] == [list(range(8)), list(range(8, 16))]
    assert [worker for *_, worker in batches] == [0, 0]


def test_workers_forked_from_a_process_that_iterates(make):  # LIF-1
    pipe = make()
    iterator = iter(pipe)
    next(iterator)
    forked = DataLoader(copy.copy(pipe), batch_size=None, num_workers=2)
    assert sorted(by_label(forked)) == list(range(64))
    assert sorted(by_label(DataLoader(pipe, batch_size=None, num_workers=2))) == list(range(64))


def test_torchs_pipes_before_and_after(paths):
    source = IterableWrapper(paths).filter(even)
    pipe = source.map(labelled).forebay(transforms=RECIPE, batch_size=4)
    pipe = pipe.map(labels_of).filter(without_eight).unbatch().batch(7)
    assert [list(chunk) for chunk in pipe] == [
        [0, 2, 4, 6, 16, 18, 20],
        [22, 24, 26, 28, 30, 32, 34],
        [36, 38, 40, 42, 44, 46, 48],
        [50, 52, 54, 56, 58, 60, 62],
    ]


def test_two_recipes_of_one_stream(paths):
    left, right = IterableWrapper(paths[:20]).fork(2, buffer_size=50)
    pairs = left.forebay(transforms=[T.Resize((8, 8))], batch_size=5).zip(
        right.forebay(transforms=[T.Resize((4, 4))], batch_size=5)
    )
    assert [(a.shape, b.shape) for a, b in pairs] == [((5, 3, 8, 8), (5, 3, 4, 4))] * 4
