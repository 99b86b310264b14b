"""MEM-1 on a GPU that is full: fewer batches in flight, then an error, and nothing lost."""

import pytest
import torch

import forebay
from forebay import transforms as T
from images import smooth_jpeg

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]


def fill(leave):
    """Takes what is free of the GPU's memory but for about `leave` bytes."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    return torch.empty(max(0, free - leave), dtype=torch.uint8, device="cuda")


@pytest.mark.parametrize("decoders", [None, "cpu"])
def test_next_says_so_and_goes_on_once_there_is_memory(make_loader, photos, decoders):
    def load():
        recipe = [T.RandomResizedCrop(256)]
        keywords = {"device": "cuda", "dtype": torch.float32, "decoders": decoders}
        source = forebay.FileList(photos)
        return make_loader(source, transforms=recipe, batch_size=24, shuffle=True, **keywords)

    with load() as loader:
        expected = [images.cpu() for images in loader]
    iterator = iter(load())
    kept = [next(iterator)]
    got = [kept[0].cpu()]
    blockers = []
    with pytest.raises(torch.OutOfMemoryError):
        while len(got) < len(expected):
            blockers.append(fill(leave=8 << 20))  # also what the loader gives up meanwhile
            kept.append(next(iterator))
            got.append(kept[-1].cpu())
    blockers.clear()
    kept.clear()
    torch.cuda.empty_cache()
    got += [images.cpu() for images in iterator]
    assert len(got) == len(expected)
    assert all(map(torch.equal, got, expected))


@pytest.mark.parametrize("keywords", [{}, {"decoders": {"hardware": 1.0}}, {"decoders": "cpu"}])
@pytest.mark.parametrize("budget", ["1GiB", "100MB"])
def test_batches_may_be_larger_than_all_memory_that_is_kept(
    make_loader, tmp_path, keywords, budget
):
    """A batch of decoded images takes 2.3 GB here, and waits for itself if anything is bounded."""
    path = tmp_path / "large.jpg"
    path.write_bytes(smooth_jpeg(4000, 6000))
    source = forebay.FileList([path] * 64)
    recipe = [T.RandomResizedCrop(16, scale=(0.5, 1.0))]

    def load(**keywords):
        return next(iter(make_loader(source, transforms=recipe, batch_size=64, **keywords)))

    images = load(device="cuda", memory_budget=budget, **keywords)
    assert torch.equal(images.cpu(), load())
