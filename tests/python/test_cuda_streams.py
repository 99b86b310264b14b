"""MEM-2 on a GPU: whoever reads a batch, on whatever stream, reads what was written for it.

Every test makes a stream late by `torch.cuda._sleep`, so that what does not wait is early.
"""

import gc

import pytest
import torch

import forebay
from forebay import transforms as T

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

# A tenth of a second at 2 GHz, more below.
CYCLES = 200_000_000
BATCHES, BATCH = 16, 4
# What is seen where something was read or written at the wrong time.
JUNK = 77


@pytest.fixture
def load(make_loader, paths):
    """Makes loaders whose batches are the images of an epoch, always the same."""

    def load(device="cuda", **keywords):
        keywords = {"transforms": [T.RandomResizedCrop(64)], "prefetch_factor": 3} | keywords
        loader = make_loader(
            forebay.FileList(paths), batch_size=BATCH, shuffle=True, device=device, **keywords
        )
        loader.set_epoch(0)
        return loader

    return load


@pytest.fixture
def expected(load):
    """The epoch's images, as the CPU makes them."""
    return torch.stack(list(load("cpu")))


def junk(like, count=BATCHES):
    """As many tensors of a batch's size, which take whatever memory is free."""
    tensors = [torch.full_like(like, JUNK, device="cuda") for _ in range(count)]
    assert tensors[0].dtype == torch.uint8
    return tensors


def assert_untouched(tensors):
    torch.cuda.synchronize()
    assert all(bool((tensor == JUNK).all()) for tensor in tensors)


@pytest.mark.parametrize("target", ["cuda", "cpu"])
def test_memory_that_the_current_stream_still_reads_is_not_written(load, expected, target):
    """Dropped at once and read late, by a kernel or by a non_blocking copy to the host."""
    kept = torch.empty_like(expected, device=target, pin_memory=target == "cpu")
    addresses = set()
    for number, images in enumerate(load()):
        torch.cuda._sleep(CYCLES)
        kept[number].copy_(images, non_blocking=True)
        addresses.add(images.data_ptr())
        del images
    assert len(addresses) < BATCHES, "memory of dropped batches was used again"
    torch.cuda.synchronize()
    assert torch.equal(kept.cpu(), expected)


@pytest.mark.parametrize("target", ["cuda", "cpu"])
def test_memory_that_a_side_stream_still_reads_is_not_written(load, expected, target):
    kept = torch.empty_like(expected, device=target, pin_memory=target == "cpu")
    side = torch.cuda.Stream()
    for number, images in enumerate(load()):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(CYCLES)
            kept[number].copy_(images, non_blocking=True)
        images.record_stream(side)
        del images
    torch.cuda.synchronize()
    assert torch.equal(kept.cpu(), expected)


def test_a_batch_is_read_after_it_was_written(load, expected):
    """Memory of a stream that is late is written late, and the reader waits for that alone."""
    stale = junk(expected[0])
    kept = torch.empty_like(expected[1], device="cuda")
    side = torch.cuda.Stream()
    iterator = iter(load())
    torch.cuda.synchronize()
    del stale  # what is read too early is junk
    torch.cuda._sleep(10 * CYCLES)
    next(iterator)  # takes memory for the batches after it, too
    with torch.cuda.stream(side):
        images = next(iterator)
        kept.copy_(images)
    assert not side.query(), "the batch cannot have been written yet"
    torch.cuda.synchronize()
    assert torch.equal(kept.cpu(), expected[1])


def test_a_batch_taken_on_another_stream_is_not_given_away_while_that_reads(load, expected):
    """Memory of one stream, handed out on another: torch is told by record_stream."""
    kept = torch.empty_like(expected[1], device="cuda")
    side = torch.cuda.Stream()
    iterator = iter(load())
    next(iterator)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        images = next(iterator)
        torch.cuda._sleep(3 * CYCLES)
        kept.copy_(images)
    del images
    others = junk(expected[0])
    assert not side.query(), "the batch is still being read"
    assert_untouched(others)
    assert torch.equal(kept.cpu(), expected[1])


def test_every_batch_on_the_next_of_several_streams(load, expected):
    streams = [torch.cuda.current_stream(), *(torch.cuda.Stream() for _ in range(3))]
    kept = torch.empty_like(expected, device="cuda")
    torch.cuda.synchronize()
    iterator = iter(load(prefetch_factor=6))
    for number in range(BATCHES):
        with torch.cuda.stream(streams[number % 4]):
            images = next(iterator)
            torch.cuda._sleep(CYCLES // 2)
            kept[number].copy_(images)
            del images
    torch.cuda.synchronize()
    assert torch.equal(kept.cpu(), expected)


def test_batches_that_are_written_in_place_change_no_other(load, expected):
    kept = torch.empty_like(expected, device="cuda")
    for number, images in enumerate(load()):
        kept[number].copy_(images)
        torch.cuda._sleep(CYCLES // 4)
        images.fill_(JUNK)
        del images
    torch.cuda.synchronize()
    assert torch.equal(kept.cpu(), expected)


@pytest.mark.parametrize("keywords", [{}, {"decoders": "cpu"}, {"num_workers": 1}])
@pytest.mark.parametrize("end", ["close", "next epoch"])
def test_breaking_off_during_writes_leaves_other_memory_alone(load, expected, end, keywords):
    for _ in range(4):
        loader = load(prefetch_factor=6, **keywords)
        iterator = iter(loader)
        torch.cuda._sleep(CYCLES)
        next(iterator)
        if end == "close":
            loader.close()
        else:
            iterator = iter(loader)
        assert_untouched(junk(expected[0]))
        loader.close()
    assert torch.equal(torch.stack(list(load())).cpu(), expected)


def test_closing_before_the_device_is_done_leaves_other_memory_alone(load, expected):
    """LIF-1: close waits a second, and what is still being written then is given up."""
    loader = load()
    iterator = iter(loader)
    torch.cuda._sleep(30 * CYCLES)
    next(iterator)
    del iterator
    loader.close()
    assert_untouched(junk(expected[0]))


def test_closed_loaders_leave_their_batches(load, expected):
    loader = load()
    batches = list(loader)
    loader.close()
    del loader
    gc.collect()
    others = junk(expected[0])
    assert torch.equal(torch.stack(batches).cpu(), expected)
    assert_untouched(others)
