"""Where Python looks for CUDA, and what `forebay doctor` tells of it."""

import json
import os
from pathlib import Path

import pytest
import torch

from forebay import _native, cuda
from forebay.cli import doctor, main


@pytest.fixture
def bare(monkeypatch):
    """A machine without wheels of CUDA, toolkits and variables."""
    for name in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cuda, "find_spec", lambda _: None)
    return monkeypatch


def test_folders_come_in_order_and_once(bare, tmp_path):
    toolkit, path = tmp_path / "toolkit", tmp_path / "path"
    for folder in (toolkit / "lib64", path):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(path)
    bare.setenv("CUDA_HOME", str(toolkit))
    bare.setenv("LD_LIBRARY_PATH", f"{path}:{tmp_path / 'link'}::{tmp_path / 'missing'}")
    folders = cuda.library_folders()
    ours = [folder for folder in folders if folder.startswith(str(tmp_path))]
    assert ours == [str(toolkit / "lib64"), str(path)]
    assert folders[0] == str(Path(torch.__file__).parent / "lib")
    assert all(os.path.isabs(folder) for folder in folders)


def test_wheels_come_before_everything(bare, tmp_path):
    wheels = [tmp_path / "nvidia" / name / "lib" for name in ("cu13", "nvjpeg")]
    vision = tmp_path / "torchvision.libs"
    for folder in (*wheels, vision):
        folder.mkdir(parents=True)

    class Spec:
        submodule_search_locations = (str(tmp_path / "nvidia"),)
        origin = str(tmp_path / "torchvision" / "__init__.py")

    bare.setattr(cuda, "find_spec", lambda _: Spec)
    folders = cuda.library_folders()
    assert folders[:2] == list(map(str, wheels))
    assert str(vision) in folders


def test_kernels_are_kept_where_the_xdg_specification_says(bare, tmp_path):
    bare.setenv("HOME", str(tmp_path))
    home = str(tmp_path / ".cache" / "forebay" / "kernels")
    assert cuda.kernel_folder() == home
    bare.setenv("XDG_CACHE_HOME", "relative")
    assert cuda.kernel_folder() == home
    bare.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert cuda.kernel_folder() == str(tmp_path / "other" / "forebay" / "kernels")


def test_the_major_is_torchs(monkeypatch):
    for version, major in (("13.2", 13), ("12.8", 12), (None, 0)):
        monkeypatch.setattr(torch.version, "cuda", version)
        assert cuda.cuda_major() == major


def test_a_broken_library_is_named_with_its_reason(tmp_path):
    (tmp_path / "libnvjpeg.so.13").write_text("no library")
    report = _native.cuda_report([str(tmp_path)], 13, str(tmp_path / "kernels"))
    assert report["kernels"] == {"folder": str(tmp_path / "kernels"), "entries": 0, "bytes": 0}
    assert not (tmp_path / "kernels").exists(), "looking makes no folder"
    nvjpeg = report["nvjpeg"]
    if nvjpeg["found"] is None:  # unless the system's loader, or a test before, had one
        assert nvjpeg["looked_in"] == [str(tmp_path)]
        assert str(tmp_path / "libnvjpeg.so.13") + ": " in nvjpeg["problem"]
        assert "forebay[cuda13]" in nvjpeg["problem"]


def test_doctor_reports_what_torch_brings(capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["cuda"]
    wheels = [
        f for f in cuda.library_folders() if "/nvidia/" in f and list(Path(f).glob("*nvrtc*"))
    ]
    if not wheels:
        pytest.skip("this torch brings no NVRTC")
    assert Path(report["nvrtc"]["found"]).is_file()
    assert report["nvrtc"]["version"].startswith(f"{cuda.cuda_major()}.")
    for device in report["devices"]:
        assert device["name"] and device["memory_bytes"] > 0


def test_every_part_has_a_line_of_text():
    device = {
        "ordinal": 0,
        "name": "NVIDIA H200",
        "compute_capability": "9.0",
        "memory_bytes": 150 * 1024**3,
        "pci_bus_id": "0000:1b:00.0",
        "numa_node": 1,
        "jpeg_engines": 7,
        "jpeg_problem": None,
    }
    told = doctor._lines([device, {"ordinal": 1, "problem": "it is broken"}])
    assert told[0].startswith("cuda:0 NVIDIA H200, compute capability 9.0, 150.0 GiB, PCI 0000:1b")
    assert told[0].endswith("NUMA node 1, 7 JPEG engines")
    assert told[1] == "cuda:1 it is broken"
    assert doctor._lines({"found": "/lib/x.so", "version": "13.2"}) == ["/lib/x.so (13.2)"]
    assert doctor._lines({"found": None, "problem": "not found", "looked_in": []}) == ["not found"]
    assert doctor._lines([]) == ["none"]
