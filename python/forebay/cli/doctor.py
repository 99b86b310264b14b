"""Tells what Forebay finds on this machine: cores, SIMD, torch, decoders, CUDA."""

from __future__ import annotations

import argparse
import platform
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from .. import _native, machine
from .output import say, say_json

_SYSTEM = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Looks and reports; loads no CUDA library and creates no context (LIF-2)."""
    report = examine()
    if arguments.json:
        say_json(report)
        return 0
    for title, section in report.items():
        say(f"{title}:")
        for name, value in section.items():
            say(f"  {name:<16} {_text(value)}")
    return 0


def examine() -> dict[str, dict[str, Any]]:
    """Everything that the command reports."""
    core = _native.system_info()
    return {
        "forebay": {"version": core["version"], "library": str(_native.LIBRARY)},
        "cpu": {
            "usable_cores": machine.usable_cores(),
            "cgroup_quota": machine.cgroup_quota(),
            "default_workers": machine.default_workers(),
            "simd": core["simd"],
        },
        "python": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torch_cuda": torch.version.cuda,
            "torchvision": _version("torchvision"),
            "pillow": _version("PIL"),
        },
        "decoders": {"jpeg": core.get("jpeg", "libjpeg-turbo"), "png": "8 bit, to RGB"},
        "cuda": {
            "devices": _devices(),
            "driver": _find("libcuda.so.1", [*_search_path(), *_SYSTEM]),
            "nvjpeg": _find("libnvjpeg*.so*", _library_folders()),
            "nvrtc": _find("libnvrtc.so*", _library_folders()),
        },
    }


def _find(pattern: str, folders: list[str]) -> dict[str, Any]:
    """The first match; without one, the folders that were looked through."""
    for folder in folders:
        found = sorted(Path(folder).glob(pattern))
        if found:
            return {"found": str(found[0])}
    return {"found": None, "looked_in": folders}


def _library_folders() -> list[str]:
    """The order of search: torch's wheels, torchvision's, the toolkit, the system."""
    folders: list[Path] = []
    nvidia = find_spec("nvidia")
    for root in (nvidia.submodule_search_locations or []) if nvidia else []:
        folders.extend(sorted(Path(root).glob("*/lib")))
    vision = find_spec("torchvision")
    if vision is not None and vision.origin:
        folders.append(Path(vision.origin).parent.parent / "torchvision.libs")
    home = _native.environment("CUDA_HOME") or _native.environment("CUDA_PATH")
    toolkits = [Path(home)] if home else []
    toolkits += sorted(Path("/usr/local").glob("cuda*"), reverse=True)
    folders.extend(toolkit / "lib64" for toolkit in toolkits)
    return [*map(str, folders), *_search_path(), *_SYSTEM]


def _search_path() -> list[str]:
    path = _native.environment("LD_LIBRARY_PATH") or ""
    return [folder for folder in path.split(":") if folder]


def _devices() -> list[str]:
    """Models that the kernel driver lists, without asking the CUDA driver."""
    models = []
    for information in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        for line in information.read_text().splitlines():
            if line.startswith("Model:"):
                models.append(line.partition(":")[2].strip())
    return models


def _version(module: str) -> str | None:
    try:
        return str(__import__(module).__version__)
    except ImportError:
        return None


def _text(value: Any) -> str:
    if isinstance(value, dict):
        if value["found"]:
            return str(value["found"])
        return "not found in " + ", ".join(value["looked_in"])
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return "none" if value is None else str(value)
