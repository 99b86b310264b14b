"""The runner over a folder of hostile files (tests/corpus.py): it sees what it should see."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import corpus
from conftest import HANG_S
from images import jpeg, photo, pillow_rgb, png


def row(path, verdict="valid", sniffed="jpeg", digest=None, size=(30, 20)):
    pillow = {
        "rgb_sha256": digest,
        "transposed_rgb_sha256": digest,
        "transposed_size": list(size),
    }
    chunks = {"chunks": ["IHDR", "IDAT", "IEND"]}
    return {
        "path": path,
        "verdict": verdict,
        "sniffed": sniffed,
        "pillow": pillow,
        "structure": chunks,
    }


@pytest.fixture
def folder(tmp_path):
    """Five files of which the manifest is wrong about two."""
    data = jpeg(photo(20, 30))
    digest = hashlib.sha256(pillow_rgb(data).tobytes()).hexdigest()
    files = {
        "good.jpg": (data, row("good.jpg", digest=digest)),
        "other.jpg": (data, row("other.jpg", digest="0" * 64)),
        "cut.jpg": (data[:300], row("cut.jpg", verdict="rejected")),
        "said to be good.png": (png(photo(9, 9))[:90], row("said to be good.png", sniffed="png")),
        "a.bmp": (b"BM" + bytes(60), row("a.bmp", sniffed="bmp")),
    }
    for name, (content, _) in files.items():
        (tmp_path / name).write_bytes(content)
    lines = [json.dumps(line) for _, line in files.values()]
    (tmp_path / "manifest.jsonl").write_text("\n".join(lines))
    return tmp_path


def test_violations_are_told_and_counted(folder):
    process = subprocess.run(
        [sys.executable, str(Path(corpus.__file__)), str(folder)],
        capture_output=True,
        text=True,
        timeout=2 * HANG_S,
        check=False,
    )
    assert process.returncode == 1, process.stderr
    lines = process.stdout.splitlines()
    assert lines[-1] == "5 files, 3 violations"
    assert [line.split(": ")[0] for line in lines[-4:-1]] == [
        "other.jpg",
        "other.jpg",
        "said to be good.png",
    ]
    assert "Loader: 2 delivered, 3 skipped with a reason" in lines
    assert any("jpeg" in line and "valid" in line for line in lines), "the table"


@pytest.mark.parametrize(
    ("error", "column"),
    [
        (None, "decoded"),
        (NotImplementedError("WebP is not decoded"), "not offered"),
        (ValueError("truncated: no end of image"), "truncated"),
        (ValueError("not an image: starts with 00"), "no image"),
        (ValueError("9x9 pixels exceed the limit of 3; raise max_pixels"), "too large"),
        (ValueError("damaged JPEG: bad Huffman code"), "damaged"),
        (ValueError(""), "LOST"),
        (RuntimeError("internal error"), "LOST"),
        (MemoryError("no memory"), "LOST"),
    ],
)
def test_errors_have_columns(error, column):
    assert corpus.outcome(error) == column


def test_a_child_that_dies_or_hangs_is_seen(monkeypatch, tmp_path):
    script = tmp_path / "child.py"
    monkeypatch.setattr(corpus, "__file__", str(script))
    script.write_text("import os; os.abort()")
    child = corpus.Child()
    assert child.line("x", limit_s=HANG_S) is None
    assert child.fate() == "ended with status -6"
    script.write_text("import time; time.sleep(1000)")
    child = corpus.Child()
    assert child.line("x", limit_s=0.2) is None
    assert child.fate() == f"gave nothing for {corpus.FILE_LIMIT_S} s"
    assert child.process.poll() is not None
