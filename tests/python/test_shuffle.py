"""ORD-1, ORD-2, RNG-1: the shuffle is thorough, and a function of seed and epoch alone."""

import itertools
import json
import math

import pytest
import torch

import forebay
from forebay import transforms as T
from images import flat, jpeg


@pytest.fixture(scope="module")
def dot(tmp_path_factory):
    """The path of a JPEG of one pixel, which costs nothing to load often."""
    path = tmp_path_factory.mktemp("dot") / "dot.jpg"
    path.write_bytes(jpeg(flat(1, 1, 9)))
    return path


@pytest.fixture
def order(make_loader, dot):
    """The indices (or another field) of an epoch."""

    def order(number=0, length=500, field="index", **keywords):
        keywords = {"shuffle": True, "batch_size": 50, **keywords}
        loader = make_loader(
            forebay.FileList([dot] * length), transforms=[T.CenterCrop(1)], fields=field, **keywords
        )
        loader.set_epoch(number)
        return torch.cat(list(loader)).tolist()

    return order


def test_t42_batches_mix_classes_as_a_full_shuffle_does(make_loader, dot):
    """100 classes x 1281 in class order: 92.4 distinct ones in a batch of 256, at least 84."""
    labels = torch.arange(128_100) // 1281
    loader = make_loader(
        forebay.FileList([dot] * len(labels), labels=labels),
        transforms=[T.CenterCrop(1)],
        shuffle=True,
        drop_last=True,
        batch_size=256,
        fields="label",
    )
    distinct = [len(batch.unique()) for batch in loader]
    assert len(distinct) == 500
    mean = sum(distinct) / len(distinct)
    assert 91.9 < mean < 92.9
    # The lowest of 500 batches lies three to four deviations (2.3) below.
    assert min(distinct) >= 82


@pytest.mark.parametrize("length", [1, 2, 3, 64, 65, 97, 128, 501])
def test_every_epoch_is_a_permutation(order, length):
    for number in range(3):
        assert sorted(order(number, length, batch_size=7)) == list(range(length))


def test_t43_the_same_seed_gives_the_same_order_in_another_process(order, run_python, dot):
    program = """
        import json, sys, forebay, torch
        from forebay import transforms as T
        loader = forebay.Loader(
            forebay.FileList([sys.argv[1]] * 500), transforms=[T.CenterCrop(1)], batch_size=25,
            shuffle=True, num_workers=1, seed=int(sys.argv[2]), fields="index")
        print(json.dumps([torch.cat(list(loader)).tolist() for _ in range(3)]))
    """
    for seed in (0, 2**62 + 1):
        process = run_python(program, str(dot), str(seed))
        assert process.returncode == 0, process.stderr
        assert json.loads(process.stdout) == [order(number, seed=seed) for number in range(3)]


def test_t43_seeds_and_epochs_give_orders_of_their_own(order):
    orders = {
        (seed, number): tuple(order(number, seed=seed)) for seed in range(4) for number in range(10)
    }
    assert len(set(orders.values())) == 40
    for first, second in itertools.combinations(orders.values(), 2):
        same = sum(a == b for a, b in zip(first, second, strict=True))
        assert same < 12, "two orders agree in about one place"


def test_t43_the_order_is_one_sequence_whatever_the_threads_and_ranks(order):
    reference = order(3, seed=5)
    for keywords in (
        {"num_workers": 0},
        {"num_workers": 3, "prefetch_factor": 1},
        {"num_workers": 2, "prefetch_factor": 9},
        {"batch_size": 1},
        {"batch_size": 500},
        {"memory_budget": 1},
    ):
        assert order(3, seed=5, **keywords) == reference, keywords
    for world_size, batch_size in ((2, 25), (5, 10), (10, 5)):
        ranks = [
            order(3, seed=5, rank=rank, world_size=world_size, batch_size=batch_size)
            for rank in range(world_size)
        ]
        together = [
            index
            for start in range(0, len(ranks[0]), batch_size)
            for rank in ranks
            for index in rank[start : start + batch_size]
        ]
        assert together == reference, world_size


def test_places_and_epochs_are_uncorrelated(order):
    """A sample's place says nothing about its index, nor about its place in the next epoch."""
    length = 5000
    orders = [torch.tensor(order(number, length)).double() for number in range(3)]
    places = [torch.argsort(sequence).double() for sequence in orders]
    pairs = [(sequence, torch.arange(length).double()) for sequence in orders]
    pairs += [(places[0], places[1]), (places[1], places[2]), (orders[0][:-1], orders[0][1:])]
    for first, second in pairs:
        correlation = torch.corrcoef(torch.stack([first, second]))[0, 1]
        assert abs(correlation) < 4 / math.sqrt(length)


def test_without_shuffle_the_order_is_the_sources(order):
    for number in range(2):
        assert order(number, shuffle=False) == list(range(500))


def test_rng_1_a_sampler_of_the_same_positions_draws_the_same(make_loader, paths):
    """Position = local ordinal x shards + shard, which with batches of one is the built-in order's
    position; so the same samples are augmented alike.
    """

    def images(**keywords):
        loader = make_loader(
            forebay.FileList(paths),
            transforms=[T.RandomResizedCrop(16), T.ColorJitter(0.5)],
            batch_size=1,
            rank=1,
            world_size=2,
            **keywords,
        )
        return torch.cat(list(loader))

    assert torch.equal(images(), images(sampler=range(1, 64, 2)))
    assert not torch.equal(images(), images(sampler=range(1, 64, 2), seed=1))
