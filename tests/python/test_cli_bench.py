"""``forebay bench``: what is measured in which order, and what is made of it."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from conftest import HANG_S
from forebay.cli import bench, cold, main, pace, report
from images import write_list

ROW_KEYS = {
    "loader",
    "recipe",
    "device",
    "batch_size",
    "num_workers",
    "cache",
    "images",
    "images_per_s",
    "cpu_cores",
    "images_per_cpu_s",
    "pss_mb",
    "first_batch_s",
    "versions",
}
QUICK = ["--batch-size", "4", "--num-workers", "1", "--seconds", "0.1"]


@pytest.fixture
def measured(monkeypatch):
    """Jobs in the order in which they would be measured; rates are made up."""
    jobs = []

    def pretend(job):
        jobs.append(job)
        speed = {"forebay": 300.0}.get(job.loader, 100.0) * (job.workers + 1)
        return dict.fromkeys(ROW_KEYS, 1) | {
            "loader": job.loader,
            "recipe": job.recipe,
            "device": job.device,
            "batch_size": job.batch_size,
            "num_workers": job.workers,
            "cache": "cold" if job.cold else "warm",
            "images_per_s": speed,
            "versions": {job.loader: "1"},
        }

    monkeypatch.setattr(bench, "measured", pretend)
    monkeypatch.setattr(bench, "require", lambda *_: None)
    return jobs


def test_one_loader_is_measured_in_a_process_of_its_own(tmp_path):
    write_list(tmp_path / "deep" / "er", 12)
    out = tmp_path / "result.json"
    words = ["--data", str(tmp_path), *QUICK, "--json", "--out", str(out)]
    process = subprocess.run(
        [sys.executable, "-m", "forebay", "bench", *words],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    [line] = process.stdout.splitlines()
    row = json.loads(line)
    assert row.keys() == ROW_KEYS
    assert (row["loader"], row["device"], row["cache"]) == ("forebay", "cpu", "warm")
    assert row["images_per_s"] > 0
    record = json.loads(out.read_text())
    assert record["report"] == row
    assert "--batch-size 4" in record["command"]
    assert record["versions"]["forebay"]
    assert record["machine"]["usable_cores"] >= 1
    assert record["data"]["images"] == 12
    assert 40 * 50 <= record["data"]["mean_pixels"] <= 46 * 54
    assert str(tmp_path) not in out.read_text()


def test_two_loaders_are_compared(tmp_path, capsys):
    pytest.importorskip("torchvision")
    write_list(tmp_path, 8)
    words = ["--recipe", "imagenet-val", "--compare", "torch-pil,forebay", "--rounds", "1"]
    assert main(["bench", "--data", str(tmp_path), *QUICK, *words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ratio"]["torch-pil"] > 0
    assert result.keys() == ROW_KEYS | {"ratio", "peers", "rounds"}


def test_rounds_interleave_any_number_of_loaders(tmp_path, measured, capsys):
    write_list(tmp_path, 1)
    names = ["dali", "forebay", "torch-v2", "spdl"]
    words = ["--compare", ",".join(names), "--rounds", "2", "--json"]
    assert main(["bench", "--data", str(tmp_path), *words]) == 0
    assert [job.loader for job in measured] == names * 2
    result = json.loads(capsys.readouterr().out)
    assert result["ratio"] == dict.fromkeys(["dali", "torch-v2", "spdl"], 3.0)
    assert [row["loader"] for row in result["rounds"]] == names * 2


def test_a_sweep_has_a_point_for_each_value(tmp_path, measured, capsys):
    write_list(tmp_path, 1)
    words = ["--compare", "forebay,dali", "--sweep", "num-workers=0,1,4", "--rounds", "2"]
    assert main(["bench", "--data", str(tmp_path), *words, "--json"]) == 0
    once = [(workers, name) for workers in (0, 1, 4) for name in ("forebay", "dali")]
    assert [(job.workers, job.loader) for job in measured] == once * 2
    result = json.loads(capsys.readouterr().out)
    assert result["sweep"] == {"option": "num-workers", "values": [0, 1, 4]}
    assert [point["images_per_s"] for point in result["points"]] == [300, 600, 1500]
    assert [point["ratio"]["dali"] for point in result["points"]] == [3, 3, 3]


def test_a_sweep_of_one_loader_takes_one_round(tmp_path, measured, capsys):
    write_list(tmp_path, 1)
    assert main(["bench", "--data", str(tmp_path), "--sweep", "batch-size=1,8"]) == 0
    assert [job.batch_size for job in measured] == [1, 8]
    assert capsys.readouterr().out.count("forebay ") == 2


def test_the_ratio_is_the_median_of_the_rounds():
    rates = {"forebay": [10, 40, 30], "torch-pil": [5, 10, 10]}
    rows = [
        {"loader": name, "images_per_s": rates[name][number]}
        for number in range(3)
        for name in rates
    ]
    result = report.comparison(rows)
    assert result["ratio"] == {"torch-pil": 3.0}
    assert result["images_per_s"] == 30


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("suffix", [".png", ".svg"])
@pytest.mark.parametrize("words", [["--compare", "forebay,dali"], ["--sweep", "num-workers=1,2"]])
def test_plots(tmp_path, suffix, words):
    pytest.importorskip("matplotlib")
    write_list(tmp_path, 1)
    picture = tmp_path / f"rates{suffix}"
    assert main(["bench", "--data", str(tmp_path), *words, "--plot", str(picture)]) == 0
    assert picture.stat().st_size > 1000


def test_a_plot_without_matplotlib_is_refused_before_measuring(tmp_path, monkeypatch, capsys):
    write_list(tmp_path, 1)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("forebay.cli.plot.find_spec", lambda *_: None)
    assert main(["bench", "--data", str(tmp_path), "--plot", str(tmp_path / "x.png")]) == 1
    assert "pip install matplotlib" in capsys.readouterr().err


def test_batches_are_taken_until_there_are_enough_images():
    batches = pace.endless([torch.zeros(4, 3), (torch.zeros(2, 3), None)])
    taken = pace.take(batches, 0.0, "cpu", least=7)
    assert taken.images == 4 + 2 + 4
    assert len(taken.batch_s) == 3
    assert taken.rates().keys() <= ROW_KEYS


def test_batch_times_have_a_median_and_a_tail():
    assert pace.quantiles_ms([0.001] * 98 + [0.5] * 2) == {"batch_ms": 1.0, "batch_ms_p99": 500.0}
    assert pace.quantiles_ms([0.002]) == {"batch_ms": 2.0, "batch_ms_p99": 2.0}


def test_forebay_is_told_the_fidelity(tmp_path, measured, capsys):
    write_list(tmp_path, 1)
    words = ["bench", "--data", str(tmp_path), "--compare", "forebay,torch-pil", "--rounds", "1"]
    out = tmp_path / "result.json"
    assert main([*words, "--fidelity", "fast", "--out", str(out)]) == 0
    assert [(job.loader, job.options) for job in measured] == [
        ("forebay", {"fidelity": "fast"}),
        ("torch-pil", {}),
    ]
    assert "--fidelity fast" in json.loads(out.read_text())["command"]
    capsys.readouterr()


def test_on_a_gpu_dali_is_told_the_engines_share(tmp_path, measured, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    write_list(tmp_path, 1)
    words = ["--device", "cuda", "--compare", "forebay,dali", "--rounds", "1", "--json"]
    for more, share in (([], 0.8), (["--dali-hw-load", "0.5"], 0.5)):
        measured.clear()
        assert main(["bench", "--data", str(tmp_path), *words, *more]) == 0
        assert json.loads(capsys.readouterr().out)["device"] == "cuda"
        assert [(job.loader, job.device, job.options) for job in measured] == [
            ("forebay", "cuda", {}),
            ("dali", "cuda", {"hw_load": share}),
        ]


def test_a_gpu_that_is_not_there_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["bench", "--data", str(tmp_path), "--device", "cuda"]) == 1
    assert "torch finds none" in capsys.readouterr().err


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_a_measurement_on_a_gpu(photos, tmp_path, capsys):
    folder = Path(photos[0]).parent
    for file in folder.glob("*.img"):
        (tmp_path / file.name).with_suffix(".jpg").symlink_to(file)
    words = ["--data", str(tmp_path), *QUICK, "--device", "cuda", "--json"]
    assert main(["bench", *words]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row.keys() == ROW_KEYS | {"gpu", "gpu_mb"}
    assert row["device"] == "cuda"
    assert row["gpu"] and row["gpu_mb"] > 0


def test_cold_says_so(tmp_path, measured, capsys):
    write_list(tmp_path, 1)
    assert main(["bench", "--data", str(tmp_path), "--cold", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cache"] == "cold"
    assert [job.cold for job in measured] == [True]


def test_cold_files_leave_the_page_cache(tmp_path):
    files = write_list(tmp_path, 4)
    try:
        context = cold.ColdFiles(files)
    except ValueError as error:
        pytest.skip(f"{error}")
    with context:
        for file in files:
            with open(file, "rb") as opened:
                opened.read()
        end = time.monotonic() + HANG_S
        while any(map(cold.lies_in_memory, files)):
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--batch-size", "0"], "--batch-size"),
        (["--num-workers", "-1"], "--num-workers"),
        (["--seconds", "-1"], "--seconds"),
        (["--rounds", "0"], "--rounds"),
        (["--compare", "forebay,tf"], "dali"),
        (["--compare", "torch-pil,torch-v2"], "forebay"),
        (["--compare", "forebay,forebay"], "--compare"),
        (["--device", "cuda", "--dali-hw-load", "1.5"], "--dali-hw-load"),
        (["--dali-hw-load", "0.5"], "--device cuda"),
        (["--recipe", "imagenet-randaugment", "--loader", "spdl"], "not by spdl"),
        (["--sweep", "num-workers="], "--sweep"),
        (["--sweep", "num-workers=1,x"], "--sweep"),
        (["--sweep", "seconds=1,2"], "--sweep"),
        (["--sweep", "batch-size=0"], "--sweep"),
        (["--sweep", "num-workers=1,2", "--num-workers", "1"], "contradict"),
    ],
)
def test_a_senseless_command_line_has_a_status_and_a_sentence(capsys, words, message):
    assert main(["bench", "--data", ".", *words]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert message in line


def test_a_missing_folder_is_a_failure(capsys):
    assert main(["bench", "--data", "/none"]) == 1
    assert "not a folder: /none" in capsys.readouterr().err


def test_a_folder_without_images_is_told(capsys, tmp_path):
    assert main(["bench", "--data", str(tmp_path)]) == 1
    assert "found none" in capsys.readouterr().err


@pytest.mark.parametrize("loader", ["forebay", "torch-pil"])
def test_a_broken_file_is_named_in_one_sentence(tmp_path, capfd, loader):
    if loader != "forebay":
        pytest.importorskip("torchvision")
    folder = tmp_path / "my photos"
    write_list(folder, 4)
    (folder / "broken.jpg").write_bytes(b"no image")
    assert main(["bench", "--data", str(folder), *QUICK, "--loader", loader]) == 1
    [line] = capfd.readouterr().err.splitlines()
    assert f"measuring {loader} failed: " in line
    assert "broken.jpg" in line
    assert line.endswith(f"; forebay check '{folder}' lists broken files")


def test_a_measurement_that_dies_has_a_status(tmp_path, capfd, monkeypatch):
    write_list(tmp_path, 4)
    monkeypatch.setattr(bench, "_CHILD", "import os; os._exit(3)")
    assert main(["bench", "--data", str(tmp_path), *QUICK]) == 1
    assert "measuring forebay failed with status 3; forebay check" in capfd.readouterr().err
