"""MapSource: the user's dataset in Python names, reads and labels; Forebay decodes."""

import threading
import time
from pathlib import Path

import pytest
import torch

import forebay
from forebay import transforms as T
from images import flat, jpeg

COUNT = 30


class Bytes:
    """Encoded bytes of one grey value each, with the value as the label."""

    def __init__(self, wrap=lambda data: data, label=int):
        self.data = [jpeg(flat(20, 20, 8 * number)) for number in range(COUNT)]
        self.wrap = wrap
        self.label = label

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return self.wrap(self.data[index]), self.label(index)


@pytest.fixture
def load(make_loader):
    def load(dataset, **keywords):
        keywords.setdefault("transforms", [T.Resize((16, 16))])
        return make_loader(forebay.MapSource(dataset), **keywords)

    return load


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda data: data,
        bytearray,
        memoryview,
        lambda data: torch.frombuffer(bytearray(data), dtype=torch.uint8),
    ],
)
def test_bytes_with_labels(load, device, wrap, num_workers):
    seen = []
    loader = load(Bytes(wrap), shuffle=True, num_workers=num_workers, device=device)
    for images, labels in loader:
        assert (images.device.type, labels.device.type) == (device, device)
        means = images.float().mean((1, 2, 3))
        torch.testing.assert_close(means, 8.0 * labels, atol=1.0, rtol=0)
        seen += labels.tolist()
    assert sorted(seen) == list(range(COUNT))


def test_paths_without_labels(load, paths, make_loader):
    batch = next(iter(load([Path(path) for path in paths])))
    expected = next(iter(make_loader(forebay.FileList(paths), transforms=[T.Resize((16, 16))])))
    assert torch.equal(batch, expected)


@pytest.mark.parametrize(
    ("label", "dtype"),
    [
        (float, torch.float64),
        (lambda index: torch.tensor([index, 1], dtype=torch.int16), torch.int16),
        (str, None),
    ],
)
def test_labels_of_any_kind(load, label, dtype):
    _, labels = next(iter(load(Bytes(label=label))))
    if dtype is None:
        assert labels == [str(number) for number in range(8)]
    else:
        assert labels.dtype == dtype
        assert len(labels) == 8


def test_the_order_does_not_depend_on_the_dataset_speed(load):
    class Slow(Bytes):
        def __getitem__(self, index):
            time.sleep(0.002 * (index % 3))
            return super().__getitem__(index)

    order = [labels.tolist() for _, labels in load(Slow(), shuffle=True, num_workers=3)]
    assert order == [labels.tolist() for _, labels in load(Bytes(), shuffle=True, num_workers=0)]


def test_an_exception_is_a_sample_error_with_its_cause(load):
    class Broken(Bytes):
        def __getitem__(self, index):
            if index == 11:
                raise KeyError("no such record")
            return super().__getitem__(index)

        def key(self, index):
            return f"record {index}"

    for num_workers in (0, 2):
        iterator = iter(load(Broken(), num_workers=num_workers))
        next(iterator)
        with pytest.raises(forebay.SampleError) as caught:
            next(iterator)
        error = caught.value
        assert (error.index, error.key, error.stage) == (11, "record 11", "dataset")
        assert "no such record" in error.reason
        assert isinstance(error.__cause__, KeyError)
        assert [len(images) for images, _ in iterator] == [8, 6]


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (torch.zeros(3, 8, 8, dtype=torch.uint8), "path or encoded bytes"),
        (torch.zeros(8), "float32"),
        (3, "int"),
        ((b"x", 1, 2), "3 values"),
        ([b"x", 1], "tuple .image, label., got a list"),
        ({"image": b"x"}, "tuple .image, label., got a dict"),
    ],
)
def test_what_is_no_encoded_image_is_told(load, item, words):
    with pytest.raises(forebay.SampleError, match=words) as caught:
        next(iter(load([item], batch_size=1)))
    assert caught.value.stage == "dataset"


def test_labels_are_forgotten_once_delivered(load):
    class Half(Bytes):
        def __getitem__(self, index):
            if index % 5 == 1:
                raise ValueError("bad")
            data, label = super().__getitem__(index)
            return (data[:40] if index % 5 == 2 else data), label

    for on_error in ("skip", "replace", "raise"):  # MEM-1
        loader = load(Half(), on_error=on_error, fields=("image", "label", "valid"))
        for _ in range(2):
            iterator = iter(loader)
            while True:
                try:
                    next(iterator)
                except forebay.SampleError:
                    continue
                except StopIteration:
                    break
        assert len(loader._opened().supplier.book) == 0


def test_skipped_samples_have_the_ignored_label(load):
    class Broken(Bytes):
        def __getitem__(self, index):
            return (b"", 7) if index == 2 else super().__getitem__(index)

    loader = load(Broken(), on_error="skip", fields=("image", "label", "valid"))
    images, labels, valid = next(iter(loader))
    assert labels.tolist() == [0, 1, -100, 3, 4, 5, 6, 7]
    assert valid.tolist() == [place != 2 for place in range(8)]
    assert not images[2].any()


def test_a_stream_of_a_samplers_indices(load):
    class Endless:
        def __getitem__(self, index):
            return jpeg(flat(16, 16, index % 200)), index

    loader = load(Endless(), sampler=(10**9 + n for n in range(5)), batch_size=2)
    assert [labels.tolist() for _, labels in loader] == [
        [10**9, 10**9 + 1],
        [10**9 + 2, 10**9 + 3],
        [10**9 + 4],
    ]
    with pytest.raises(TypeError):
        len(loader)


def test_breaking_off_and_starting_anew_keeps_labels_right(load):
    loader = load(Bytes(), shuffle=True, num_workers=3)
    for _ in range(20):
        iterator = iter(loader)
        for _ in range(2):
            images, labels = next(iterator)
            means = images.float().mean((1, 2, 3))
            torch.testing.assert_close(means, 8.0 * labels, atol=1.0, rtol=0)


def test_threads_end_with_the_loader(load):
    def threads():
        return [thread for thread in threading.enumerate() if "forebay-map" in thread.name]

    loader = load(Bytes())
    assert threads() == []
    next(iter(loader))
    assert len(threads()) == 2
    loader.close()
    assert threads() == []
