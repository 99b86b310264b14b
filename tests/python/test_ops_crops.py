"""``decode_resized_crop`` and ``resized_crop_normalize``: torchvision v2's pixels, bit for bit."""

import numpy as np
import pytest
import torch

from encoded import encoded_tensor, packed
from forebay import ops
from images import jpeg, photo, png

torchvision = pytest.importorskip("torchvision")
from torchvision.transforms import InterpolationMode  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZES = [(60, 80), (47, 33), (128, 64), (90, 90), (33, 120)]
FILES = [jpeg(photo(*size, seed=place)) for place, size in enumerate(SIZES)]
FILES[3] = png(photo(*SIZES[3], seed=3))
ENCODED = [encoded_tensor(data) for data in FILES]
BOXES = torch.tensor(
    [[5, 7, 61, 40], [0, 0, 33, 47], [10, 100, 11, 128], [31, 2, 90, 17], [40, 0, 41, 1]]
)
FILTERS = ["bilinear", "bicubic", "nearest", "nearest-exact"]


def reference(image, box, size, interpolation="bilinear", antialias=True):
    left, top, right, bottom = box
    return F.resized_crop(
        image,
        top,
        left,
        bottom - top,
        right - left,
        list(size),
        interpolation=InterpolationMode(interpolation),
        antialias=antialias,
    )


def references(size, interpolation="bilinear", antialias=True):
    images = ops.decode_images(ENCODED)
    return torch.stack(
        [
            reference(image, box, size, interpolation, antialias)
            for image, box in zip(images, BOXES.tolist(), strict=True)
        ]
    )


@pytest.mark.parametrize("interpolation", FILTERS)
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("size", [(20, 30), (70, 50)])
def test_crops_equal_torchvisions(device, interpolation, antialias, size):
    keywords = {"interpolation": interpolation, "antialias": antialias}
    batch = ops.decode_resized_crop(ENCODED, BOXES, size=size, device=device, **keywords)
    assert (batch.dtype, batch.device.type) == (torch.uint8, device)
    assert batch.is_contiguous()
    assert torch.equal(batch.cpu(), references(size, **keywords))


def test_items_may_be_packed(device):
    data, offsets = packed(ENCODED)
    keywords = {"size": (20, 30), "device": device}
    batch = ops.decode_resized_crop(data, BOXES, offsets=offsets, **keywords)
    assert torch.equal(batch.cpu(), references((20, 30)))
    part = ops.decode_resized_crop(data, BOXES[2:4], offsets=offsets[2:5], **keywords)
    assert torch.equal(part, batch[2:4])


def test_without_boxes_whole_images_are_resized(device):
    batch = ops.decode_resized_crop(ENCODED, size=24, device=device)
    expected = [
        reference(image, (0, 0, image.shape[2], image.shape[1]), (24, 24))
        for image in ops.decode_images(ENCODED)
    ]
    assert torch.equal(batch.cpu(), torch.stack(expected))


def test_interpolation_may_be_torchvisions():
    keywords = {"size": 9, "interpolation": InterpolationMode.BICUBIC}
    expected = ops.decode_resized_crop(ENCODED, BOXES, size=9, interpolation="bicubic")
    assert torch.equal(ops.decode_resized_crop(ENCODED, BOXES, **keywords), expected)


@pytest.mark.parametrize("turn", range(1, 9))
def test_boxes_are_those_of_the_upright_image(device, turn):
    item = encoded_tensor(jpeg(photo(30, 44), orientation=turn))
    box = torch.tensor([[3, 5, 23, 29]])
    for orientation in ("apply", "ignore"):
        image = ops.decode_image(item, orientation=orientation)
        keywords = {"size": (12, 10), "orientation": orientation, "device": device}
        crop = ops.decode_resized_crop([item], box, **keywords)
        assert torch.equal(crop[0].cpu(), reference(image, box[0].tolist(), (12, 10)))


@pytest.fixture(scope="module")
def images():
    return torch.stack(
        [torch.from_numpy(photo(50, 70, seed)).permute(2, 0, 1) for seed in range(4)]
    )


WHERE = torch.tensor([[0, 0, 70, 50], [10, 3, 60, 50], [5, 5, 6, 6], [33, 20, 70, 41]])
FLIP = torch.tensor([False, True, True, False])


def normalised(images, size, dtype=torch.float32, **keywords):
    out = []
    for image, box, flip in zip(images, WHERE.tolist(), FLIP.tolist(), strict=True):
        crop = reference(image, box, size, **keywords)
        crop = F.horizontal_flip(crop) if flip else crop
        crop = F.normalize(F.to_dtype(crop, torch.float32, scale=True), list(MEAN), list(STD))
        out.append(crop.to(dtype))
    return torch.stack(out)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("interpolation", FILTERS)
def test_normalised_crops_equal_torchvisions(images, device, dtype, interpolation):
    keywords = {"mean": MEAN, "std": STD, "dtype": dtype, "interpolation": interpolation}
    keywords |= {"size": (24, 32), "flip": FLIP}
    batch = ops.resized_crop_normalize(images.to(device), WHERE, **keywords)
    assert (batch.dtype, batch.device.type) == (dtype, device)
    expected = normalised(images, (24, 32), dtype, interpolation=interpolation)
    assert torch.equal(batch.cpu(), expected)


