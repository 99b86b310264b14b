"""The command: exit status, JSON, and files it leaves."""

import json
import subprocess
import sys

import pytest

from conftest import HANG_S
from forebay.cli import bench, main
from images import write_list

ROW_KEYS = {
    "loader",
    "recipe",
    "images_per_s",
    "cpu_cores",
    "images_per_cpu_s",
    "pss_mb",
    "first_batch_s",
    "versions",
}


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "forebay", *words],
        capture_output=True,
        text=True,
        timeout=5 * HANG_S,
        check=False,
    )


def test_doctor_tells_what_is_here(capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cpu"]["usable_cores"] >= 1
    assert report["cpu"]["simd"]
    assert report["decoders"]["jpeg"]
    for name in ("driver", "nvjpeg", "nvrtc"):
        section = report["cuda"][name]
        assert section["found"] or section["looked_in"]
    assert main(["doctor"]) == 0
    assert "usable_cores" in capsys.readouterr().out


def test_bench_measures_one_loader(tmp_path):
    write_list(tmp_path / "deep" / "er", 12)
    out = tmp_path / "result.json"
    words = ["--data", str(tmp_path), "--batch-size", "4", "--num-workers", "1", "--seconds", "0.2"]
    process = run("bench", *words, "--json", "--out", str(out))
    assert process.returncode == 0, process.stderr
    [line] = process.stdout.splitlines()
    row = json.loads(line)
    assert row.keys() >= ROW_KEYS
    assert row["loader"] == "forebay"
    assert row["images_per_s"] > 0
    record = json.loads(out.read_text())
    assert record["report"] == row
    assert "--batch-size 4" in record["command"]
    assert str(tmp_path) not in out.read_text()


def test_bench_compares(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torchvision")
    monkeypatch.setattr(bench, "ROUNDS", 2)
    write_list(tmp_path, 8)
    words = ["--data", str(tmp_path), "--batch-size", "4", "--num-workers", "1", "--seconds", "0.1"]
    words += ["--recipe", "imagenet-val", "--compare", "torch-pil,forebay", "--json"]
    assert main(["bench", *words]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ratio"]["torch-pil"] > 0
    order = [row["loader"] for row in report["rounds"]]
    assert order == ["torch-pil", "forebay"] * 2
    assert report.keys() >= ROW_KEYS


def test_the_ratio_is_the_median_of_the_rounds():
    rates = {"forebay": [10, 40, 30], "torch-pil": [5, 10, 10]}
    rows = [
        {"loader": name, "images_per_s": rates[name][number]}
        for number in range(3)
        for name in rates
    ]
    report = bench.summary(rows)
    assert report["ratio"] == {"torch-pil": 3.0}
    assert report["images_per_s"] == 30


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bench", "--data", "/none"], "--data"),
        (["bench", "--data", ".", "--batch-size", "0"], "--batch-size"),
        (["bench", "--data", ".", "--seconds", "-1"], "--seconds"),
        (["bench", "--data", ".", "--compare", "forebay,dali"], "--compare"),
        (["bench", "--data", ".", "--compare", "torch-pil"], "forebay"),
    ],
)
def test_failures_have_a_status_and_a_sentence(capsys, words, message):
    assert main(words) == 1
    assert message in capsys.readouterr().err


def test_a_folder_without_images_is_told(capsys, tmp_path):
    assert main(["bench", "--data", str(tmp_path)]) == 1
    assert "found none" in capsys.readouterr().err


def test_demo_shows_both_rates_and_a_contact_sheet(tmp_path, capsys):
    pytest.importorskip("torchvision")
    from PIL import Image

    folder = tmp_path / "demo"
    words = ["--folder", str(folder), "--images", "40", "--seconds", "0.2", "--num-workers", "1"]
    assert main(["demo", *words]) == 0
    text = capsys.readouterr().out
    for word in ("forebay", "DataLoader", "ratio", "contact_sheet.png"):
        assert word in text
    sheet = Image.open(folder / "contact_sheet.png")
    assert sheet.size == (8 * 160, 4 * 160)
    assert len(list(folder.rglob("*.jpg"))) == 40
    assert main(["demo", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ratio"] > 0
