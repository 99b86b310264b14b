"""device=: which field goes where, and what is refused."""

import pickle

import pytest
import torch

import forebay
from forebay import transforms as T

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

FIELDS = ("image", "label", "index", "valid", "size")


@pytest.mark.parametrize("device", ["cuda", "cuda:0", 0, torch.device("cuda"), {"image": "cuda"}])
def test_fields_for_the_host_stay_there(make_loader, device):
    images, labels, *others = next(iter(make_loader(device=device, fields=FIELDS)))
    assert images.device == torch.device("cuda", 0)
    assert labels.is_cuda == (not isinstance(device, dict))
    assert not any(tensor.is_cuda for tensor in others)


def test_every_field_goes_where_it_is_told(make_loader):
    loader = make_loader(device=dict.fromkeys(FIELDS, "cuda"), fields=FIELDS)
    assert all(tensor.is_cuda for tensor in next(iter(loader)))


def test_labels_alone_may_go_to_the_gpu(make_loader):
    images, labels = next(iter(make_loader(device={"label": "cuda"})))
    assert (images.device.type, labels.device.type) == ("cpu", "cuda")


def test_labels_of_any_shape_follow(make_loader, paths):
    labels = torch.rand(64, 5)
    loader = make_loader(forebay.FileList(paths, labels=labels), device="cuda")
    assert torch.equal(torch.cat([got for _, got in loader]).cpu(), labels)


def test_a_gpu_that_is_not_there_is_named(make_loader):
    missing = torch.cuda.device_count()
    with pytest.raises(ValueError, match=f"cuda:{missing}"):
        next(iter(make_loader(device=f"cuda:{missing}")))


def test_describe_names_who_decodes_and_renders(make_loader):
    description = make_loader(device="cuda", decoders="cpu").describe()
    assert (description["decoders"], description["renderer"]) == (["cpu"], "cuda")
    assert description["notes"] == []
    steps = make_loader(device="cuda", transforms=[T.Resize((8, 8))]).describe()["steps"]
    assert steps[2][0] == "decode" and steps[2][1].startswith("cpu")
    assert [where for _, where in steps[3:]] == ["cuda", "cuda", "cuda"]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_shares_are_kept_and_change_nothing(make_loader, photos, engines, workers):
    def run(**keywords):
        keywords = {"device": "cuda", "shuffle": True, "num_workers": workers} | keywords
        loader = make_loader(forebay.FileList(photos), batch_size=32, **keywords)
        images = torch.cat(list(loader))
        return images, {name: each["count"] for name, each in loader.stats()["decoders"].items()}

    expected, counts = run(decoders="cpu")
    assert counts == {"cpu": 360}
    for keywords in (
        {"decoders": {"hardware": 1.0}},
        {"decoders": {"cuda": 1.0}},
        {"decoders": {"cuda": 0.4, "hardware": 0.4}},
        {"decoders": {"cpu": 1}},
        {"deterministic": True},
    ):
        images, counts = run(**keywords)
        again, counts_again = run(**keywords)
        assert torch.equal(images, expected) and torch.equal(images, again)
        assert counts == counts_again, "who decodes depends on nothing but the index"
        if keywords == {"decoders": {"hardware": 1.0}} and engines:
            assert counts["hardware"] > 180, "most are of a kind that they take"
        if keywords == {"decoders": {"cuda": 1.0}}:
            assert counts["cuda"] >= 180


def test_a_loader_pickles_with_its_device(make_loader):
    loader = make_loader(device="cuda", shuffle=True)
    images, _ = next(iter(loader))
    with pickle.loads(pickle.dumps(loader)) as copy:
        assert torch.equal(next(iter(copy))[0], images)


def test_several_loaders_share_a_gpu(make_loader):
    loaders = [make_loader(device="cuda", seed=seed, shuffle=True) for seed in range(3)]
    references = [make_loader(seed=seed, shuffle=True) for seed in range(3)]
    for batches in zip(*loaders, *references, strict=True):
        for (images, _), (expected, _) in zip(batches[:3], batches[3:], strict=True):
            assert torch.equal(images.cpu(), expected)


def test_t53_a_forked_child_is_told_what_to_do(run_python, paths):
    program = """
        import os, sys, forebay
        from forebay import transforms as T
        loader = forebay.Loader(
            forebay.FileList(sys.argv[1:]), transforms=[T.CenterCrop(16)], device="cuda")
        next(iter(loader))
        child = os.fork()
        if child == 0:
            try:
                next(iter(loader))
            except RuntimeError as error:
                os._exit(0 if "spawn" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert next(iter(loader)).is_cuda
    """
    process = run_python(program, *paths)
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize("end", ["", "raise KeyboardInterrupt", "sys.exit(3)"])
def test_t52_the_interpreter_ends_mid_epoch(run_python, paths, end):
    program = f"""
        import sys, forebay
        from forebay import transforms as T
        loader = forebay.Loader(
            forebay.FileList(sys.argv[1:]), transforms=[T.RandomResizedCrop(64)], device="cuda",
            batch_size=4, prefetch_factor=6)
        iterator = iter(loader)
        kept = next(iterator)
        {end}
    """
    process = run_python(program, *paths)
    assert process.returncode == {"": 0, "sys.exit(3)": 3}.get(end, -2), process.stderr
    assert "terminate" not in process.stderr and "Abort" not in process.stderr


def test_a_recipe_without_a_fixed_size_is_refused_as_on_the_cpu(make_loader):
    def error(device):
        with pytest.raises(Exception, match="size") as caught:
            next(iter(make_loader(transforms=[T.Resize(20)], device=device)))
        return type(caught.value), str(caught.value)

    assert error("cuda") == error("cpu")
