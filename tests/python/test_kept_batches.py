"""MEM-2: a tensor handed out is never written again until it is freed."""

import gc
import hashlib
import os

import pytest
import torch

import forebay
from forebay import ops
from forebay import transforms as T
from images import jpeg, photo


def digest(tensor):
    return hashlib.sha256(tensor.contiguous().cpu().numpy().tobytes()).hexdigest()


@pytest.mark.parametrize(
    "keywords",
    [
        {"num_workers": 0},
        {"num_workers": 3, "prefetch_factor": 1},
        {"num_workers": 3, "prefetch_factor": 6, "memory_budget": "64KB"},
        {"num_workers": 2, "memory_format": torch.channels_last, "dtype": torch.float16},
    ],
)
def test_all_batches_of_two_epochs_stay_as_they_were(make_loader, device, keywords):
    fields = ("image", "label", "index", "valid", "size")
    loader = make_loader(shuffle=True, batch_size=4, fields=fields, device=device, **keywords)
    kept = []
    for _ in range(2):
        for batch in loader:
            kept.append((batch, [digest(tensor) for tensor in batch]))
    assert len(kept) == 32
    for batch, digests in kept:
        assert [digest(tensor) for tensor in batch] == digests
    loader.close()
    del loader
    gc.collect()
    for batch, digests in kept:
        assert [digest(tensor) for tensor in batch] == digests, "after close"


def test_memory_is_reused_only_when_nothing_looks_at_it(make_loader):
    """Views, arrays and labels alone keep a batch's memory, while others' is reused."""
    views = {
        "sample": lambda batch: batch[0][3],
        "flat": lambda batch: batch[0].view(-1)[100:200],
        "array": lambda batch: batch[0].numpy(),
        "labels": lambda batch: batch[1],
        "detached": lambda batch: batch[0].detach().permute(0, 2, 3, 1),
        "nothing": None,
    }
    loader = make_loader(shuffle=True, batch_size=4, prefetch_factor=2, num_workers=3)
    kept, addresses = [], []
    for _ in range(6):
        for number, batch in enumerate(loader):
            addresses.append(batch[0].data_ptr())
            view = list(views.values())[number % len(views)]
            if view is not None:
                value = view(batch)
                kept.append((value, digest(torch.as_tensor(value))))
            del batch
    for value, expected in kept:
        assert digest(torch.as_tensor(value)) == expected
    assert len(set(addresses)) < len(addresses), "memory of dropped batches was reused"


def test_changing_a_batch_in_place_changes_no_other(make_loader, device):
    reference = [images.clone() for images, _ in make_loader(shuffle=True, device=device)]
    loader = make_loader(shuffle=True, prefetch_factor=1, device=device)
    for number, (images, labels) in enumerate(loader):
        assert torch.equal(images, reference[number])
        images.fill_(7)
        labels.fill_(-7)
        del images, labels
    loader.set_epoch(0)
    for (images, labels), expected in zip(loader, reference, strict=True):
        assert torch.equal(images, expected)
        assert labels.min() >= 0, "labels come from the source, not from the batch"


def test_batches_outlive_their_loader_in_a_fresh_process(run_python, paths):
    program = """
        import gc, sys, forebay
        from forebay import transforms as T
        loader = forebay.Loader(
            forebay.FileList(sys.argv[1:]), transforms=[T.CenterCrop(16)], batch_size=8,
            num_workers=2)
        kept = list(loader)
        sums = [int(images.long().sum()) for images in kept]
        del loader
        gc.collect()
        again = list(forebay.Loader(
            forebay.FileList(sys.argv[1:]), transforms=[T.CenterCrop(16)], batch_size=8))
        assert [int(images.long().sum()) for images in kept] == sums
        del again
        # The rest is freed by the interpreter's exit.
    """
    process = run_python(program, *paths)
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_may_read_and_free_batches(make_loader):
    loader = make_loader(batch_size=4)
    iterator = iter(loader)
    images, _ = next(iterator)
    expected = digest(images)
    child = os.fork()
    if child == 0:
        same = digest(images) == expected
        del images
        gc.collect()
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(iterator)) == 15
    assert digest(images) == expected


def test_decoded_images_have_memory_of_their_own():
    encoded = [jpeg(photo(20, 20, seed)) for seed in range(20)]
    tensors = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in encoded]
    images = [ops.decode_image(tensor) for tensor in tensors]
    digests = list(map(digest, images))
    for tensor in tensors:
        tensor.zero_()
    for seed in range(50):
        data = bytearray(jpeg(photo(20, 20, 100 + seed)))
        ops.decode_image(torch.frombuffer(data, dtype=torch.uint8))
    assert list(map(digest, images)) == digests


def test_labels_of_a_batch_are_not_the_sources(make_loader, paths):
    column = torch.arange(64)
    loader = make_loader(forebay.FileList(paths, labels=column), transforms=[T.CenterCrop(8)])
    for _, labels in loader:
        labels.add_(1000)
    assert torch.equal(column, torch.arange(64))
    assert next(iter(loader))[1].tolist() == list(range(8))
