"""T53, LIF-1: after a fork the child works or is told, and the parent goes on; nothing hangs."""

import os
import time
import zlib

import pytest
import torch

import forebay
from conftest import HANG_S, full
from forebay import ops
from forebay import transforms as T

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def in_child(action):
    """Runs an action in a forked child; the child's pid. It ends with 0 if nothing is raised."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    return child


def joined(child):
    deadline = time.monotonic() + HANG_S
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    return os.waitstatus_to_exitcode(done[1])


@pytest.fixture(params=["files", "map", "inline", "sampler"])
def loader(request, make_loader, paths):
    keywords = {
        "files": {"shuffle": True},
        "map": {"source": forebay.MapSource(paths), "shuffle": True},
        "inline": {"num_workers": 0},
        "sampler": {"sampler": range(64)},
    }[request.param]
    return make_loader(fields="index", **keywords)


def test_t53_an_open_iterator_is_told_and_a_new_one_works(loader):
    iterator = iter(loader)
    next(iterator)

    def child():
        with pytest.raises(forebay.ClosedError, match="fork"):
            next(iterator)
        assert len(list(loader)) == 8
        assert loader.state_dict()["position"] == 0
        loader.close()
        with pytest.raises(forebay.ClosedError):
            iter(loader)

    assert joined(in_child(child)) == 0
    assert len(list(iterator)) == 7, "the parent goes on"
    assert len(list(loader)) == 8


def test_the_child_delivers_what_the_parent_would(make_loader):
    loader = make_loader(shuffle=True, batch_size=8)
    next(iter(loader))
    loader.set_epoch(3)
    reader, writer = os.pipe()

    def checksum():
        # Not by torch: what it computes in parallel hangs in a child of a process that did so.
        sums = [zlib.crc32(images.numpy()) for images, _ in loader]
        return zlib.crc32(repr(sums).encode()).to_bytes(4, "big")

    assert joined(in_child(lambda: os.write(writer, checksum()))) == 0
    assert os.read(reader, 4) == checksum()
    os.close(reader), os.close(writer)


@pytest.mark.parametrize("repeats", [20, full(200)])
def test_t53_forks_while_threads_are_busy(make_loader, paths, repeats):
    """The locks of the parent's threads may be held at the moment of the fork."""
    loader = make_loader(batch_size=4, num_workers=3, prefetch_factor=4, fields="index")
    encoded = torch.frombuffer(bytearray(open(paths[0], "rb").read()), dtype=torch.uint8)
    expected = ops.decode_image(encoded)

    def child():
        assert torch.equal(ops.decode_image(encoded), expected)
        assert len(next(iter(loader))) == 4
        loader.close()

    children = []
    while len(children) < repeats:
        for number, _ in enumerate(loader):
            if number % 4 == 1 and len(children) < repeats:
                children.append(in_child(child))
    assert [joined(child) for child in children] == [0] * repeats
    assert len(list(loader)) == 16


def test_a_child_of_a_child(make_loader):
    loader = make_loader(fields="index")
    next(iter(loader))

    def grandchild():
        assert len(list(loader)) == 8

    def child():
        next(iter(loader))
        assert joined(in_child(grandchild)) == 0
        assert len(list(loader)) == 8

    assert joined(in_child(child)) == 0


def test_a_loader_that_was_not_used_works_on_both_sides(make_loader):
    loader = make_loader(fields="index")
    assert joined(in_child(lambda: list(loader))) == 0
    assert len(list(loader)) == 8


def test_dropping_inherited_loaders_and_scans_in_the_child(make_loader, folder):
    source = forebay.ImageFolder(folder)
    len(source)
    loader = make_loader(source, transforms=[T.CenterCrop(8)])
    iterator = iter(loader)
    batch = next(iterator)

    def child():
        nonlocal loader, iterator, batch
        del loader, iterator, batch
        assert len(forebay.ImageFolder(folder)) == 64

    assert joined(in_child(child)) == 0
    assert len(list(iterator)) == 7


def test_pools_of_processes(run_python, paths):
    program = """
        import multiprocessing, sys, torch, forebay
        from forebay import ops, transforms as T

        def load(seed):
            with forebay.Loader(
                forebay.FileList(sys.argv[1:]), transforms=[T.CenterCrop(8)], batch_size=8,
                num_workers=1, seed=seed, shuffle=True, fields="index"
            ) as loader:
                return torch.cat(list(loader)).tolist()

        if __name__ == "__main__":
            here = [load(seed) for seed in range(4)]
            for context, processes in (("fork", 2), ("spawn", 1)):
                with multiprocessing.get_context(context).Pool(processes) as pool:
                    assert pool.map(load, range(4)) == here, context
            print("done")
    """
    process = run_python(program, *paths)
    assert process.stdout == "done\n", process.stderr
