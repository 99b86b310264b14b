"""Tells what Forebay finds on this machine: cores, SIMD, torch, decoders, CUDA."""

from __future__ import annotations

import argparse
import platform
from typing import Any

import torch

from .. import _native, cuda, machine
from .output import say, say_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Looks and reports; opens every GPU, as nothing else in Forebay does unasked (LIF-2)."""
    report = examine()
    if arguments.json:
        say_json(report)
        return 0
    for title, section in report.items():
        say(f"{title}:")
        for name, value in section.items():
            for line in _lines(value):
                say(f"  {name:<16} {line}")
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
        "decoders": {
            "jpeg": core.get("jpeg", "libjpeg-turbo"),
            "others": "PNG, WebP, BMP, TIFF, GIF, PNM",
        },
        "cuda": _native.cuda_report(
            cuda.library_folders(), cuda.cuda_major(), cuda.kernel_folder()
        ),
    }


def _version(module: str) -> str | None:
    try:
        return str(__import__(module).__version__)
    except ImportError:
        return None


def _lines(value: Any) -> list[str]:
    if isinstance(value, list):
        return [line for item in value for line in _lines(item)] or ["none"]
    if isinstance(value, dict):
        return [_line(value)]
    return ["none" if value is None else str(value)]


def _line(part: dict[str, Any]) -> str:
    """A library, a device or the cache of kernels."""
    if "ordinal" in part:
        return f"cuda:{part['ordinal']} " + (part.get("problem") or _device(part))
    if "entries" in part:
        kept = f"{part['entries']} kernels, {part['bytes'] / 1024:.0f} KiB"
        return f"{part['folder']} ({kept})" if part["folder"] else "no folder to keep kernels in"
    return f"{part['found']} ({part['version']})" if part["found"] else str(part["problem"])


def _device(part: dict[str, Any]) -> str:
    facts = [
        str(part["name"]),
        f"compute capability {part['compute_capability']}",
        f"{part['memory_bytes'] / 1024**3:.1f} GiB",
        f"PCI {part['pci_bus_id']}",
    ]
    if part["numa_node"] is not None:
        facts.append(f"NUMA node {part['numa_node']}")
    if part["jpeg_engines"] is not None:
        facts.append(f"{part['jpeg_engines']} JPEG engines")
    if part["jpeg_problem"]:
        facts.append(str(part["jpeg_problem"]))
    return ", ".join(facts)
