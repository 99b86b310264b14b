"""``forebay.nodes.LoaderNode``: a Loader among torchdata's nodes, resumed to the batch (RES-1)."""

import copy
import json
import pickle

import pytest
import torch

import forebay
from forebay import transforms as T

nodes = pytest.importorskip("torchdata.nodes", reason="torchdata is not installed")

from forebay.nodes import LoaderNode  # noqa: E402

BATCHES = 8  # of 8, in an epoch of 64


def plain(node):
    return node


def prefetched(node):
    return nodes.Prefetcher(node, prefetch_factor=2)


def rarely_snapshotted(node):
    return nodes.Prefetcher(node, prefetch_factor=3, snapshot_frequency=3)


WRAPPERS = [plain, prefetched, rarely_snapshotted]


@pytest.fixture
def make_node(make_loader):
    def make_node(**keywords):
        keywords.setdefault("shuffle", True)
        keywords.setdefault("fields", ("image", "index"))
        return LoaderNode(make_loader(**keywords))

    return make_node


def same(batches, expected):
    assert [index.tolist() for _, index in batches] == [index.tolist() for _, index in expected]
    return all(
        torch.equal(batch[0], right[0]) for batch, right in zip(batches, expected, strict=True)
    )


@pytest.fixture
def epochs(make_loader):
    loader = make_loader(shuffle=True, fields=("image", "index"))
    return [list(loader) for _ in range(3)]


@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_loader_of_nodes_gives_the_loaders_epochs(make_node, epochs, wrap):
    loader = nodes.Loader(wrap(make_node()))
    for expected in epochs:
        assert same(list(loader), expected)


def test_a_node_alone_goes_on_by_reset(make_node, epochs):
    node = make_node()
    assert same(list(node), epochs[0])
    assert list(node) == []
    node.reset()
    assert same(list(node), epochs[1])
    node.reset(None)
    next(node)
    node.reset()
    next(node)
    assert node.state_dict()["epoch"] == 3


@pytest.mark.parametrize("taken", [0, 1, 5, BATCHES])
@pytest.mark.parametrize("wrap", WRAPPERS)
def test_what_follows_a_saved_state_is_as_if_it_had_not_stopped(make_node, epochs, wrap, taken):
    loader = nodes.Loader(wrap(make_node()))
    iterator = iter(loader)
    assert same([next(iterator) for _ in range(taken)], epochs[0][:taken])
    if taken == BATCHES:
        assert next(iterator, None) is None
    state = json.loads(json.dumps(loader.state_dict()))

    resumed = nodes.Loader(wrap(make_node(num_workers=1)))
    resumed.load_state_dict(state)
    rest = epochs[0][taken:]
    for expected in ([rest] if rest else []) + epochs[1:]:
        assert same(list(resumed), expected)


@pytest.mark.parametrize("taken", range(2 * BATCHES + 4))
@pytest.mark.parametrize("stop", ["CYCLE_UNTIL_ALL_DATASETS_EXHAUSTED", "ALL_DATASETS_EXHAUSTED"])
def test_a_mixture_goes_on_exactly_wherever_it_was_saved(paths, stop, taken):
    def mixture():
        sources = {
            name: forebay.FileList(listed, labels=[number] * len(listed))
            for number, (name, listed) in enumerate({"a": paths[:16], "b": paths[16:24]}.items())
        }
        made = {
            name: LoaderNode(
                forebay.Loader(
                    source, transforms=[T.Resize((8, 8))], batch_size=2, fields=("label", "index")
                )
            )
            for name, source in sources.items()
        }
        weights = {"a": 1.0, "b": 1.0}
        return nodes.MultiNodeWeightedSampler(made, weights, getattr(nodes.StopCriteria, stop))

    def listed(node):
        return [[part.tolist() for part in batch] for batch in node]

    def close(node):
        for source in node.source_nodes.values():
            source.loader.close()

    node, again = mixture(), mixture()
    expected = listed(node)
    begun = [[part.tolist() for part in next(again)] for _ in range(min(taken, len(expected)))]
    resumed = mixture()
    resumed.reset(again.state_dict())
    assert begun + listed(resumed) == expected
    for one in (node, again, resumed):
        close(one)


