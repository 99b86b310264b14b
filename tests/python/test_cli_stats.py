"""``forebay stats``: exact sums over all pixels."""

import json

import numpy as np
import pytest

from forebay.cli import main
from images import jpeg, photo, pillow_rgb, png


def exact(pictures):
    """Mean and standard deviation of all pixels, by NumPy, on the scale 0..1."""
    pixels = np.concatenate([pillow_rgb(picture).reshape(-1, 3) for picture in pictures])
    values = pixels.astype(np.longdouble) / 255
    return values.mean(axis=0), values.std(axis=0), len(pixels)


@pytest.fixture
def pictures(tmp_path):
    """JPEGs and PNGs of unequal size, one of them grey."""
    made = {
        "a/1.jpg": jpeg(photo(40, 50, 1)),
        "a/2.JPEG": jpeg(photo(31, 77, 2), progressive=True),
        "b/3.png": png(photo(64, 20, 3)),
        "b/c/4.png": png(photo(30, 30, 4)[..., 0]),
    }
    for name, encoded in made.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(encoded)
    return list(made.values())


def report(capsys, *words):
    status = main(["stats", *map(str, words), "--json"])
    output = capsys.readouterr()
    return status, json.loads(output.out), output.err


@pytest.mark.parametrize("workers", [1, 3])
def test_equals_numpy(tmp_path, pictures, capsys, workers):
    status, got, _ = report(capsys, tmp_path, "--num-workers", workers)
    mean, std, pixels = exact(pictures)
    assert status == 0
    assert (got["images"], got["pixels"], got["broken"]) == (4, pixels, 0)
    np.testing.assert_allclose(got["mean"], mean.astype(float), rtol=4e-16)
    np.testing.assert_allclose(got["std"], std.astype(float), rtol=4e-15)


def test_one_value_everywhere_has_no_deviation(tmp_path, capsys):
    (tmp_path / "flat.png").write_bytes(png(np.full((9, 7, 3), 51, dtype=np.uint8)))
    _, got, _ = report(capsys, tmp_path)
    assert got["mean"] == [0.2, 0.2, 0.2]
    assert got["std"] == [0.0, 0.0, 0.0]


@pytest.mark.usefixtures("pictures")
def test_bad_files_are_named_and_left_out(tmp_path, capsys):
    _, without, _ = report(capsys, tmp_path)
    (tmp_path / "a" / "cut.jpg").write_bytes(jpeg(photo(40, 50, 1))[:-30])
    (tmp_path / "empty.png").touch()
    status, got, errors = report(capsys, tmp_path)
    assert status == 0
    assert got == without | {"broken": 2}
    assert "cut.jpg: decode: truncated" in errors
    assert "empty.png: decode: empty file" in errors


def test_nothing_but_bad_files_is_a_failure(tmp_path, capsys):
    (tmp_path / "x.jpg").write_text("no image")
    assert main(["stats", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "none of 1 files" in output.err


@pytest.mark.usefixtures("pictures")
def test_says_what_it_found(tmp_path, capsys):
    assert main(["stats", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    for word in ("mean", "std", "images 4", "pixels"):
        assert word in text


@pytest.mark.parametrize(
    ("words", "message", "status"),
    [(["/none"], "/none", 1), ([".", "--num-workers", "0"], "--num-workers", 2)],
)
def test_failures_have_a_status_and_a_sentence(capsys, words, message, status):
    assert main(["stats", *words]) == status
    assert message in capsys.readouterr().err
