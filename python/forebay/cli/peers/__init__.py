"""Loaders that ``forebay bench`` can measure, by name.

A peer is a module with ``make(files, recipe, batch_size, workers, device) -> Iterable`` of batches,
each a tensor of images or a tuple that begins with one, and ``versions() -> dict``. Adding one is a
module here and a line in `PEERS`. Peers import their libraries inside these functions, so that
each is measured without the others' memory.

All do the work that the recipe describes and give float32 ``(N, 3, H, W)`` on the device. Forebay
and DALI work on a GPU, too, and give float16 if asked (``dtype``); the batches of the others are
copied to it. What their pixels differ in
is said at the top of each module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, cast


@dataclass(frozen=True)
class Known:
    """Where a peer is, and what it needs: a package to install by the module that it brings."""

    module: str
    needs: dict[str, str]


_TORCHVISION = {"torchvision": "torchvision"}
_OPENCV = {"cv2": "opencv-python-headless", **_TORCHVISION}

PEERS = {
    "forebay": Known("forebay_loader", {}),
    "torch-pil": Known("torch_pil", {"PIL": "pillow", **_TORCHVISION}),
    "torch-v2": Known("torch_v2", _TORCHVISION),
    "torch-opencv": Known("torch_opencv", _OPENCV),
    "dali": Known("dali", {"nvidia.dali": "nvidia-dali-cuda130"}),
    "spdl": Known("spdl_opencv", {"spdl.pipeline": "spdl", **_OPENCV}),
}


class Peer(Protocol):
    """What a peer's module offers."""

    def make(
        self,
        files: list[str],
        recipe: str,
        batch_size: int,
        workers: int,
        device: str = "cpu",
        **options: Any,
    ) -> Iterable[Any]:
        """An endless or repeatable iterable of batches over ``files``."""
        ...

    def versions(self) -> dict[str, str]:
        """Versions of the libraries that do the work."""
        ...


def peer(name: str) -> Peer:
    """The peer's module."""
    return cast(Peer, import_module(f"{__name__}.{PEERS[name].module}"))


def require(names: Sequence[str]) -> None:
    """Raises ImportError with the command for each peer whose libraries are not installed."""
    sentences = []
    for name in names:
        needs = PEERS[name].needs
        packages = [package for module, package in needs.items() if not _installed(module)]
        if packages:
            wanted = " and ".join(packages)
            sentences.append(f"{name} needs {wanted}: pip install {' '.join(packages)}")
    if sentences:
        raise ImportError("; ".join(sentences))


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above a dotted name
        return False