@pytest.mark.parametrize("json_", [False, True])
def test_a_state_from_an_epochs_end_gives_no_batch_before_the_next_reset(make_node, epochs, json_):
    node = make_node()
    for _ in range(BATCHES):
        next(node)
    state = node.state_dict()
    for resumed in (make_node(), node):
        resumed.reset(json.loads(json.dumps(state)) if json_ else state)
        assert resumed.state_dict() == state
        assert list(resumed) == []
        assert resumed.state_dict() == state
        resumed.reset()
        assert same(list(resumed), epochs[1])


COPIES = [copy.deepcopy, lambda node: pickle.loads(pickle.dumps(node))]


@pytest.mark.parametrize("taken", [None, 0, 1, 5, BATCHES])
@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_goes_on_where_the_node_stands(make_node, epochs, copied, taken):
    node = make_node()
    if taken is not None:
        node.reset()
    for _ in range(taken or 0):
        next(node)
    one, other, third = copied(node), copied(copied(node)), copied(node)
    assert one.state_dict() == node.state_dict()
    for each in (node, one, other):
        assert same(list(each), epochs[0][taken or 0 :])
        each.reset()
        assert same(list(each), epochs[1])
    third.reset()
    assert same(list(third), epochs[taken is not None])
    for each in (one, other, third):
        each.loader.close()


def test_resuming_with_other_batches_gives_the_same_samples(make_node):
    def samples(batches):
        images, index = map(torch.cat, zip(*batches, strict=True))
        return images, index

    node = make_node(batch_size=8)
    first = [next(node) for _ in range(3)]
    state = node.state_dict()
    rest = samples(list(node))
    other = make_node(batch_size=5)
    other.reset(state)
    again = samples(list(other))
    assert all(map(torch.equal, again, rest))
    assert len(torch.cat([index for _, index in first] + [again[1]]).unique()) == 64


def test_the_state_speaks_of_batches_handed_out(make_node):
    node = make_node(prefetch_factor=4)
    assert node.state_dict()["position"] == 0
    for number in range(1, 4):
        next(node)
        assert node.state_dict()["position"] == 8 * number


def test_a_sampler_of_torchs_is_resumed_too(make_node):
    def make():
        sampler = torch.utils.data.RandomSampler(
            range(64), generator=torch.Generator().manual_seed(4)
        )
        return nodes.Loader(make_node(sampler=sampler, shuffle=None))

    whole = [list(make())]
    loader = make()
    iterator = iter(loader)
    for _ in range(3):
        next(iterator)
    resumed = make()
    resumed.load_state_dict(loader.state_dict())
    assert same(list(resumed), whole[0][3:])


def test_a_state_of_other_data_is_refused(make_node, paths):
    state = make_node().state_dict()
    other = LoaderNode(
        forebay.Loader(forebay.FileList(paths[:9]), transforms=[T.Resize((8, 8))], shuffle=True)
    )
    with pytest.raises(ValueError, match=r"fingerprint|other"):
        other.reset(state)
    other.loader.close()


def test_a_bad_sample_is_an_error_and_the_next_batch_follows(make_node, paths, tmp_path):
    source = forebay.FileList([*paths[:10], str(tmp_path / "missing.jpg"), *paths[10:20]])
    node = make_node(source=source, shuffle=False)
    next(node)
    with pytest.raises(forebay.SampleError, match=r"missing\.jpg"):
        next(node)
    assert next(node)[1].tolist() == [16, 17, 18, 19, 20]


def test_nodes_of_torchdata_may_follow(make_node):
    node = nodes.Batcher(nodes.Mapper(make_node(shuffle=False), len), 3, drop_last=False)
    assert list(nodes.Loader(node)) == [[2, 2, 2], [2, 2, 2], [2, 2]]


@pytest.mark.parametrize("wrong", [[1, 2], None])
def test_what_is_no_loader_is_told(wrong):
    with pytest.raises(TypeError, match="IterableWrapper for other iterables"):
        LoaderNode(wrong)


def test_without_torchdata_the_message_says_what_to_install(run_python):
    done = run_python(
        """
        import sys
        sys.modules["torchdata"] = None
        import forebay
        try:
            import forebay.nodes
        except ImportError as error:
            print(error)
        """
    )
    assert done.returncode == 0, done.stderr
    assert "pip install 'torchdata>=0.11'" in done.stdout
