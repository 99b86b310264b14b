"""RES-1: another process, other threads, another number of ranks: the rest is bit-identical."""

import hashlib
import json

import pytest
import torch

import forebay
from forebay import transforms as T

RECIPE = [
    T.RandomResizedCrop(24),
    T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(),
    T.ColorJitter(0.4, 0.4, 0.4, 0.1),
    T.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
]
# 256 samples in batches of four; the state is saved behind batch 37 of epoch 2.
STOP, EPOCH, BATCH = 37, 2, 4


def digest(images, indices):
    data = images.contiguous().numpy().tobytes() + indices.numpy().tobytes()
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def make(make_loader, paths):
    def make(**keywords):
        keywords = {"batch_size": BATCH, "prefetch_factor": 4, "shuffle": True, **keywords}
        if keywords.get("num_workers") == 0:
            del keywords["prefetch_factor"]
        source = forebay.FileList(paths * 4, labels=list(range(256)))
        return make_loader(source, transforms=RECIPE, fields=("image", "index"), **keywords)

    return make


@pytest.fixture
def stopped(make):
    """The state behind batch 37 of epoch 2, and digests of the batches that follow."""
    loader = make()
    loader.set_epoch(EPOCH)
    iterator = iter(loader)
    for _ in range(STOP):
        next(iterator)
    state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["position"]) == (EPOCH, STOP * BATCH)
    rest = [digest(*batch) for batch in iterator]
    assert len(rest) == 64 - STOP
    following = [digest(*batch) for batch in loader]
    return state, rest, following


PROGRAM = """
    import hashlib, json, sys
    import forebay
    from forebay import transforms as T

    state, workers, paths = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    recipe = [
        T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.RandomVerticalFlip(),
        T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
    ]
    loader = forebay.Loader(
        forebay.FileList(paths * 4, labels=list(range(256))), transforms=recipe, batch_size=4,
        shuffle=True, num_workers=workers, fields=("image", "index"))
    loader.load_state_dict(state)
    digests = [
        [
            hashlib.sha256(images.contiguous().numpy().tobytes() + index.numpy().tobytes())
            .hexdigest()
            for images, index in loader
        ]
        for _ in range(2)
    ]
    print(json.dumps(digests))
"""


@pytest.mark.parametrize("workers", [1, 3])
def test_t45_a_new_process_goes_on_bit_for_bit(stopped, run_python, paths, workers):
    state, rest, following = stopped
    process = run_python(PROGRAM, json.dumps(state), str(workers), *paths)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == [rest, following]


@pytest.mark.parametrize("keywords", [{"num_workers": 0}, {"num_workers": 4}, {"memory_budget": 1}])
def test_t45_other_threads_go_on_bit_for_bit(stopped, make, keywords):
    state, rest, following = stopped
    loader = make(**keywords)
    loader.load_state_dict(state)
    assert [digest(*batch) for batch in loader] == rest
    assert [digest(*batch) for batch in loader] == following


def test_the_state_is_small_and_reading_it_reads_no_data(stopped, make):
    state, _, _ = stopped
    assert len(json.dumps(state)) < 200
    loader = make()
    loader.load_state_dict(state)
    assert loader.stats()["read"]["count"] == 0


@pytest.mark.parametrize(("world_size", "batch_size"), [(1, 7), (2, 4), (3, 5), (4, 1)])
def test_another_world_goes_on_with_the_same_sequence(stopped, make, world_size, batch_size):
    """Position by position over the ranks, pixels included; pads aside."""
    state, _, _ = stopped
    reference = make()
    reference.load_state_dict(state)
    images, indices = map(torch.cat, zip(*reference, strict=True))
    ranks = []
    for rank in range(world_size):
        loader = make(rank=rank, world_size=world_size, batch_size=batch_size)
        loader.load_state_dict(state)
        ranks.append(list(loader))
        assert loader.state_dict() == reference.state_dict()
    assert len({len(batches) for batches in ranks}) == 1, "ORD-3"
    steps = [batch for step in zip(*ranks, strict=True) for batch in step]
    got_images, got_indices = map(torch.cat, zip(*steps, strict=True))
    count = len(indices)
    assert got_indices[:count].tolist() == indices.tolist()
    assert torch.equal(got_images[:count], images)
    assert len(got_indices) - count < world_size, "pads complete the last global batch"


@pytest.mark.filterwarnings("ignore:a batch holds padded")
def test_the_world_changes_several_times_within_an_epoch(make):
    reference = make()
    images, indices = map(torch.cat, zip(*reference, strict=True))
    state, parts = None, []
    for world_size, batch_size, steps in ((2, 3, 5), (1, 8, 4), (4, 2, 6), (3, 7, None)):
        loaders = [
            make(rank=rank, world_size=world_size, batch_size=batch_size)
            for rank in range(world_size)
        ]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
        iterators = [iter(loader) for loader in loaders]
        done = 0
        while steps is None or done < steps:
            step = [next(iterator, None) for iterator in iterators]
            if step[0] is None:
                break
            parts += step
            done += 1
        state = loaders[-1].state_dict()
    got_images, got_indices = map(torch.cat, zip(*parts, strict=True))
    assert got_indices[:256].tolist() == indices.tolist()
    assert torch.equal(got_images[:256], images)
    assert (state["epoch"], state["position"]) == (1, 0)


POSITION = 1_000_000


@pytest.mark.parametrize("shuffle", [False, True])
def test_t46_resuming_far_into_an_epoch_opens_few_files(make_loader, paths, shuffle):
    source = forebay.FileList(paths * 20_000)  # 1.28 million
    keywords = {"batch_size": 16, "prefetch_factor": 3, "num_workers": 2, "fields": "index"}
    loader = make_loader(source, shuffle=shuffle, **keywords)
    loader.load_state_dict(loader.state_dict() | {"position": POSITION})
    assert loader.stats()["read"]["count"] == 0
    iterator = iter(loader)
    indices = next(iterator)
    opened = loader.stats()["read"]["count"]
    assert 16 <= opened <= (3 + 1) * 16, "the batch that came, and those in flight behind it"
    assert loader.state_dict()["position"] == POSITION + 16
    if not shuffle:
        assert indices.tolist() == list(range(POSITION, POSITION + 16))


@pytest.mark.parametrize("keywords", [{"shuffle": True}, {"sampler": range(1_280_000)}])
def test_t46_a_dataset_is_asked_for_few_samples(make_loader, paths, keywords):
    calls = []

    class Counting:
        def __len__(self):
            return 1_280_000

        def __getitem__(self, index):
            calls.append(index)
            return paths[index % 64]

    loader = make_loader(
        forebay.MapSource(Counting()), batch_size=16, prefetch_factor=3, fields="index", **keywords
    )
    loader.load_state_dict(loader.state_dict() | {"position": POSITION})
    assert calls == []
    indices = next(iter(loader)).tolist()
    loader.close()
    assert set(indices) <= set(calls)
    assert len(calls) <= (3 + 1) * 16
    if "sampler" in keywords:
        assert indices == list(range(POSITION, POSITION + 16))
