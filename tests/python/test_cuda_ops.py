"""The ops on a GPU: the CPU's bytes whoever decodes, in the order of the current stream."""

import threading

import pytest
import torch

from encoded import encoded_tensor, packed
from forebay import ops
from images import KINDS, jpeg, photo, smooth_jpeg

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

NORMALIZE = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
# A tenth of a second at 2 GHz.
CYCLES = 200_000_000
JUNK = 77


@pytest.fixture(scope="module")
def files(photos):
    """360 files of all kinds, 36 of each: more than the 32 from which on engines decode."""
    return [encoded_tensor(open(path, "rb").read()) for path in photos]


def boxes(count):
    """Within images of 64 pixels and more."""
    return torch.tensor(
        [[place % 7, place % 5, 20 + place % 43, 21 + place % 42] for place in range(count)]
    )


def bits(tensor):
    """Elements as they lie in memory, so that -0.0 is not 0.0."""
    return tensor.cpu().view(BITS[tensor.element_size()])


def assert_all_equal(images, expected):
    assert all(image.is_cuda for image in images)
    different = [
        place
        for place, (image, other) in enumerate(zip(images, expected, strict=True))
        if not torch.equal(image.cpu(), other)
    ]
    assert different == []


class TestPixels:
    """PIX-3."""

    @pytest.mark.parametrize("threads", [0, 1, 3])
    def test_mixed_lists_give_the_cpus_bytes(self, files, threads):
        expected = ops.decode_images(files)
        for _ in range(3):
            images = ops.decode_images(files, threads=threads, device="cuda")
            assert_all_equal(images, expected)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("count", [31, 32, 130])
    def test_many_and_few_of_a_kind_give_the_cpus_bytes(self, kind, count):
        """On both sides of what engines take, and more than a call of theirs."""
        items = [
            encoded_tensor(KINDS[kind](photo(64 + place % 40, 64 + 3 * place % 50, place), place))
            for place in range(count)
        ]
        assert_all_equal(ops.decode_images(items, device="cuda"), ops.decode_images(items))
        keywords = {"size": (33, 40), "interpolation": "bicubic"}
        crops = ops.decode_resized_crop(items, boxes(count), device="cuda", **keywords)
        assert_all_equal(crops, ops.decode_resized_crop(items, boxes(count), **keywords))

    @pytest.mark.parametrize("orientation", ["apply", "ignore"])
    def test_packed_crops_give_the_cpus_bytes(self, files, orientation):
        data, offsets = packed(files)
        keywords = {"size": (48, 36), "offsets": offsets, "orientation": orientation}
        expected = ops.decode_resized_crop(data, boxes(len(files)), **keywords)
        for _ in range(3):
            crops = ops.decode_resized_crop(data, boxes(len(files)), device="cuda", **keywords)
            assert_all_equal(crops, expected)

    def test_lists_of_large_images_give_the_cpus_bytes(self):
        """More at once than page-locked memory and scratch are held for."""
        large = [encoded_tensor(smooth_jpeg(2000, 3001, seed)) for seed in range(4)]
        items = [large[place % 4] for place in range(50)]
        expected = ops.decode_images(large)
        images = ops.decode_images(items, device="cuda")
        assert_all_equal(images, [expected[place % 4] for place in range(50)])
        small = torch.tensor([[900, 700, 960, 750]])  # of which engines decode all the rest, too
        for where in (None, small):
            keywords = {"size": (300, 400)}
            given = None if where is None else where.expand(50, 4).contiguous()
            crops = ops.decode_resized_crop(items, given, device="cuda", **keywords)
            given = None if where is None else where.expand(4, 4).contiguous()
            expected = ops.decode_resized_crop(large, given, **keywords)
            assert_all_equal(crops, [expected[place % 4] for place in range(50)])

    def test_one_very_large_image_is_decoded_by_itself(self):
        item = encoded_tensor(smooth_jpeg(11_000, 13_000))
        [image] = ops.decode_images([item], device="cuda")
        assert torch.equal(image.cpu(), ops.decode_image(item))

    def test_what_takes_much_scratch_is_rendered_by_itself(self):
        items = [encoded_tensor(smooth_jpeg(height, 64)) for height in (70, 9000, 71)]
        batch = ops.decode_resized_crop(items, size=(1, 65_535), device="cuda")
        assert_all_equal(batch, ops.decode_resized_crop(items, size=(1, 65_535)))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    @pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
    @pytest.mark.parametrize("size", [(1, 1), (24, 31), (130, 150)])
    def test_normalised_images_have_the_cpus_bits(self, dtype, memory_format, size):
        images = torch.stack(
            [torch.from_numpy(photo(61, 83, seed)).permute(2, 0, 1) for seed in range(70)]
        ).contiguous(memory_format=memory_format)
        keywords = NORMALIZE | {"size": size, "dtype": dtype, "flip": torch.arange(70) % 3 == 0}
        batch = ops.resized_crop_normalize(images.cuda(), boxes(70).clamp(max=60), **keywords)
        assert batch.is_contiguous() and batch.is_cuda
        expected = ops.resized_crop_normalize(images, boxes(70).clamp(max=60), **keywords)
        assert torch.equal(bits(batch), bits(expected))

    def test_batches_of_large_images_are_normalised_in_parts(self):
        images = torch.randint(0, 256, (24, 3, 2160, 3840), dtype=torch.uint8)
        keywords = NORMALIZE | {"size": (600, 2000)}
        batch = ops.resized_crop_normalize(images.cuda(), **keywords)
        assert torch.equal(bits(batch), bits(ops.resized_crop_normalize(images, **keywords)))

    def test_results_go_on_on_the_gpu(self, files):
        """What a serving loop does: nothing comes back to the host between the ops."""
        crops = ops.decode_resized_crop(files, boxes(len(files)), size=40, device="cuda")
        batch = ops.resized_crop_normalize(crops, size=32, **NORMALIZE)
        crops = ops.decode_resized_crop(files, boxes(len(files)), size=40)
        expected = ops.resized_crop_normalize(crops, size=32, **NORMALIZE)
        assert torch.equal(bits(batch), bits(expected))