@pytest.mark.parametrize("threads", [0, 1, 9])
def test_memory_formats_give_the_same(images, device, threads):
    keywords = {"size": 20, "mean": MEAN, "std": STD, "threads": threads}
    expected = ops.resized_crop_normalize(images, WHERE, **keywords)
    images = images.to(device)
    planar = ops.resized_crop_normalize(images.contiguous(), WHERE, **keywords)
    assert torch.equal(planar.cpu(), expected)
    last = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(ops.resized_crop_normalize(last, WHERE, **keywords), planar)
    rows = last.permute(0, 2, 3, 1).contiguous()  # (N, H, W, 3)
    assert torch.equal(
        ops.resized_crop_normalize(rows.permute(0, 3, 1, 2), **keywords | {"boxes": WHERE}), planar
    )
    assert planar.is_contiguous()


@pytest.mark.parametrize("count", [1, 3])
def test_a_slice_of_a_batch_is_read_where_it_lies(images, device, count):
    keywords = {"size": 20, "mean": MEAN, "std": STD}
    expected = ops.resized_crop_normalize(images, WHERE, **keywords)[1 : 1 + count]
    for memory_format in (torch.contiguous_format, torch.channels_last):
        part = images.to(device).contiguous(memory_format=memory_format)[1 : 1 + count]
        batch = ops.resized_crop_normalize(part, WHERE[1 : 1 + count], **keywords)
        assert torch.equal(batch.cpu(), expected)


def test_flips_are_what_torch_takes_for_true(device):
    images = torch.stack([torch.from_numpy(photo(8, 8)).permute(2, 0, 1)] * 4).to(device)
    bytes_ = torch.tensor([0, 1, 2, 255], dtype=torch.uint8)
    batches = [
        ops.resized_crop_normalize(images, size=8, mean=MEAN, std=STD, flip=flip)
        for flip in (bytes_.view(torch.bool), bytes_ != 0)
    ]
    assert torch.equal(*batches)


def test_wrong_offsets_of_the_op_say_which():
    data, _ = packed(ENCODED)
    for wrong in ([0, len(data) + 1], [len(data) + 1] * 2, [-1, 4], [0, 9, 8]):
        with pytest.raises(ValueError, match=rf"within 0..{len(data)}, .* got offsets\[\d\] = "):
            ops.decode_resized_crop(data, size=8, offsets=torch.tensor(wrong))


def test_no_items_give_a_batch_of_none(device):
    crops, ok = ops.decode_resized_crop([], size=(4, 6), strict=False, device=device)
    assert (crops.shape, crops.dtype) == ((0, 3, 4, 6), torch.uint8)
    assert (ok.shape, ok.dtype) == ((0,), torch.bool)
    data, offsets = packed([])
    more = ops.decode_resized_crop(data, size=4, offsets=offsets, device=device)
    assert more.shape == (0, 3, 4, 4)
    none = torch.empty(0, 3, 8, 8, dtype=torch.uint8, device=device)
    batch = ops.resized_crop_normalize(none, size=4, mean=MEAN, std=STD)
    assert (batch.shape, batch.dtype) == ((0, 3, 4, 4), torch.float32)
    assert {crops.device.type, more.device.type, batch.device.type} == {device}


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"size": (4, 5, 6)}, ValueError, "size must be"),
        ({"size": (0, 5)}, ValueError, "size must be"),
        ({"size": 70_000}, ValueError, "size must be"),
        ({"boxes": BOXES.int()}, TypeError, "boxes must be a torch.int64 tensor"),
        ({"boxes": [[0, 0, 1, 1]]}, TypeError, "boxes must be .* got list"),
        ({"boxes": BOXES[:2]}, ValueError, r"boxes must be \(5, 4\).*got \(2, 4\)"),
        ({"boxes": BOXES[:0]}, ValueError, r"boxes must be \(5, 4\)"),
        ({"boxes": BOXES.reshape(4, 5)}, ValueError, r"boxes must be \(5, 4\)"),
        ({"interpolation": "lanczos"}, ValueError, "interpolation must be one of bilinear"),
        ({"orientation": "sideways"}, ValueError, "orientation"),
        ({"threads": -1}, ValueError, "threads"),
        ({"size": None}, TypeError, "size must be .* got None"),
        ({"size": 8.5}, TypeError, "size must be .* got 8.5"),
        ({"size": (8, 8.5)}, TypeError, "size must be"),
        ({"size": True}, TypeError, "size must be"),
        ({"size": "88"}, TypeError, "size must be .* got '88'"),
        ({"size": {8, 9}}, TypeError, "size must be"),
        ({"size": [[8], [8]]}, TypeError, "size must be"),
        ({"size": 2**63}, ValueError, "size must be"),
        ({"antialias": "no"}, TypeError, "antialias must be True or False, got 'no'"),
        ({"strict": "no"}, TypeError, "strict must be True or False, got 'no'"),
        ({"orientation": True}, ValueError, "orientation must be one of"),
        ({"threads": None}, TypeError, "threads must be an int >= 0"),
        (
            {"encoded": [*ENCODED[:4], ENCODED[4].repeat(2)[::2]]},
            TypeError,
            r"encoded\[4\] must be contiguous",
        ),
        ({"offsets": torch.tensor([0])}, TypeError, "leave offsets out"),
        ({"encoded": ENCODED[0]}, TypeError, "offsets must say where"),
        ({"device": "mps"}, NotImplementedError, "device='mps' is not offered"),
        ({"device": 1.5}, ValueError, "device must be .* got 1.5"),
    ],
)
def test_wrong_arguments_of_decode_resized_crop(wrong, error, words):
    arguments = {"encoded": ENCODED, "boxes": BOXES, "size": 8} | wrong
    with pytest.raises(error, match=words):
        ops.decode_resized_crop(**arguments)


