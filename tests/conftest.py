"""Fixtures that most tests share."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import forebay
from forebay import transforms as T
from images import write_folder, write_list

# Nothing here takes seconds; whatever reaches this hangs.
HANG_S = 120


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
    made.clear()
    gc.collect()


@pytest.fixture
def run_python(tmp_path):
    """Runs a program in a fresh interpreter; returns the finished process."""

    def run(program: str, *arguments: str, timeout: float = HANG_S):
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(program))
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