class TestFaults:
    """ERR-1."""

    @pytest.mark.parametrize("damage", [lambda data: data[:-2], lambda data: data[:300]])
    def test_bad_files_among_many_change_no_other(self, damage):
        """Among as many as engines take, which would decode some of the damaged ones."""
        datas = [jpeg(photo(70, 90, place), subsampling=2) for place in range(70)]
        for place in (0, 33, 69):
            datas[place] = damage(datas[place])
        items = list(map(encoded_tensor, datas))
        expected, cpu_ok = ops.decode_images(items, strict=False)
        images, ok = ops.decode_images(items, strict=False, device="cuda")
        assert torch.equal(ok, cpu_ok) and ok.sum() == 67
        assert_all_equal(images, expected)
        assert tuple(images[33].shape) == (3, 0, 0)
        expected, _ = ops.decode_resized_crop(items, size=20, strict=False)
        crops, ok = ops.decode_resized_crop(items, size=20, strict=False, device="cuda")
        assert torch.equal(ok, cpu_ok)
        assert_all_equal(crops, expected)

    def test_errors_in_the_scan_are_the_cpus(self):
        """Whatever engines say of compressed data that is damaged."""
        datas = [jpeg(photo(120, 140, place), subsampling=0) for place in range(40)]
        middle = len(datas[20]) // 2
        datas[20] = datas[20][:middle] + bytes(300) + datas[20][middle + 300 :]
        items = list(map(encoded_tensor, datas))
        _, cpu_ok = ops.decode_images(items, strict=False)
        images, ok = ops.decode_images(items, strict=False, device="cuda")
        assert torch.equal(ok, cpu_ok)
        others = [place for place in range(40) if place != 20]
        expected = ops.decode_images([items[place] for place in others])
        assert_all_equal([images[place] for place in others], expected)

    def test_what_a_failed_call_took_is_given_back(self, files):
        ops.decode_images(files[:40], device="cuda")
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        for _ in range(3):
            with pytest.raises(ValueError, match=r"^encoded\[40\]"):
                ops.decode_images([*files[:40], files[0][:200]], device="cuda")
            with pytest.raises(ValueError, match=r"^encoded\[40\]"):
                ops.decode_resized_crop([*files[:40], files[0][:200]], size=99, device="cuda")
        torch.cuda.synchronize()
        ops.decode_images([], device="cuda")
        images = ops.decode_images(files[:1], device="cuda")  # frees what was still being written
        del images
        assert torch.cuda.memory_allocated() == before

    def test_no_memory_is_told_as_torch_tells_it(self):
        item = encoded_tensor(jpeg(photo(64, 64)))
        count = torch.cuda.get_device_properties(0).total_memory // (3 * 8000 * 8000) + 2
        with pytest.raises(torch.OutOfMemoryError):
            ops.decode_resized_crop([item] * count, size=8000, device="cuda")
        assert ops.decode_resized_crop([item], size=8, device="cuda").is_cuda


