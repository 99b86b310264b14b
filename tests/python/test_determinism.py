"""ORD-1 to ORD-3 and RNG-1: the order and every pixel are a function of the seed and the epoch."""

import random

import pytest
import torch

import forebay
from forebay import transforms as T

EVERYTHING = [
    T.RandomResizedCrop(24),
    T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(),
    T.ColorJitter(0.4, 0.4, 0.4, 0.1),
]


@pytest.fixture
def epoch(make_loader, device):
    """All batches of one epoch as (images, indices, valid)."""

    def epoch(number=0, **keywords):
        keywords = {"shuffle": True, "device": device} | keywords
        loader = make_loader(transforms=EVERYTHING, fields=("image", "index", "valid"), **keywords)
        loader.set_epoch(number)
        return list(loader)

    return epoch


def order(batches):
    return [index for _, indices, _ in batches for index in indices.tolist()]


def pixels(batches):
    return torch.cat([images for images, _, _ in batches])


def test_threads_prefetch_and_budget_change_nothing(epoch):
    reference = epoch(num_workers=0)
    for keywords in (
        {"num_workers": 1},
        {"num_workers": 3},
        {"num_workers": 2, "prefetch_factor": 1},
        {"num_workers": 2, "memory_budget": "256KB"},
    ):
        other = epoch(**keywords)
        assert order(other) == order(reference)
        assert torch.equal(pixels(other), pixels(reference)), keywords


def test_batch_size_changes_nothing_but_the_cut(epoch):
    reference = epoch()
    other = epoch(batch_size=13)
    assert order(other) == order(reference)
    assert torch.equal(pixels(other), pixels(reference))


def test_world_size_splits_the_same_sequence(epoch):
    reference = epoch(batch_size=8)
    ranks = [epoch(batch_size=2, rank=rank, world_size=4) for rank in range(4)]
    together = [batch for step in zip(*ranks, strict=True) for batch in step]
    assert order(together) == order(reference)
    assert torch.equal(pixels(together), pixels(reference))


def test_a_sample_is_augmented_anew_in_every_epoch(epoch):
    keywords = {"shuffle": False, "num_workers": 2}
    assert not torch.equal(pixels(epoch(0, **keywords)), pixels(epoch(1, **keywords)))


@pytest.mark.parametrize(
    ("last_batch", "sizes", "samples"), [("drop", [6], 24), ("pad", [6, 1], 26)]
)
def test_t36_ranks_agree_on_batches(paths, make_loader, last_batch, sizes, samples):
    source = forebay.FileList(paths[:26])
    seen = []
    for rank in range(4):
        loader = make_loader(
            source,
            batch_size=6,
            shuffle=True,
            rank=rank,
            world_size=4,
            last_batch=last_batch,
            fields=("index", "valid"),
        )
        batches = list(loader)
        assert [len(index) for index, _ in batches] == sizes
        assert len(loader) == len(sizes)
        seen += [index[valid] for index, valid in batches]
    seen = torch.cat(seen).tolist()
    assert len(seen) == len(set(seen)) == samples
    if last_batch == "pad":
        assert sorted(seen) == list(range(26))


def test_t38_length_is_equal_on_all_ranks_and_in_all_epochs(make_loader):
    class Index:
        def __len__(self):
            return 17_091_657

        def __getitem__(self, index):
            raise AssertionError("nothing is read")

    source = forebay.MapSource(Index())
    for last_batch, expected in (("drop", 14_243), ("pad", 14_244)):
        for rank in range(6):
            loader = make_loader(
                source, batch_size=200, rank=rank, world_size=6, last_batch=last_batch
            )
            for number in range(10):
                loader.set_epoch(number)
                assert len(loader) == expected


def test_t39_every_epoch_holds_each_index_once(epoch):
    for number in range(3):
        size = random.Random(number).randrange(1, 20)
        ranks = [epoch(number, batch_size=size, rank=rank, world_size=3) for rank in range(3)]
        valid = [indices[valid] for batches in ranks for _, indices, valid in batches]
        assert sorted(torch.cat(valid).tolist()) == list(range(64))


def test_padding_without_valid_warns_once(make_loader):
    loader = make_loader(batch_size=24, rank=2, world_size=3, fields="index")
    with pytest.warns(UserWarning, match="valid"):
        for _ in loader:
            pass


def test_rank_and_world_size_come_from_the_launcher(run_python, paths):
    program = """
        import os, sys
        os.environ.update(RANK="1", WORLD_SIZE="2", LOCAL_WORLD_SIZE="2")
        import forebay
        from forebay import transforms as T
        loader = forebay.Loader(
            forebay.FileList(sys.argv[1:]), transforms=[T.CenterCrop(8)], batch_size=4,
            fields="index")
        print(next(iter(loader)).tolist(), loader.describe()["world_size"])
    """
    process = run_python(program, *paths)
    assert process.stdout.strip() == "[4, 5, 6, 7] 2", process.stderr
