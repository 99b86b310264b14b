"""CUDA graphs beside a loader: static inputs, captures while it works, and none of ``next``."""

import time
from pathlib import Path

import pytest
import torch

import forebay
from forebay import transforms as T
from forebay.cudagraphs import StaticInputs

RECIPE = [T.RandomResizedCrop(48), T.RandomHorizontalFlip()]


def test_static_inputs_keep_their_place_and_take_each_batch(make_loader, device):
    fields = {"x": "image", "more": ("label", "index")}
    keywords = {"fields": fields, "device": device, "memory_format": torch.channels_last}
    batches = iter(make_loader(**keywords))
    first = next(batches)
    inputs = StaticInputs(first)
    assert torch.equal(inputs.batch["x"], first["x"])
    address = inputs.batch["x"].data_ptr()
    assert address != first["x"].data_ptr()
    for batch in batches:
        assert inputs.copy_(batch) is inputs.batch
        assert inputs.batch["x"].data_ptr() == address
        assert inputs.batch["x"].stride() == batch["x"].stride()
        assert torch.equal(inputs.batch["x"], batch["x"])
        for got, expected in zip(inputs.batch["more"], batch["more"], strict=True):
            assert got.device == expected.device
            assert torch.equal(got, expected)


def test_a_single_tensor_is_a_batch():
    inputs = StaticInputs(torch.arange(3))
    assert inputs.copy_(torch.arange(3, 6)).tolist() == [3, 4, 5]


IMAGES, LABELS = torch.zeros(4, 3, 8, 8), torch.zeros(4, dtype=torch.int64)


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ((IMAGES[:3], LABELS[:3]), r"batch\[0\] must be .*\(4, 3, 8, 8\).*got .*\(3, 3, 8, 8\)"),
        ((IMAGES, LABELS.int()), r"batch\[1\] must be torch.int64 .*got torch.int32"),
        ((IMAGES, [1, 2, 3, 4]), r"batch\[1\] must be torch.int64 .*got a list"),
        ((IMAGES,), r"batch must be a tuple of 2"),
        ({"image": IMAGES}, r"batch must be a tuple of 2"),
    ],
)
def test_a_batch_of_another_shape_is_refused_whole(batch, sentence):
    inputs = StaticInputs((IMAGES + 1, LABELS + 1))
    with pytest.raises(ValueError, match=sentence):
        inputs.copy_(batch)
    assert (inputs.batch[0] == 1).all() and (inputs.batch[1] == 1).all()


def test_a_nest_of_other_names_is_refused():
    inputs = StaticInputs({"x": {"y": LABELS}})
    with pytest.raises(ValueError, match=r"batch\['x'\] must be a dict of 'y'"):
        inputs.copy_({"x": {"z": LABELS}})


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"batch\[1\]\[0\] must be a tensor, .*got 'a.jpg'"):
        StaticInputs((IMAGES, ["a.jpg"]))


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
class TestOnAGpu:
    def test_a_graph_reads_each_batch_from_static_inputs(self, make_loader, photos):
        source = forebay.FileList(photos, labels=list(range(len(photos))))
        loader = make_loader(source, transforms=RECIPE, device="cuda", shuffle=True)
        batches = iter(loader)
        first = next(batches)
        inputs = StaticInputs(first)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            images, labels = inputs.batch
            result = images.to(torch.int64).sum((1, 2, 3)) * 1000 + labels
        results, expected = [], []
        for images, labels in [first, *batches]:
            inputs.copy_((images, labels))
            graph.replay()
            results.append(result.clone())
            expected.append(images.to(torch.int64).sum((1, 2, 3)) * 1000 + labels)
            del images, labels
        assert torch.equal(torch.stack(results), torch.stack(expected))

    def test_inputs_of_the_host_go_to_the_gpu(self, make_loader):
        inputs = StaticInputs(next(batches := iter(make_loader())), device="cuda")
        for images, labels in batches:
            static_images, static_labels = inputs.copy_((images, labels))
            assert static_images.is_cuda and static_labels.is_cuda
            assert torch.equal(static_images.cpu(), images)
            assert torch.equal(static_labels.cpu(), labels)

    def test_next_is_refused_in_a_capture_and_goes_on_after_it(self, make_loader):
        expected = [images for images, _ in make_loader()]
        iterator = iter(make_loader(device="cuda"))
        assert torch.equal(next(iterator)[0].cpu(), expected[0])
        ones = torch.ones(8, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with pytest.raises(RuntimeError, match="CUDA graph"), torch.cuda.graph(graph):
            twos = ones + 1
            next(iterator)
        graph.replay()
        assert (twos == 2).all(), "the capture is whole"
        for (images, _), reference in zip(iterator, expected[1:], strict=True):
            assert torch.equal(images.cpu(), reference)

    @pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
    @pytest.mark.parametrize(
        "keywords", [{}, {"decoders": "cpu"}, {"on_error": "skip", "num_workers": 4}]
    )
    def test_graphs_are_captured_while_the_loader_works(
        self, make_loader, photos, tmp_path, keywords, mode
    ):
        """Its threads allocate, copy, launch and wait, which must not break the capture."""
        broken = tmp_path / "broken.jpg"
        broken.write_bytes(Path(photos[0]).read_bytes()[:500])
        files = list(photos)
        if "on_error" in keywords:
            files[::7] = [broken] * len(files[::7])
        source = forebay.FileList(files, labels=list(range(len(files))))
        keywords = {"batch_size": 24, "fields": ("image", "valid")} | keywords
        keywords |= {"transforms": [T.RandomResizedCrop(128)], "prefetch_factor": 15}
        decoders = keywords.pop("decoders", None)
        expected = list(make_loader(source, **keywords))
        for _ in range(3):
            x = torch.ones(1000, device="cuda")
            loader = make_loader(source, device="cuda", decoders=decoders, **keywords)
            iterator = iter(loader)
            batches = []
            for number in range(3):
                batches.append(next(iterator))
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, capture_error_mode=mode):
                    y = x * 2
                    time.sleep(0.02)  # the threads go on
                    y += number
                graph.replay()
                assert (y == 2 + number).all()
            for (images, valid), (cpu_images, cpu_valid) in zip(
                [*batches, *iterator], expected, strict=True
            ):
                assert torch.equal(valid, cpu_valid)
                assert torch.equal(images.cpu(), cpu_images)
            loader.close()
