"""LIF-2, T51: importing Forebay and feeding on the CPU touches no CUDA."""

import os
import sys

import pytest

# Ends with what a CUDA context would leave: torch's flag, the driver, and open device files.
FEED = """
    import ctypes, os, sys
    if sys.argv[1] == "control":
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            pass
        sys.exit()
    import torch
    def driver_is_loaded():
        return "libcuda.so" in open("/proc/self/maps").read()
    before = driver_is_loaded()  # by torch, on its own account
    if sys.argv[1] == "feed":
        import forebay
        from forebay import ops, transforms as T
        with forebay.Loader(
            forebay.FileList(sys.argv[2:]), transforms=[T.RandomResizedCrop(8)], batch_size=8,
            num_workers=2
        ) as loader:
            for _ in range(2):
                for images in loader:
                    assert images.device.type == "cpu" and not images.is_pinned()
            loader.stats(), loader.describe(), loader.state_dict()
        data = bytearray(open(sys.argv[2], "rb").read())
        encoded = torch.frombuffer(data, dtype=torch.uint8)
        ops.decode_image(encoded), ops.decode_images([encoded], device="cpu")
        crops = ops.decode_resized_crop([encoded], size=8)
        ops.resized_crop_normalize(crops, size=4, mean=(0, 0, 0), std=(1, 1, 1))
    assert not torch.cuda.is_initialized()
    assert driver_is_loaded() == before
    opened = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
              if os.path.exists(f"/proc/self/fd/{fd}")]
    assert not [name for name in opened if name.startswith("/dev/nvidia")], opened
"""


@pytest.fixture
def driver_searches(run_python, paths, tmp_path, monkeypatch):
    """How often a program asked the dynamic linker for the CUDA driver, found or not."""

    def driver_searches(what):
        log = tmp_path / what
        with monkeypatch.context() as patch:
            patch.setenv("LD_DEBUG", "libs")
            patch.setenv("LD_DEBUG_OUTPUT", str(log))
            process = run_python(FEED, what, *paths)
        assert process.returncode == 0, process.stderr
        logs = [path.read_text() for path in tmp_path.glob(f"{what}.*")]
        assert logs, "the dynamic linker wrote no log"
        return sum(text.count("find library=libcuda.so") for text in logs)

    return driver_searches


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.confstr("CS_GNU_LIBC_VERSION") is None,
    reason="asks glibc's dynamic linker for its log",
)
def test_t51_importing_and_feeding_look_for_no_driver(driver_searches):
    assert driver_searches("control") > 0, "a search is seen"
    # torch may look for it on its own account.
    assert driver_searches("feed") == driver_searches("torch")


def test_importing_is_quiet_and_needs_no_torchvision(run_python):
    program = """
        import sys
        sys.modules["torchvision"] = sys.modules["PIL"] = None
        import forebay
        print(sorted(forebay.__all__))
    """
    process = run_python(program)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    assert "Loader" in process.stdout
