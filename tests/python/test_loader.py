"""The Loader: what a batch holds and what DataLoader's keywords do."""

import inspect
import warnings

import numpy as np
import pytest
import torch

import forebay
from forebay import transforms as T
from images import flat, jpeg, png

VALUES = T.Resize((16, 16))


def test_class_folders_give_images_and_labels(make_loader, folder, device):
    loader = make_loader(
        forebay.ImageFolder(folder),
        transforms=[T.RandomResizedCrop(24), T.Normalize([0.5] * 3, [0.5] * 3)],
        device=device,
    )
    images, labels = next(iter(loader))
    assert (images.shape, images.dtype) == ((8, 3, 24, 24), torch.float32)
    assert (labels.shape, labels.dtype) == ((8,), torch.int64)
    assert images.is_contiguous()
    assert (images.device.type, labels.device.type) == (device, device)
    assert -1 <= images.min() < images.max() <= 1
    assert len(loader) == 8


def test_without_labels_a_batch_is_the_images(make_loader, paths):
    batch = next(iter(make_loader(forebay.FileList(paths))))
    assert isinstance(batch, torch.Tensor)
    assert (batch.shape, batch.dtype) == ((8, 3, 32, 32), torch.uint8)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_dtype_and_memory_format(make_loader, device, dtype, memory_format):
    images, _ = next(iter(make_loader(dtype=dtype, memory_format=memory_format, device=device)))
    assert images.dtype == dtype
    assert images.is_contiguous(memory_format=memory_format)
    reference, _ = next(iter(make_loader()))
    scale = 1 if dtype == torch.uint8 else 255
    torch.testing.assert_close(
        images.cpu().float() * scale, reference.float(), atol=1.0, rtol=0, check_stride=False
    )


def test_fields_give_the_batch_its_shape(make_loader, paths, device):
    names = ("index", "key", "valid", "size", "label")
    index, key, valid, size, label = next(iter(make_loader(fields=names, device=device)))
    assert index.tolist() == label.tolist() == list(range(8))
    assert key == paths[:8]
    assert valid.dtype == torch.bool and valid.all()
    assert size.tolist() == [[40 + n % 7, 50 + n % 5] for n in range(8)]
    fields = {"x": "image", "more": {"where": "index"}}
    batch = next(iter(make_loader(fields=fields, device=device)))
    assert batch["x"].shape == (8, 3, 32, 32)
    assert batch["more"]["where"].tolist() == list(range(8))
    labels = next(iter(make_loader(fields="label", device=device)))
    assert labels.tolist() == list(range(8))


def test_collate_fn_gets_samples_as_views(make_loader, device):
    def collate(samples):
        images, labels = zip(*samples, strict=True)
        base = images[0].untyped_storage().data_ptr()
        assert all(image.untyped_storage().data_ptr() == base for image in images)
        return {"images": images, "labels": torch.stack(labels)}

    batch = next(iter(make_loader(collate_fn=collate, device=device)))
    assert len(batch["images"]) == 8
    assert batch["labels"].tolist() == list(range(8))


@pytest.mark.parametrize(
    ("labels", "dtype", "shape"),
    [
        (torch.arange(64, dtype=torch.int32), torch.int32, (8,)),
        (np.linspace(0, 1, 64), torch.float64, (8,)),
        (torch.rand(64, 5), torch.float32, (8, 5)),
        (torch.arange(64) % 2 == 0, torch.bool, (8,)),
    ],
)
def test_labels_keep_their_dtype(make_loader, paths, device, labels, dtype, shape):
    loader = make_loader(
        forebay.FileList(paths, labels=labels),
        shuffle=True,
        fields=("label", "index"),
        device=device,
    )
    got, index = next(iter(loader))
    assert got.device.type == device
    assert (got.dtype, tuple(got.shape)) == (dtype, shape)
    assert torch.equal(got.cpu(), torch.as_tensor(labels)[index])


def test_other_labels_come_as_a_list(make_loader, paths):
    names = [f"class {number % 3}" for number in range(64)]
    _, labels = next(iter(make_loader(forebay.FileList(paths, labels=names))))
    assert labels == names[:8]


def test_the_last_batch(make_loader, device):
    def sizes(**keywords):
        loader = make_loader(batch_size=24, device=device, **keywords)
        return [len(images) for images, _ in loader]

    assert sizes() == [24, 24, 16]
    assert sizes(drop_last=True) == [24, 24]
    assert sizes(last_batch="drop") == [24, 24]
    assert len(make_loader(batch_size=24)) == 3
    assert len(make_loader(batch_size=24, drop_last=True)) == 2


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_every_sample_is_itself(make_loader, tmp_path, device, num_workers):
    paths = []
    for value in range(40):
        paths.append(tmp_path / f"{value}.img")
        encode = png if value % 2 else jpeg
        paths[-1].write_bytes(encode(flat(20, 30, 6 * value)))
    source = forebay.FileList(paths, labels=list(range(40)))
    loader = make_loader(
        source, transforms=[VALUES], shuffle=True, num_workers=num_workers, device=device
    )
    seen = []
    for images, labels in loader:
        means = images.float().mean((1, 2, 3))
        torch.testing.assert_close(means, 6.0 * labels, atol=1.0, rtol=0)
        seen += labels.tolist()
    assert sorted(seen) == list(range(40))


def test_samplers_say_which_samples_come(make_loader, device):
    sampler = [5, 3, 60, 5]
    loader = make_loader(sampler=sampler, batch_size=3, device=device)
    got = [labels.tolist() for _, labels in loader]
    assert got == [[5, 3, 60], [5]]
    loader = make_loader(batch_sampler=[[1], [2, 3, 4]], batch_size=1, device=device)
    assert [labels.tolist() for _, labels in loader] == [[1], [2, 3, 4]]
    assert len(loader) == 2


def test_pin_memory_without_cuda_warns_and_goes_on(make_loader):
    if torch.cuda.is_available():
        pytest.skip("CUDA is here, so batches are pinned")
    loader = make_loader(pin_memory=True)
    with pytest.warns(UserWarning, match="pin_memory") as warned:
        next(iter(loader))
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(loader))


def test_stats_and_describe_tell_what_was_done(make_loader, device):
    loader = make_loader(rank=0, world_size=1, device=device)
    for _ in loader:
        pass
    stats, description = loader.stats(), loader.describe()
    assert (stats["batches"], stats["samples"]) == (8, 64)
    assert stats["read"]["count"] >= 64
    assert stats["python"]["batches"] == 8
    assert sum(decoder["count"] for decoder in stats["decoders"].values()) == 64
    assert description["renderer"] == device
    assert (description["workers"], description["world_size"]) == (2, 1)
    assert "FileList" in description["source"]


def test_a_warning_points_at_the_users_line(make_loader):
    loader = make_loader(batch_size=24, rank=2, world_size=3, num_workers=0)
    with pytest.warns(UserWarning, match="add .valid. to fields") as warned:
        for _ in loader:
            pass
    line = inspect.getsourcelines(test_a_warning_points_at_the_users_line)[1] + 3
    assert [(one.filename, one.lineno) for one in warned] == [(__file__, line)]
