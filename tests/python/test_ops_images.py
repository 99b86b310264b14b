"""``forebay.ops.decode_images``: many images of their own sizes, as a list, nested or padded."""

import numpy as np
import pytest
import torch

from encoded import encoded_tensor
from forebay import ops
from images import jpeg, photo, pillow_rgb, png

SIZES = [(40, 61), (17, 33), (1, 1), (64, 20), (23, 23), (8, 90), (31, 30), (50, 50)]
FILES = [
    (png if place % 3 == 2 else jpeg)(photo(*size, seed=place)) for place, size in enumerate(SIZES)
]


@pytest.fixture(scope="module")
def encoded():
    return [encoded_tensor(data) for data in FILES]


@pytest.fixture(scope="module")
def expected():
    return [torch.from_numpy(pillow_rgb(data).copy()).permute(2, 0, 1) for data in FILES]


def host(images):
    """Of any device, where Pillow's are."""
    return [image.cpu() for image in images]


@pytest.mark.parametrize("threads", [0, 1, 3, 64])
def test_t55_a_list_comes_as_a_list(encoded, expected, device, threads):
    images = ops.decode_images(encoded, threads=threads, device=device)
    assert isinstance(images, list)
    assert [image.dtype for image in images] == [torch.uint8] * 8
    assert {image.device.type for image in images} == {device}
    assert all(image.is_contiguous() for image in images)
    assert all(map(torch.equal, host(images), expected))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_t55_a_list_comes_as_a_nested_tensor(encoded, expected, device):
    nested = ops.decode_images(encoded, layout="nested", device=device)
    assert nested.is_nested
    assert (nested.dtype, nested.device.type) == (torch.uint8, device)
    assert all(map(torch.equal, host(nested.unbind()), expected))


def test_t55_a_list_comes_padded_with_its_sizes(encoded, expected, device):
    batch, sizes = ops.decode_images(encoded, layout="padded", device=device)
    assert batch.shape == (8, 3, 64, 90)
    assert (batch.dtype, batch.device.type) == (torch.uint8, device)
    assert sizes.is_cpu
    assert sizes.tolist() == [list(size) for size in SIZES]
    for image, (height, width), original in zip(batch, SIZES, expected, strict=True):
        assert torch.equal(image[:, :height, :width].cpu(), original)
        image[:, :height, :width] = 0
        assert not image.any()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", ["list", "nested", "padded"])
def test_not_strict_adds_which_are_there(encoded, device, layout):
    items = [encoded[0], encoded[1][:100], encoded[2]]
    images, ok = ops.decode_images(items, layout=layout, strict=False, device=device)
    assert (ok.dtype, ok.device.type) == (torch.bool, "cpu")
    assert ok.tolist() == [True, False, True]
    if layout == "padded":
        batch, sizes = images
        assert batch.shape == (3, 3, 40, 61)
        assert sizes.tolist() == [[40, 61], [0, 0], [1, 1]]
        assert not batch[1].any()
    else:
        listed = images.unbind() if layout == "nested" else images
        assert {image.device.type for image in listed} == {device}
        assert [tuple(image.shape) for image in listed] == [(3, 40, 61), (3, 0, 0), (3, 1, 1)]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_no_images_at_all(device):
    assert ops.decode_images([], device=device) == []
    images, ok = ops.decode_images([], strict=False, device=device)
    assert (images, ok.shape, ok.dtype) == ([], (0,), torch.bool)
    batch, sizes = ops.decode_images([], layout="padded", device=device)
    assert (batch.shape, sizes.shape) == ((0, 3, 0, 0), (0, 2))
    nested = ops.decode_images([], layout="nested", device=device)
    assert nested.size(0) == 0
    assert {batch.device.type, nested.device.type} == {device}


def test_every_bad_item_is_one_of_no_pixels(device):
    items = [encoded_tensor(b""), encoded_tensor(b"no image")]
    keywords = {"layout": "padded", "strict": False, "device": device}
    (batch, sizes), ok = ops.decode_images(items, **keywords)
    assert batch.shape == (2, 3, 0, 0)
    assert not sizes.any()
    assert not ok.any()


@pytest.mark.parametrize("turn", range(1, 9))
def test_orientation_is_applied_or_ignored(device, turn):
    item = encoded_tensor(jpeg(photo(16, 24), orientation=turn))
    for orientation in ("apply", "ignore"):
        keywords = {"orientation": orientation}
        [image] = ops.decode_images([item], device=device, **keywords)
        is_turned = orientation == "apply" and turn > 4
        assert image.shape == ((3, 24, 16) if is_turned else (3, 16, 24))
        assert torch.equal(image.cpu(), ops.decode_image(item, **keywords))


def test_each_image_has_memory_of_its_own(encoded, device):  # MEM-2
    images = ops.decode_images([encoded[0], encoded[0]], device=device)
    images[0].zero_()
    np.testing.assert_array_equal(images[1].cpu().permute(1, 2, 0), pillow_rgb(FILES[0]))


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"encoded": b"bytes"}, TypeError, "list of uint8 tensors, got bytes"),
        ({"encoded": encoded_tensor(FILES[0])}, TypeError, "list of uint8 tensors, got Tensor"),
        ({"encoded": [b"bytes"]}, TypeError, r"encoded\[0\].*got bytes; .*frombuffer"),
        ({"encoded": ["a.jpg"]}, TypeError, r"encoded\[0\].*got str; read the file"),
        ({"encoded": [torch.zeros(4)]}, TypeError, r"encoded\[0\].*float32 \(4,\) on cpu"),
        ({"layout": "ragged"}, ValueError, "layout must be one of"),
        ({"mode": "CMYK"}, ValueError, "mode"),
        ({"mode": None}, ValueError, "mode must be one of .* got None"),
        ({"orientation": True}, ValueError, "orientation must be one of"),
        ({"strict": "no"}, TypeError, "strict must be True or False"),
        ({"encoded": [], "mode": "XX"}, ValueError, "mode must be .* 'XX'"),
        ({"encoded": [], "orientation": True}, ValueError, "orientation"),
        ({"encoded": [], "threads": -3}, ValueError, "threads"),
        ({"encoded": [torch.zeros(8, dtype=torch.uint8)[::2]]}, TypeError, r"encoded\[0\].*conti"),
        ({"orientation": "sideways"}, ValueError, "orientation"),
        ({"threads": -1}, ValueError, "threads must be an int >= 0, got -1"),
        ({"threads": 1.5}, TypeError, "threads"),
        ({"device": None}, ValueError, 'device must be "cpu", "cuda", .*, a number or .* got None'),
        ({"device": "gpu"}, ValueError, 'device must be "cpu" or "cuda", got \'gpu\''),
        ({"device": "mps"}, NotImplementedError, "device='mps' is not offered"),
        ({"encoded": [], "device": torch.device("meta")}, NotImplementedError, "'meta'"),
    ],
)
def test_wrong_arguments_are_named(wrong, error, words):
    arguments = {"encoded": [encoded_tensor(FILES[0])]} | wrong
    with pytest.raises(error, match=words):
        ops.decode_images(arguments.pop("encoded"), **arguments)
