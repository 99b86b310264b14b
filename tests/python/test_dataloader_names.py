"""What code written for DataLoader reads, passes and does, answered or refused with a sentence."""

import inspect
import pickle

import pytest
import torch
from torch.utils.data import DataLoader

import forebay
from forebay import transforms as T

CROP = [T.CenterCrop(8)]


def test_attributes_are_dataloaders(make_loader, paths):
    generator = torch.Generator().manual_seed(3)
    loader = make_loader(generator=generator, timeout=7, drop_last=True, batch_size=5)
    assert loader.dataset is loader.source
    assert len(loader.dataset) == len(paths)
    own = {"num_workers": 2, "batch_size": 5, "drop_last": True, "timeout": 7.0}
    own |= {"pin_memory": False, "prefetch_factor": 3, "persistent_workers": True}
    own |= {"sampler": None, "batch_sampler": None, "collate_fn": None, "generator": generator}
    assert {name: getattr(loader, name) for name in own} == own
    for name in own:
        assert hasattr(DataLoader([1]), name)


@pytest.mark.parametrize("decoders", [None, "cpu"])
def test_workers_are_known_before_there_are_any(make_loader, device, decoders):
    loader = make_loader(num_workers=None, device=device, decoders=decoders)
    assert loader.num_workers == loader.describe()["workers"] == loader.num_workers


def test_attributes_hold_what_was_given_or_found(make_loader):
    sampler, batches = [1, 2], [[1, 2]]
    assert make_loader(sampler=sampler, collate_fn=list).sampler is sampler
    assert make_loader(collate_fn=list).collate_fn is list
    assert make_loader(batch_sampler=batches, batch_size=1).batch_sampler is batches
    assert make_loader(last_batch="drop").drop_last
    loader = make_loader(num_workers=None, generator=torch.Generator())
    assert loader.num_workers == loader.describe()["workers"]
    assert pickle.loads(pickle.dumps(loader)).generator is None


@pytest.mark.parametrize(
    ("keyword", "words"),
    [
        ("dataset", "the source comes first"),
        ("transform", "transforms=, a list"),
        ("worker_init_fn", "no worker processes .*seed="),
        ("multiprocessing_context", "no worker processes"),
        ("in_order", "always come in order"),
        ("pin_memory_device", "pin_memory=True"),
        ("batchsize", "did you mean batch_size=?"),
        ("foo", "help"),
    ],
)
def test_surplus_keywords_are_told(paths, keyword, words):
    source = () if keyword == "dataset" else (forebay.FileList(paths),)
    with pytest.raises(TypeError, match=f"no keyword {keyword}: .*{words}"):
        forebay.Loader(*source, **{keyword: 1})


def test_other_positions_are_told_and_the_signature_is_the_whole_truth(paths):
    with pytest.raises(TypeError, match="source alone by position, got 2 more; name the others"):
        forebay.Loader(forebay.FileList(paths), 64, True)
    kinds = {p.kind for p in inspect.signature(forebay.Loader).parameters.values()}
    assert kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


def test_a_loader_within_a_dataloader_is_told(make_loader):
    loader = make_loader()
    with pytest.raises(TypeError, match="in place of a DataLoader, not inside one"):
        next(iter(DataLoader(loader)))
    assert len(list(loader)) == 8


@pytest.mark.parametrize(
    ("wrap", "words"),
    [
        (lambda _: {}, "got keys none$"),
        (lambda state: {"loader": state}, r"got keys 'loader'; did you mean state\['loader'\]\?"),
        (lambda _: {"epoch": 1, "model": 3}, "got keys 'epoch', 'model'$"),
    ],
)
def test_what_is_no_state_is_told(make_loader, wrap, words):
    loader = make_loader()
    with pytest.raises(ValueError, match=rf"state must be what state_dict\(\) returned, {words}"):
        loader.load_state_dict(wrap(loader.state_dict()))
