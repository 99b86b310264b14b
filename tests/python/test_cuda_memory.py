"""MEM-1 and LIF-2 on a GPU: what is taken is given back, and of the loader's own GPU alone."""

import gc

import pytest
import torch

import forebay
from forebay import transforms as T

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

# What the driver may keep of kernels and handles that come and go.
SLACK = 64 << 20


@pytest.fixture
def load(make_loader, photos):
    def load(**keywords):
        recipe = [T.RandomResizedCrop(128)]
        keywords = {"device": "cuda", "transforms": recipe, "shuffle": True} | keywords
        return make_loader(forebay.FileList(photos), batch_size=32, **keywords)

    return load


def allocated():
    """Bytes of torch's tensors, after everything that was dropped is gone."""
    gc.collect()
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated()


def free():
    """Bytes of the GPU that nobody has."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


@pytest.mark.parametrize("decoders", [None, "cpu"])
def test_torchs_memory_is_as_before_after_close(load, decoders):
    before = allocated()
    loader = load(decoders=decoders)
    for images in loader:
        assert images.is_cuda
    iterator = iter(loader)
    images = next(iterator)
    assert allocated() > before
    loader.close()
    del images, iterator
    assert allocated() == before


def test_an_epoch_that_was_broken_off_gives_its_memory_back(load):
    before = allocated()
    loader = load(prefetch_factor=4)
    for _ in range(10):
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
    del iterator
    loader.close()
    assert allocated() == before


def test_memory_does_not_grow_over_20_epochs(load):
    before, left = allocated(), []
    loader = load(prefetch_factor=4)
    for _ in range(20):
        for images in loader:
            del images
        assert allocated() == before
        left.append(free())
    assert left[-1] >= left[4] - SLACK, left


def test_loaders_that_come_and_go_leave_nothing_on_the_gpu(load):
    left = []
    for _ in range(6):
        loader = load()
        for images in loader:
            del images
        loader.close()
        del loader
        left.append(free())
    assert left[-1] >= left[0] - SLACK, left


def test_batches_in_the_users_hands_do_not_count(load):
    loader = load(memory_budget="1MiB")
    batches = list(loader)
    assert torch.equal(torch.cat(batches).cpu(), torch.cat(list(load(device="cpu"))))


def test_a_budget_below_one_image_goes_on(load):
    assert sum(len(images) for images in load(memory_budget="64KB")) == 360


# Which devices have a primary context, asked without making one.
CONTEXTS = """
    import ctypes, sys
    import torch, forebay
    from forebay import transforms as T
    driver = ctypes.CDLL("libcuda.so.1")
    def contexts():
        found = []
        for number in range(torch.cuda.device_count()):
            flags, active = ctypes.c_uint(), ctypes.c_int()
            code = driver.cuDevicePrimaryCtxGetState(
                number, ctypes.byref(flags), ctypes.byref(active))
            assert code in (0, 3), code  # 3: the driver has not been initialised
            if code == 0 and active.value:
                found.append(number)
        return found
    device, *paths = sys.argv[1:]
    assert contexts() == []
    loader = forebay.Loader(
        forebay.FileList(paths, labels=list(range(len(paths)))), device=device, batch_size=8,
        transforms=[T.RandomResizedCrop(64)])
    assert contexts() == [], "constructing touches nothing"
    for _ in range(2):
        for images, labels in loader:
            images.sum() + labels.sum()
    torch.cuda.synchronize(device)
    loader.close()
    print(contexts())
"""


@pytest.mark.parametrize("number", [0, 1])
def test_t51_only_the_loaders_own_gpu_gets_a_context(run_python, photos, number):
    count = torch.cuda.device_count()
    if number >= count or (number == 0 and count == 1):
        pytest.skip(f"needs several GPUs, torch sees {count}")
    process = run_python(CONTEXTS, f"cuda:{number}", *photos[:64])
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == f"[{number}]"


@pytest.mark.parametrize("number", [0, 1])
def test_batches_are_right_on_every_gpu(make_loader, photos, number):
    if number >= torch.cuda.device_count():
        pytest.skip(f"needs several GPUs, torch sees {torch.cuda.device_count()}")
    keywords = {"transforms": [T.RandomResizedCrop(64)], "shuffle": True, "batch_size": 32}
    loader = make_loader(forebay.FileList(photos), device=f"cuda:{number}", **keywords)
    for images, expected in zip(
        loader, make_loader(forebay.FileList(photos), **keywords), strict=True
    ):
        assert images.device == torch.device("cuda", number)
        assert torch.equal(images.cpu(), expected)