class TestDevices:
    """Which device, and what must be on the CPU."""

    @pytest.mark.parametrize("device", ["cuda", "cuda:0", 0, torch.device("cuda")])
    def test_a_gpu_has_many_names(self, files, device):
        [image] = ops.decode_images(files[:1], device=device)
        assert image.device == torch.device("cuda", 0)

    def test_a_gpu_that_is_not_there_is_named(self, files):
        missing = f"cuda:{torch.cuda.device_count()}"
        with pytest.raises(ValueError, match=f"device='{missing}' does not exist"):
            ops.decode_images(files[:1], device=missing)
        with pytest.raises(ValueError, match=f"device='{missing}' does not exist"):
            ops.decode_resized_crop(files[:1], size=8, device=missing)
        with pytest.raises(RuntimeError):  # nobody checks a bare op
            torch.ops.forebay.decode_images(
                files[:1], "RGB", "apply", True, 0, device=torch.device(missing)
            )
        assert ops.decode_images(files[:1], device="cuda")[0].is_cuda

    def test_a_bare_op_takes_the_current_device(self, files):
        images, ok = torch.ops.forebay.decode_images(
            files[:1], "RGB", "apply", True, 0, device=torch.device("cuda")
        )
        assert images[0].device == torch.device("cuda", torch.cuda.current_device())
        assert ok.is_cpu

    @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
    def test_a_gpu_that_is_not_current(self, files):
        expected = ops.decode_images(files[:40])
        images = ops.decode_images(files[:40], device="cuda:1")
        assert {image.device.index for image in images} == {1}
        assert_all_equal(images, expected)
        crops = ops.decode_resized_crop(files[:40], size=20, device="cuda:1")
        batch = ops.resized_crop_normalize(crops, size=10, **NORMALIZE)
        assert batch.device.index == 1
        expected = ops.resized_crop_normalize(crops.cpu(), size=10, **NORMALIZE)
        assert torch.equal(bits(batch), bits(expected))
        assert torch.cuda.current_device() == 0

    def test_files_boxes_and_flips_belong_to_the_cpu(self, files):
        crops = torch.zeros(2, 3, 8, 8, dtype=torch.uint8, device="cuda")
        where = torch.tensor([[0, 0, 8, 8]] * 2)
        with pytest.raises(TypeError, match=r"encoded\[0\] must be .* on the CPU, got .* on cuda"):
            ops.decode_images([files[0].cuda()], device="cuda")
        with pytest.raises(TypeError, match=r"boxes must be .* on the CPU, got .* on cuda"):
            ops.resized_crop_normalize(crops, where.cuda(), size=4, **NORMALIZE)
        flip = torch.zeros(2, dtype=torch.bool)
        with pytest.raises(TypeError, match=r"flip must be .* on the CPU, got .* on cuda"):
            ops.resized_crop_normalize(crops, where, size=4, flip=flip.cuda(), **NORMALIZE)

    def test_t53_a_forked_child_is_told_what_to_do(self, run_python, photos):
        program = """
            import os, sys, torch
            from forebay import ops
            data = torch.frombuffer(bytearray(open(sys.argv[1], "rb").read()), dtype=torch.uint8)
            expected = ops.decode_images([data], device="cuda")[0].cpu()
            arguments = [data], "RGB", "apply", True, 0
            child = os.fork()
            if child == 0:
                told = 0
                for call in (
                    lambda: ops.decode_images([data], device="cuda"),
                    lambda: torch.ops.forebay.decode_images(
                        *arguments, device=torch.device("cuda:0")),
                ):
                    try:
                        call()
                    except RuntimeError as error:
                        told += "spawn" in str(error)
                same = torch.equal(ops.decode_images([data])[0], expected)
                os._exit(0 if told == 2 and same else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert torch.equal(ops.decode_images([data], device="cuda")[0].cpu(), expected)
        """
        process = run_python(program, photos[0])
        assert process.returncode == 0, process.stderr

    def test_t52_the_interpreter_ends_with_work_to_do(self, run_python, photos):
        program = """
            import sys, torch
            from forebay import ops
            files = [open(path, "rb").read() for path in sys.argv[1:]]
            files = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in files]
            torch.cuda.init()
            torch.cuda._sleep(2_000_000_000)
            kept = ops.decode_images(files, device="cuda")
        """
        process = run_python(program, *photos)
        assert process.returncode == 0, process.stderr
        assert "terminate" not in process.stderr and "Abort" not in process.stderr


