"""The Loader's keywords: values, defaults and contradictions are told at once, by name."""

import json
import pickle

import numpy as np
import pytest
import torch

import forebay
from forebay import transforms as T
from forebay.checks import parse_bytes
from forebay.options import EngineOptions, FeedOptions, SampleOptions

CROP = [T.CenterCrop(8)]


@pytest.fixture
def source():
    return forebay.FileList(["a.jpg", "b.jpg"], labels=[0, 1])


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"batch_size": 0}, ValueError, ["batch_size", "0", ">= 1"]),
        ({"batch_size": None}, ValueError, ["batch_size", "None", "batch_sampler"]),
        ({"batch_size": 2.0}, TypeError, ["batch_size", "2.0"]),
        ({"batch_size": np.float64(2)}, TypeError, ["batch_size", "2.0"]),
        ({"batch_size": np.True_}, TypeError, ["batch_size", "True"]),
        ({"batch_size": 1 << 32}, ValueError, ["batch_size", "2^32", "4294967296"]),
        (
            {"batch_size": 1 << 20, "rank": 0, "world_size": 1 << 12},
            ValueError,
            ["batch_size", "2^32", "world_size=4096"],
        ),
        ({"world_size": 1 << 70, "rank": 0}, ValueError, ["world_size"]),
        ({"num_workers": 5000}, ValueError, ["num_workers", "0..4096", "5000"]),
        ({"prefetch_factor": 1 << 40}, ValueError, ["prefetch_factor", "1..4096"]),
        ({"timeout": True}, TypeError, ["timeout", "seconds", "True"]),
        ({"timeout": "1"}, TypeError, ["timeout", "seconds", "'1'"]),
        ({"timeout": float("nan")}, ValueError, ["timeout", "nan"]),
        ({"timeout": 10**400}, ValueError, ["timeout", "1000"]),
        ({"memory_budget": "9" * 400}, ValueError, ["memory_budget"]),
        ({"device": {}}, ValueError, ["device", "{}", "cpu"]),
        ({"device": "gpu"}, ValueError, ["device", "gpu", "cpu"]),
        ({"device": {"image": None}}, ValueError, ["device", "None", "cpu"]),
        ({"deterministic": 1}, TypeError, ["deterministic", "1"]),
        ({"quarantine": 3}, TypeError, ["quarantine", "3"]),
        ({"quarantine": "a\0b"}, ValueError, ["quarantine", r"a\x00b"]),
        ({"mode": True}, ValueError, ["mode", "True", "RGB"]),
        ({"orientation": np.array([1, 2])}, ValueError, ["orientation", "apply"]),
        ({"sampler": [0, 1], "shuffle": True}, ValueError, ["sampler", "shuffle"]),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, ["batch_sampler", "batch_size=2"]),
        ({"batch_sampler": [[0]], "shuffle": True}, ValueError, ["batch_sampler", "shuffle"]),
        ({"batch_sampler": [[0]], "sampler": [0]}, ValueError, ["batch_sampler", "sampler"]),
        ({"batch_sampler": [[0]], "drop_last": True}, ValueError, ["batch_sampler", "drop_last"]),
        ({"sampler": 3}, TypeError, ["sampler", "int"]),
        ({"sampler": [0], "last_batch": "pad"}, ValueError, ["pad", "sampler"]),
        ({"seed": 1, "generator": torch.Generator()}, ValueError, ["generator", "seed=1"]),
        ({"seed": -1}, ValueError, ["seed", "-1"]),
        ({"drop_last": True, "last_batch": "pad"}, ValueError, ["drop_last", "pad"]),
        ({"last_batch": "some"}, ValueError, ["last_batch", "some", "partial"]),
        (
            {"last_batch": "partial", "rank": 0, "world_size": 2},
            ValueError,
            ["partial", "world_size=2", "pad"],
        ),
        ({"rank": 2, "world_size": 2}, ValueError, ["rank", "2", "0..1"]),
        ({"rank": 0}, ValueError, ["rank=0", "world_size=None"]),
        ({"num_workers": -1}, ValueError, ["num_workers", "-1"]),
        ({"num_workers": 0, "prefetch_factor": 2}, ValueError, ["prefetch_factor", "num_workers"]),
        ({"timeout": -1}, ValueError, ["timeout", "-1"]),
        ({"on_error": "ignore"}, ValueError, ["on_error", "ignore", "skip"]),
        ({"memory_budget": "lots"}, ValueError, ["memory_budget", "lots", "2GiB"]),
        ({"device": "mps"}, NotImplementedError, ["device", "mps", "cpu"]),
        ({"device": {"image": "cuda:0", "label": "cuda:1"}}, ValueError, ["device", "cuda:1"]),
        ({"device": "cuda", "decoders": {"npu": 0.8}}, NotImplementedError, ["npu", "cuda"]),
        ({"device": "cuda", "decoders": {"cuda": 0.8, "hardware": 0.3}}, ValueError, ["0.8", "1"]),
        ({"device": "cuda", "decoders": "gpu"}, NotImplementedError, ["decoders", "gpu"]),
        ({"device": "cuda", "decoders": {"hardware": 1.5}}, ValueError, ["decoders", "1.5"]),
        ({"device": "cuda", "decoders": {"hardware": True}}, ValueError, ["decoders", "True"]),
        ({"device": "cuda", "decoders": {}}, ValueError, ["decoders", "hardware"]),
        (
            {"device": "cuda", "decoders": {"hardware": 0.5, "cpu": 0.6}},
            ValueError,
            ["decoders", "0.5", "0.6"],
        ),
        ({"fidelity": "some"}, ValueError, ["fidelity", "some", "full"]),
        ({"mode": "UNCHANGED"}, NotImplementedError, ["mode", "RGB", "decode_images"]),
        ({"decoders": {"hardware": 0.8}}, ValueError, ["decoders", "cuda"]),
        ({"affinity": [0]}, NotImplementedError, ["affinity", "taskset"]),
        ({"orientation": "upright"}, ValueError, ["orientation", "upright", "apply"]),
        ({"truncated": "fill"}, ValueError, ["truncated", "fill", "accept"]),
        ({"max_pixels": 0}, ValueError, ["max_pixels", "0"]),
        ({"max_pixels": 2**70}, ValueError, ["max_pixels", f"in 1..{2**62 - 1}"]),
        ({"max_errors": -1}, ValueError, ["max_errors", "-1"]),
        ({"dtype": torch.int64}, ValueError, ["dtype", "int64", "float16"]),
        ({"dtype": "float32"}, TypeError, ["dtype", "float32"]),
        ({"memory_format": torch.preserve_format}, ValueError, ["memory_format", "channels_last"]),
        ({"fields": ("image", "mask")}, ValueError, ["fields", "mask", "image"]),
        ({"fields": 3}, TypeError, ["fields", "3"]),
        ({"collate_fn": "stack"}, TypeError, ["collate_fn", "str"]),
        ({"worker_init_fn": print}, TypeError, ["worker_init_fn"]),
        ({"transforms": []}, ValueError, ["transforms", "same size", "RandomResizedCrop"]),
        ({"transforms": [T.Resize(256)]}, ValueError, ["Resize", "(height, width)"]),
        ({"transforms": [*CROP, T.Normalize(0, 1), *CROP]}, ValueError, ["became float", "before"]),
        ({"transforms": [*CROP, T.MixUp(num_classes=3)]}, ValueError, ["MixUp", "floats"]),
    ],
)
def test_wrong_keywords_are_named(source, keywords, error, words):
    with pytest.raises(error) as caught:
        forebay.Loader(source, **{"transforms": CROP, **keywords})
    for word in words:
        assert word in str(caught.value)


