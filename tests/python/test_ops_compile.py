"""The ops under ``torch.library.opcheck`` and ``torch.compile(fullgraph=True)``."""

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from encoded import encoded_tensor, packed
from forebay import ops
from images import jpeg, photo

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def items(count, seed=0):
    """JPEGs of a size that differs from call to call."""
    return [
        encoded_tensor(jpeg(photo(30 + 3 * place + seed, 40 + 5 * seed, seed=place)))
        for place in range(count)
    ]


def boxes(count):
    return torch.tensor([[1, 2, 21 + place % 9, 27] for place in range(count)])


def cases():
    listed, (data, offsets) = items(3), packed(items(3))
    damaged = [listed[0], listed[1][:50]]
    crop = ([8, 9], "bilinear", True, "apply")
    images = torch.randint(0, 256, (3, 3, 30, 40), dtype=torch.uint8)
    none, flip = torch.empty(0, dtype=torch.bool), torch.tensor([True, False, True])
    whole = torch.empty((0, 4), dtype=torch.int64)
    last = images.contiguous(memory_format=torch.channels_last)
    normalize = ([8, 9], list(MEAN), list(STD))
    return {
        "decode_images": ("decode_images", (listed, "RGB", "apply", True, 0)),
        "decode_images, damaged": ("decode_images", (damaged, "RGB", "ignore", False, 2)),
        "decode_resized_crop": ("decode_resized_crop", (listed, boxes(3), *crop, True, 0)),
        "decode_resized_crop, damaged": ("decode_resized_crop", (damaged, whole, *crop, False, 1)),
        "packed": ("decode_resized_crop_packed", (data, offsets, boxes(3), *crop, True, 0)),
        "packed, whole": ("decode_resized_crop_packed", (data, offsets, whole, *crop, False, 0)),
        "normalize": (
            "resized_crop_normalize",
            (images, boxes(3), flip, *normalize, torch.float32, "bicubic", True, 0),
        ),
        "normalize, channels_last, half": (
            "resized_crop_normalize",
            (last, whole, none, *normalize, torch.float16, "nearest", False, 1),
        ),
    }


CASES = cases()


@pytest.mark.parametrize("case", CASES)
def test_opcheck(case, device):
    name, arguments = CASES[case]
    op = getattr(torch.ops.forebay, name).default
    if name == "resized_crop_normalize":
        torch.library.opcheck(op, (arguments[0].to(device), *arguments[1:]))
    else:
        torch.library.opcheck(op, arguments, {"device": torch.device(device)})


class Serving(torch.nn.Module):
    """Every op with a device, and what comes of that."""

    def forward(self, data, offsets):
        keywords = {"strict": False, "device": "cuda:0"}
        crops, ok = ops.decode_resized_crop(data, size=8, offsets=offsets, **keywords)
        [image], there = ops.decode_images([data], **keywords)
        listed, _ = ops.decode_resized_crop([data], size=8, **keywords)
        batch = ops.resized_crop_normalize(crops, size=(4, 5), mean=MEAN, std=STD)
        return (crops, image, listed, batch), (ok, there)


def test_a_graph_for_a_gpu_is_traced_without_one():
    program = torch.export.export(Serving(), packed(items(3)))
    [output] = [node for node in program.graph.nodes if node.op == "output"]
    crops, image, listed, batch, *masks = [node.meta["val"] for node in output.args[0]]
    assert {each.device for each in (crops, image, listed, batch)} == {torch.device("cuda", 0)}
    assert batch.shape == (3, 3, 4, 5)
    assert all(mask.is_cpu for mask in masks)


@pytest.fixture
def compiled():
    """Compiles without a break in the graph; the second value counts the compilations."""
    torch._dynamo.reset()

    def compile_(function):
        # Traces with the fake kernels, as inductor does, without a C++ compiler's time.
        counter = CompileCounterWithBackend("aot_eager")
        return torch.compile(function, fullgraph=True, backend=counter), counter

    yield compile_
    torch._dynamo.reset()


def test_packed_crops_compile_at_most_twice(compiled, device):
    def step(data, offsets, where):
        keywords = {"size": (12, 16), "offsets": offsets, "device": device}
        images = ops.decode_resized_crop(data, where, **keywords)
        return images.float().div(255).mean((2, 3))

    run, counter = compiled(step)
    for round_, count in enumerate((3, 5, 8, 2, 13, 4)):
        data, offsets = packed(items(count, seed=round_))
        where = boxes(count)
        assert torch.equal(run(data, offsets, where), step(data, offsets, where))
    assert counter.frame_count <= 2


def test_packed_crops_with_a_mask_compile_at_most_twice(compiled, device):
    def step(data, offsets):
        keywords = {"offsets": offsets, "strict": False, "device": device}
        images, ok = ops.decode_resized_crop(data, size=10, **keywords)
        return images.float().mean((1, 2, 3)) * ok.to(device)

    run, counter = compiled(step)
    for round_, count in enumerate((3, 5, 8, 2)):
        listed = items(count, seed=round_)
        listed[1] = listed[1][:60]
        data, offsets = packed(listed)
        result = run(data, offsets)
        assert torch.equal(result, step(data, offsets))
        assert [place for place, value in enumerate(result.tolist()) if value == 0] == [1]
    assert counter.frame_count <= 2


def test_normalised_crops_compile_at_most_twice(compiled, device):
    def step(images, where, flip):
        options = {"size": (12, 16), "mean": MEAN, "std": STD}
        return ops.resized_crop_normalize(images, where, flip=flip, **options).amax((2, 3))

    run, counter = compiled(step)
    for round_, count in enumerate((3, 5, 8, 2)):
        images = torch.randint(0, 256, (count, 3, 40 + round_, 50 + 3 * round_), dtype=torch.uint8)
        arguments = images.to(device), boxes(count), torch.arange(count) % 2 == 0
        assert torch.equal(run(*arguments), step(*arguments))
    assert counter.frame_count <= 2


def test_lists_compile_at_most_twice_over_files_of_any_size(compiled, device):
    def step(first, second):
        images = ops.decode_images([first, second], device=device)
        batch = ops.decode_resized_crop([first, second], size=6, device=device)
        return [image.float().mean() for image in images], batch

    run, counter = compiled(step)
    for round_ in range(4):
        arguments = items(2, seed=round_)
        (means, batch), (expected, crops) = run(*arguments), step(*arguments)
        assert means == expected
        assert torch.equal(batch, crops)
    assert counter.frame_count <= 2


def test_a_bad_item_in_compiled_code_is_a_readable_error(compiled, device):
    def step(data, offsets):
        return ops.decode_resized_crop(data, size=8, offsets=offsets, device=device) + 1

    run, _ = compiled(step)
    listed = items(2)
    run(*packed(listed))
    with pytest.raises(RuntimeError, match=r"encoded\[1\]: truncated"):
        run(*packed([listed[0], listed[1][:60]]))