class TestStreams:
    """MEM-2. Streams are made late by `torch.cuda._sleep`, so that what does not wait is early."""

    @pytest.fixture
    def few(self, files):
        """Decoded by threads alone."""
        return files[:20]

    @pytest.fixture
    def expected(self, few):
        return ops.decode_resized_crop(few, size=64)

    def crops(self, items):
        return ops.decode_resized_crop(items, size=64, device="cuda")

    def test_a_call_does_not_wait_for_the_gpu(self, few, expected):
        self.crops(few)
        torch.cuda.synchronize()
        torch.cuda._sleep(10 * CYCLES)
        batch = self.crops(few)
        assert not torch.cuda.current_stream().query(), "the host waited"
        torch.cuda.synchronize()
        assert torch.equal(batch.cpu(), expected)

    def test_memory_that_is_still_read_is_not_written(self, few, expected):
        stale = torch.full_like(expected, JUNK, device="cuda")
        kept, address = torch.empty_like(stale), stale.data_ptr()
        self.crops(few)
        torch.cuda.synchronize()
        torch.cuda._sleep(3 * CYCLES)
        kept.copy_(stale)
        del stale
        batches = [self.crops(few) for _ in range(4)]
        torch.cuda.synchronize()
        assert address in {batch.data_ptr() for batch in batches}, "memory was used again"
        assert (kept == JUNK).all()
        assert all(torch.equal(batch.cpu(), expected) for batch in batches)

    @pytest.mark.parametrize("is_late", [False, True])
    def test_a_side_stream_reads_what_was_written_for_it(self, few, expected, is_late):
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            if is_late:
                torch.cuda._sleep(CYCLES)
            batch = self.crops(few)
            kept = batch.clone()
            batch.fill_(JUNK)
            del batch
            again = self.crops(few)
        side.synchronize()
        assert torch.equal(kept.cpu(), expected)
        assert torch.equal(again.cpu(), expected)

    def test_images_of_their_own_sizes_on_a_side_stream(self, files):
        expected = ops.decode_images(files)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(CYCLES)
            kept = [image.clone() for image in ops.decode_images(files, device="cuda")]
        side.synchronize()
        assert_all_equal(kept, expected)

    @pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
    @pytest.mark.parametrize("end", ["overwritten", "dropped"])
    def test_inputs_are_read_after_writes_before_and_before_writes_after(self, memory_format, end):
        pixels = torch.randint(0, 256, (64, 3, 200, 300), dtype=torch.uint8)
        pixels = pixels.contiguous(memory_format=memory_format)
        expected = ops.resized_crop_normalize(pixels, size=100, **NORMALIZE)
        source, images = pixels.cuda(), torch.full_like(pixels, JUNK, device="cuda")
        ops.resized_crop_normalize(images, size=100, **NORMALIZE)
        for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                images = torch.full_like(source, JUNK)
                torch.cuda._sleep(CYCLES)
                images.copy_(source)
                batch = ops.resized_crop_normalize(images, size=100, **NORMALIZE)
                assert not stream.query(), "the host waited"
                if end == "overwritten":
                    images.fill_(JUNK)
                else:
                    address = images.data_ptr()
                    del images
                    others = [torch.full_like(source, JUNK) for _ in range(3)]
                    assert address in {other.data_ptr() for other in others}
            torch.cuda.synchronize()
            assert torch.equal(bits(batch), bits(expected))

    def test_threads_with_streams_of_their_own(self, files):
        expected = ops.decode_resized_crop(files[:50], size=64)
        wrong = []

        def work():
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(6):
                    batch = self.crops(files[:50])
                    normalized = ops.resized_crop_normalize(batch, size=64, **NORMALIZE)
                    del normalized
                    if not torch.equal(batch.cpu(), expected):
                        wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []

    def test_captures_are_refused_and_stay_whole(self, few, expected):
        images = torch.zeros(2, 3, 8, 8, dtype=torch.uint8, device="cuda")
        calls = {
            "decode_images": lambda: ops.decode_images(few, device="cuda"),
            "decode_resized_crop": lambda: self.crops(few),
            "resized_crop_normalize": lambda: ops.resized_crop_normalize(
                images, size=4, **NORMALIZE
            ),
        }
        for name, call in calls.items():
            call()
            ones = torch.ones(8, device="cuda")
            graph = torch.cuda.CUDAGraph()
            words = f"{name} inside a CUDA graph's capture; call it before"
            with torch.cuda.graph(graph):
                twos = ones + 1
                with pytest.raises(RuntimeError, match=words):
                    call()
            graph.replay()
            assert (twos == 2).all(), "the capture is whole"
        assert torch.equal(self.crops(few).cpu(), expected)

    def test_calls_beside_a_capture_of_another_thread(self, files):
        """Their threads allocate, copy and launch, which must not break it."""
        expected = ops.decode_images(files)
        side, begin, end = torch.cuda.Stream(), threading.Event(), threading.Event()
        results = []

        def work():
            begin.wait()
            with torch.cuda.stream(side):
                results.extend(ops.decode_images(files, device="cuda"))
            end.set()

        ops.decode_images(files, device="cuda")  # torch's own memory is there already
        with torch.cuda.stream(side):
            ops.decode_images(files, device="cuda")
        torch.cuda.synchronize()
        thread = threading.Thread(target=work)
        thread.start()
        x, graph = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            y = x * 2
            begin.set()
            assert end.wait(60)
            y += 1
        thread.join()
        graph.replay()
        assert (y == 3).all()
        side.synchronize()
        assert_all_equal(results, expected)