@pytest.mark.parametrize("offsets", [[], [-1, 10], [0, 20, 10], [0, 10**9], [5, 4]])
def test_wrong_offsets_are_told(offsets):
    data, _ = packed(ENCODED)
    with pytest.raises(ValueError, match="offsets"):
        ops.decode_resized_crop(
            data, size=8, offsets=torch.tensor(offsets, dtype=torch.int64), strict=False
        )


def test_no_offsets_at_all_are_told_with_boxes_too():
    data, none = packed(ENCODED)[0], torch.empty(0, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"offsets must hold one number more .* got none"):
        ops.decode_resized_crop(data, BOXES, size=8, offsets=none)


def test_integers_of_numpys_are_ints():
    expected = ops.decode_resized_crop(ENCODED, size=(8, 9), threads=2)
    for size in ((np.int64(8), np.uint8(9)), np.array([8, 9]), torch.tensor([8, 9])):
        batch = ops.decode_resized_crop(ENCODED, size=size, threads=np.int32(2))
        assert torch.equal(batch, expected)
    assert ops.decode_resized_crop(ENCODED, size=np.int64(8)).shape[2:] == (8, 8)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"images": torch.zeros(2, 3, 8, 8)}, TypeError, "images must be a torch.uint8 tensor"),
        ({"images": torch.zeros(3, 8, 8, dtype=torch.uint8)}, TypeError, "of 4 dimensions"),
        ({"images": torch.zeros(2, 4, 8, 8, dtype=torch.uint8)}, ValueError, "images must be"),
        ({"images": torch.zeros(2, 3, 8, 0, dtype=torch.uint8)}, ValueError, "images must be"),
        ({"images": torch.zeros(2, 3, 8, 16, dtype=torch.uint8)[..., ::2]}, TypeError, "contig"),
        (
            {"images": torch.zeros(2, 3, 8, 8, dtype=torch.uint8, device="meta")},
            TypeError,
            "on the CPU or a GPU, got .* on meta",
        ),
        ({"flip": torch.zeros(3, dtype=torch.bool)}, ValueError, "flip must hold one per image"),
        ({"flip": torch.zeros(2)}, TypeError, "flip must be a torch.bool tensor"),
        ({"flip": True}, TypeError, "flip"),
        ({"mean": (0.5,)}, ValueError, "mean must hold 3 numbers"),
        ({"mean": 0.5}, TypeError, "mean must hold 3 numbers.* got 0.5"),
        ({"mean": None}, TypeError, "mean must hold 3 numbers.* got None"),
        ({"mean": "123"}, TypeError, "mean must hold 3 numbers.* got '123'"),
        ({"mean": ("1", "2", "3")}, TypeError, "mean must hold 3 numbers"),
        ({"mean": (10**400, 0, 0)}, ValueError, "mean must hold 3 numbers"),
        ({"mean": (1e39, 0, 0)}, ValueError, "mean must hold 3 numbers, finite"),
        ({"mean": (float("nan"), 0, 0)}, ValueError, "mean must hold 3 numbers, finite"),
        ({"std": [[1, 1, 1]]}, TypeError, "std must hold 3 numbers"),
        ({"antialias": 1}, TypeError, "antialias must be True or False"),
        ({"std": (0.5, 0.0, 0.5)}, ValueError, "std must be positive"),
        ({"dtype": torch.uint8}, ValueError, "dtype must be one of"),
        ({"dtype": "float32"}, TypeError, "dtype must be one of"),
        ({"boxes": torch.tensor([[0, 0, 8, 8], [0, 0, 9, 8]])}, ValueError, r"images\[1\]: box"),
        ({"boxes": torch.tensor([[0, 0, 0, 8], [0, 0, 8, 8]])}, ValueError, r"images\[0\]: box"),
    ],
)
def test_wrong_arguments_of_resized_crop_normalize(device, wrong, error, words):
    images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    arguments = {"images": images, "size": 4, "mean": MEAN, "std": STD} | wrong
    images = arguments["images"]
    if not images.is_meta and images.is_contiguous():  # a copy would be
        arguments["images"] = images.to(device)
    with pytest.raises(error, match=words):
        ops.resized_crop_normalize(**arguments)
