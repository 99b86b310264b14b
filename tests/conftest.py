"""Fixtures that most tests share."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# torchvision's grids of turns and tilts are MKL's products, whose last bits depend on the CPU:
# Intel's with AVX-512 make others than all the rest. MKL reads this once; child processes do, too.
os.environ.setdefault("MKL_CBWR", "COMPATIBLE")

import torch

import forebay
from forebay import transforms as T
from images import write_folder, write_list, write_mixed

# Nothing here takes minutes; whatever reaches this hangs.
HANG_S = 120


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="run the long cases at full size, too")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.addinivalue_line("markers", "soak: a long case at full size, run by make soak")
    config.addinivalue_line("markers", "gpu: a case on a GPU, run by make test-gpu")
    # Whatever is skipped says why.
    if "s" not in config.option.reportchars:
        config.option.reportchars += "s"


def pytest_collection_modifyitems(config, items):
    if config.getoption("--soak"):
        return
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.skip(reason="full size: make soak (pytest --soak)"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Ends a test that hangs, wherever Python still looks at signals."""
    limit = 7200 if item.config.getoption("--soak") else 3 * HANG_S

    def hangs(*_):
        pytest.fail(f"hangs: not done after {limit} s")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(limit)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def full(*values):
    """Parameters of a case at full size, beside those at a tenth that every run takes."""
    return pytest.param(*values, marks=pytest.mark.soak)


def no_gpu() -> str | None:
    """Why nothing runs on a GPU here; None where it does."""
    if torch.version.cuda is None:
        return "this torch was built without CUDA"
    return None if torch.cuda.is_available() else "torch finds no GPU"


@pytest.fixture
def gpu():
    """Skips the test where no GPU is, or fails it there under FOREBAY_REQUIRE_GPU=1."""
    reason = no_gpu()
    if reason is not None and os.environ.get("FOREBAY_REQUIRE_GPU") == "1":
        pytest.fail(f"FOREBAY_REQUIRE_GPU=1, but {reason}")
    if reason is not None:
        pytest.skip(f"needs a GPU: {reason}")
    yield
    torch.cuda.synchronize()  # a kernel that failed fails the test that launched it


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request) -> str:
    """Where batches are delivered: the test runs once for each."""
    if request.param == "cuda":
        request.getfixturevalue("gpu")
    return request.param


@pytest.fixture(scope="session")
def engines() -> int:
    """JPEG engines of the GPU that torch calls the first; 0 where there are none, or no nvJPEG."""
    doctor = subprocess.run(
        [sys.executable, "-m", "forebay", "doctor", "--json"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    devices = json.loads(doctor.stdout)["cuda"]["devices"]
    return devices[0].get("jpeg_engines") or 0 if devices else 0


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> list[str]:
    """360 files of all kinds, most of a size and kind that JPEG engines take."""
    return write_mixed(tmp_path_factory.mktemp("photos"), per_kind=36)


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """4 classes of 16 JPEGs."""
    root = tmp_path_factory.mktemp("folder")
    write_folder(root, classes=4, per_class=16)
    return root


@pytest.fixture(scope="session")
def paths(tmp_path_factory) -> list[str]:
    """64 JPEGs without classes; the place in the list is used as the label."""
    return write_list(tmp_path_factory.mktemp("list"), 64)


@pytest.fixture
def make_loader(paths):
    """Makes loaders that are closed after the test; by default over the 64 JPEGs."""
    made = []

    def make(source=None, **keywords):
        if source is None:
            source = forebay.FileList(paths, labels=list(range(len(paths))))
        keywords.setdefault("transforms", [T.RandomResizedCrop(32), T.RandomHorizontalFlip()])
        keywords.setdefault("batch_size", 8)
        keywords.setdefault("num_workers", 2)
        loader = forebay.Loader(source, **keywords)
        made.append(loader)
        return loader

    yield make
    for loader in made:
        loader.close()


@pytest.fixture
def run_python(tmp_path):
    """Runs a program in a fresh interpreter that finds our helpers; returns the process."""
    python_path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH")]

    def run(program: str, *arguments: str, timeout: float = HANG_S):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, python_path))},
        )

    return run