def test_integers_of_numpys_are_ints(paths):
    options = {
        "transforms": [T.Resize(np.int32(9), max_size=np.int64(20)), T.Crop(*np.arange(4) + 1)],
        "batch_size": np.int64(4),
        "num_workers": np.int16(1),
        "prefetch_factor": np.uint8(2),
        "seed": np.uint32(7),
        "rank": np.int64(0),
        "world_size": np.int64(1),
        "max_pixels": np.int64(10**8),
        "memory_budget": np.int64(1 << 28),
        "max_errors": np.int64(3),
        "timeout": np.float32(60),
    }
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in options.items()
    } | {"transforms": [T.Resize(9, max_size=20), T.Crop(1, 2, 3, 4)]}
    batches = []
    for given in (options, plain):
        with forebay.Loader(forebay.FileList(paths), shuffle=True, **given) as loader:
            loader.set_epoch(np.int64(2))
            batches.append(list(loader))
            assert json.loads(json.dumps(loader.state_dict()))["epoch"] == 3
    assert all(map(torch.equal, *batches))


@pytest.mark.parametrize(("epoch", "error"), [(1.5, TypeError), ("1", TypeError), (-1, ValueError)])
def test_a_wrong_epoch_is_told(source, epoch, error):
    with pytest.raises(error, match="epoch must be an int in 0"):
        forebay.Loader(source, transforms=CROP).set_epoch(epoch)


