"""One bad item never spoils the others, and no item's result depends on its neighbours (ERR-1)."""

import random

import pytest
import torch

from encoded import encoded_tensor, packed
from forebay import ops
from images import jpeg, photo, png

GOOD = [
    jpeg(photo(40, 60, seed=1)),
    png(photo(33, 21, seed=2)),
    jpeg(photo(64, 64, seed=3), subsampling=0),
    jpeg(photo(50, 30, seed=4), progressive=True),
    jpeg(photo(30, 50, seed=5), orientation=6),
]
BAD = {
    "empty": b"",
    "no image": b"hello world, this is text",
    "cut off": GOOD[0][: len(GOOD[0]) // 2],
    "cut in the header": GOOD[2][:30],
    "png cut off": GOOD[1][:200],
    "png with a wrong sum": GOOD[1][:60] + bytes([GOOD[1][60] ^ 0xFF]) + GOOD[1][61:],
    "another format": b"RIFF\x24\x00\x00\x00WEBPVP8 " + bytes(24),
}
BOX = [2, 3, 18, 20]


def images(items, **keywords):
    return ops.decode_images(list(map(encoded_tensor, items)), **keywords)


def crops(items, **keywords):
    tensors = list(map(encoded_tensor, items))
    boxes = torch.tensor([BOX] * len(items))
    return ops.decode_resized_crop(tensors, boxes, size=(12, 14), **keywords)


def packed_crops(items, **keywords):
    data, offsets = packed(list(map(encoded_tensor, items)))
    boxes = torch.tensor([BOX] * len(items))
    return ops.decode_resized_crop(data, boxes, size=(12, 14), offsets=offsets, **keywords)


CALLS = [images, crops, packed_crops]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("bad", BAD)
def test_a_bad_item_leaves_the_others_as_they_are(device, call, bad, threads):
    alone = [call([item])[0] for item in GOOD]
    for place in range(len(GOOD) + 1):
        items = [*GOOD[:place], BAD[bad], *GOOD[place:]]
        results, ok = call(items, strict=False, threads=threads, device=device)
        assert ok.tolist() == [number != place for number in range(len(items))]
        results = [result.cpu() for result in results]
        assert not results.pop(place).any()
        assert all(map(torch.equal, results, alone))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("bad", BAD)
def test_strict_names_the_first_bad_item(device, call, bad):
    items = [*GOOD[:3], BAD[bad], GOOD[3], BAD["empty"]]

    def error(device):
        with pytest.raises((ValueError, NotImplementedError), match=r"^encoded\[3\]: ") as caught:
            call(items, threads=4, device=device)
        return type(caught.value), str(caught.value)

    expected = error("cpu")
    for _ in range(3):  # whichever thread is first
        assert error(device) == expected
    assert "encoded[5]" not in expected[1]


@pytest.mark.parametrize("call", CALLS)
def test_results_depend_on_the_item_alone(device, call):
    alone = [call([item])[0] for item in GOOD]
    rng = random.Random(0)
    for count in (2, 7, 30):
        chosen = [rng.randrange(len(GOOD)) for _ in range(count)]
        for threads in (1, 2, 5):
            results = call([GOOD[number] for number in chosen], threads=threads, device=device)
            assert all(
                torch.equal(result.cpu(), alone[number])
                for result, number in zip(results, chosen, strict=True)
            )


def test_a_box_outside_its_image_is_that_items_fault(device):
    items = list(map(encoded_tensor, GOOD))
    boxes = torch.tensor([BOX, [0, 0, 22, 33], BOX, BOX, [-1, 0, 5, 5]])
    batch, ok = ops.decode_resized_crop(items, boxes, size=8, strict=False, device=device)
    assert ok.tolist() == [True, False, True, True, False]
    batch = batch.cpu()
    for place, good in enumerate(ok.tolist()):
        if good:
            alone = ops.decode_resized_crop([items[place]], boxes[place : place + 1], size=8)
            assert torch.equal(batch[place], alone[0])
        else:
            assert not batch[place].any()
    with pytest.raises(ValueError, match=r"^encoded\[1\]: box \(0, 0, 22, 33\)"):
        ops.decode_resized_crop(items, boxes, size=8, device=device)


def test_normalised_images_depend_on_themselves_alone(device):
    batch = torch.stack(
        [torch.from_numpy(photo(30, 40, seed)).permute(2, 0, 1) for seed in range(6)]
    )
    boxes = torch.tensor([[seed, 2, 30 + seed, 29] for seed in range(6)])
    flip = torch.arange(6) % 2 == 0
    options = {"size": (11, 13), "mean": (0.4, 0.5, 0.6), "std": (0.2, 0.3, 0.4)}
    on_device = batch.to(device)
    together = ops.resized_crop_normalize(on_device, boxes, flip=flip, threads=3, **options)
    for place in range(6):
        one = slice(place, place + 1)
        alone = ops.resized_crop_normalize(batch[one], boxes[one], flip=flip[one], **options)
        assert torch.equal(together[one].cpu(), alone)


def test_inputs_are_left_as_they_were(device):
    data, offsets = packed(list(map(encoded_tensor, GOOD)))
    kept = data.clone(), offsets.clone()
    ops.decode_resized_crop(data, size=8, offsets=offsets, device=device)
    assert torch.equal(data, kept[0])
    assert torch.equal(offsets, kept[1])


def test_within_a_dataloader_worker_the_default_is_one_thread(monkeypatch):
    seen = []

    def decode_images(*given, **_):
        seen.append(given[-1])
        return [], None

    monkeypatch.setattr(ops._native, "decode_images", decode_images)
    for inside, asked in [(False, 0), (True, 0), (True, 3)]:
        monkeypatch.setattr(ops, "get_worker_info", lambda inside=inside: inside or None)
        ops.decode_images([encoded_tensor(GOOD[0])], threads=asked)
    assert seen == [0, 1, 3]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_default_device_changes_nothing():
    items = list(map(encoded_tensor, GOOD))
    with torch.device("meta"):
        assert ops.decode_resized_crop(items, size=8).is_cpu
        assert ops.decode_images(items, layout="nested").is_cpu
        assert all(tensor.is_cpu for tensor in ops.decode_images(items, layout="padded"))
        assert ops.decode_images([], strict=False)[1].is_cpu
