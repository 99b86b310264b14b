"""Where CUDA may lie on this machine: folders for the core to search, one for compiled kernels.

**Invariants**
- LIF-2: looks at names of folders only; loads no library and imports no package.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch

from . import _native

_SYSTEM = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
)


def library_folders() -> list[str]:
    """Existing folders in the order of search: wheels, torch, torchvision, toolkits, the system."""
    folders = [*_wheels(), Path(torch.__file__).parent / "lib", *_torchvision(), *_toolkits()]
    path = _native.environment("LD_LIBRARY_PATH") or ""
    folders += [Path(folder) for folder in path.split(":") if folder]
    folders += map(Path, _SYSTEM)
    # Links, such as /usr/local/cuda, make two names of one folder.
    unique: dict[Path, Path] = {}
    for folder in filter(Path.is_dir, folders):
        unique.setdefault(folder.resolve(), folder.absolute())
    return list(map(str, unique.values()))


def cuda_major() -> int:
    """Major version of the CUDA that torch was built for; 0 for a torch without."""
    return int((torch.version.cuda or "0").partition(".")[0])


def kernel_folder() -> str:
    """Where compiled kernels are kept; empty, for nowhere, when there is no home folder."""
    # Relative values are to be ignored, says the XDG specification.
    cache = Path(_native.environment("XDG_CACHE_HOME") or "")
    if not cache.is_absolute():
        try:
            cache = Path.home() / ".cache"
        except RuntimeError:
            return ""
    return str(cache / "forebay" / "kernels")


def _wheels() -> list[Path]:
    """``nvidia/*/lib``, where wheels of CUDA's libraries put them."""
    nvidia = find_spec("nvidia")
    roots = (nvidia.submodule_search_locations or []) if nvidia else []
    return [folder for root in roots for folder in sorted(Path(root).glob("*/lib"))]


def _torchvision() -> list[Path]:
    """The folder beside torchvision that holds the libraries it brings."""
    vision = find_spec("torchvision")
    if vision is None or vision.origin is None:
        return []
    return [Path(vision.origin).parent.parent / "torchvision.libs"]


def _toolkits() -> list[Path]:
    home = _native.environment("CUDA_HOME") or _native.environment("CUDA_PATH")
    roots = [Path(home)] if home else []
    roots += sorted(Path("/usr/local").glob("cuda*"), reverse=True)
    return [root / "lib64" for root in roots]