def test_quarantine_in_a_missing_folder_is_refused(source, tmp_path):
    with pytest.raises(FileNotFoundError, match="quarantine"):
        forebay.Loader(source, transforms=CROP, quarantine=tmp_path / "none" / "bad.jsonl")


def test_a_source_without_length_needs_a_sampler_and_cannot_replace():
    class Stream:
        def __getitem__(self, index):
            return b""

    stream = forebay.MapSource(Stream())
    with pytest.raises(ValueError, match="sampler"):
        forebay.Loader(stream, transforms=CROP)
    with pytest.raises(ValueError, match="replace"):
        forebay.Loader(stream, transforms=CROP, sampler=[0], on_error="replace")


@pytest.mark.parametrize(
    ("source", "advice"),
    [("photos", "ImageFolder"), ([b"x"], "MapSource"), (3, "MapSource")],
)
def test_wrong_sources_are_refused_with_advice(source, advice):
    with pytest.raises(TypeError, match=advice):
        forebay.Loader(source, transforms=CROP)


@pytest.mark.parametrize(
    ("text", "value"),
    [(7, 7), ("2GiB", 2 << 30), ("512MB", 512 << 20), ("1.5k", 1536), ("64 KiB", 65536)],
)
def test_bytes_are_read_from_text(text, value):
    assert parse_bytes("memory_budget", text) == value


def test_accepted_at_their_defaults(source):
    forebay.Loader(
        source,
        transforms=CROP,
        persistent_workers=False,
        deterministic=True,
        decoders="cpu",
        device=torch.device("cpu"),
        fidelity="full",
        sampler=None,
    ).close()


def test_last_batch_follows_drop_last_and_world_size():
    assert FeedOptions().resolved_last_batch(1) == "partial"
    assert FeedOptions().resolved_last_batch(4) == "pad"
    assert FeedOptions(drop_last=True).resolved_last_batch(4) == "drop"
    assert FeedOptions(last_batch="drop").resolved_last_batch(1) == "drop"
    assert FeedOptions(sampler=[0]).resolved_last_batch(4) == "partial"


def test_the_generator_draws_the_seed_and_nothing_else():
    first = FeedOptions(generator=torch.Generator().manual_seed(5)).drawn()
    second = FeedOptions(generator=torch.Generator().manual_seed(5)).drawn()
    assert first == second
    assert first.generator is None
    assert first.seed != FeedOptions(generator=torch.Generator().manual_seed(6)).drawn().seed
    assert FeedOptions().drawn().seed == 0


def test_options_are_frozen_and_pickle():
    for options in (FeedOptions(), SampleOptions(transforms=CROP), EngineOptions()):
        assert pickle.loads(pickle.dumps(options)) == options
        with pytest.raises(AttributeError):
            options.surplus = 1


@pytest.mark.parametrize("device", [{"img": "cuda"}, {"image": "cuda", "key": "cuda"}, {1: "cpu"}])
def test_devices_are_of_fields(make_loader, device):
    with pytest.raises(ValueError, match="device must name some of image, label"):
        make_loader(device=device)


@pytest.mark.parametrize("device", [-1, "cuda:-1", "gpu", None])
def test_devices_that_cannot_be_are_refused(make_loader, device):
    with pytest.raises(ValueError, match="device must be"):
        make_loader(device=device)


def test_one_gpu_may_be_named_in_two_ways(make_loader):
    make_loader(device={"image": "cuda", "label": 0})
    with pytest.raises(ValueError, match="name one GPU"):
        make_loader(device={"image": "cuda:1", "label": 0})
