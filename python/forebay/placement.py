"""Where batches are delivered: the ``device`` and ``decoders`` keywords, resolved.

**Invariants**
- LIF-2: nothing here touches CUDA before `Placement.resolved`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from . import cuda

# Fields that a device given without a field's name is for; the rest is for the host to read.
_DELIVERED = ("image", "label")


# Those that are tensors.
_PLACED = ("image", "label", "index", "valid", "size")

# With deterministic=True these parts of the images that a decoder can decode go to it.
_DETERMINISTIC_SHARES = {"cuda": 0.6, "hardware": 0.3}
_BESIDE_THREADS = ("cuda", "hardware")
# Copies of more from memory that is not page-locked wait, on the host, for all that the stream has
# to do before, the batch's images among it: 14,000 images/s with mixed labels of 1000 classes where
# 46,000 are without (H200).
_STAGED_BYTES = 1 << 16


@dataclass(frozen=True)
class Placement:
    """Devices by field, and what a GPU's decoders get of the images that they can decode.

    ``shares`` are parts by decoder; None leaves every image to whoever is free.
    """

    devices: Mapping[str, torch.device]
    shares: Mapping[str, float] | None = None

    @classmethod
    def of(cls, device: object, decoders: object) -> Placement:
        """Checks the keywords.

        Raises:
            ValueError: no device, fields on several GPUs, or shares that do not add up to 1.
            NotImplementedError: a kind of device, or a decoder, that is not offered.
        """
        given = device if isinstance(device, Mapping) else dict.fromkeys(_DELIVERED, device)
        if not given:
            raise ValueError('device must be "cpu", "cuda", or a dict of one by field, got {}')
        wrong = [name for name in given if name not in _PLACED]
        if wrong:
            raise ValueError(
                f"device must name some of {', '.join(_PLACED)}, got {wrong[0]!r}; a batch's own "
                "names for them, as in fields={...}, do not count"
            )
        devices = {name: as_device(value) for name, value in given.items()}
        found = sorted({str(each) for each in devices.values() if each.type == "cuda"})
        if len(found) == 2 and found[0] == "cuda":
            # The current one, beside one by its number: they must be the same.
            devices = {
                name: torch.device(found[1]) if str(each) == "cuda" else each
                for name, each in devices.items()
            }
        elif len(found) > 1:
            raise ValueError(f"device must name one GPU, got {' and '.join(found)}")
        shares = None if decoders is None else _shares(decoders)
        if shares and any(shares.values()) and not found:
            raise ValueError(f'decoders={decoders!r} needs device="cuda", got {device!r}')
        return cls(devices, shares)

    def deterministic(self) -> Placement:
        """The same with shares, whichever decoder is free."""
        return self if self.shares is not None else replace(self, shares=_DETERMINISTIC_SHARES)

    def by_threads(self) -> Placement:
        """The same where only threads decode.

        Raises:
            ValueError: shares of other decoders were asked for.
        """
        if self.shares and any(self.shares.values()):
            raise ValueError(
                f'decoders={dict(self.shares)!r} do not go with mode="GRAY": threads decode grey '
                'images; leave it out or use "cpu"'
            )
        return replace(self, shares={})

    @property
    def beside_engines(self) -> bool:
        """Whether images are delivered to a GPU, whose JPEG engines may decode."""
        device = self.devices.get("image")
        hardware = self.shares is None or self.shares.get("hardware", 0) > 0
        return hardware and device is not None and device.type == "cuda"

    def resolved(self) -> Placement:
        """The same with the number of the GPU: the current one for plain ``"cuda"``."""
        given = [device for device in self.devices.values() if device.type == "cuda"]
        if not given:
            return self
        gpu = existing_gpu(given[0])
        devices = {
            name: gpu if device.type == "cuda" else device for name, device in self.devices.items()
        }
        return replace(self, devices=devices)

    def options(self) -> tuple[int, dict[str, Any] | None]:
        """The GPU's number and the core's options for it; -1 and None for images on the host."""
        device = self.devices.get("image")
        if device is None or device.type != "cuda":
            return -1, None
        assert device.index is not None  # resolved
        return device.index, {
            "ordinal": device.index,
            "folders": cuda.library_folders(),
            "cuda_major": cuda.cuda_major() or None,
            "kernels": cuda.kernel_folder(),
            "decoders": {name: self._use(name) for name in _BESIDE_THREADS},
        }

    def _use(self, decoder: str) -> Any:
        """As the core reads it."""
        if self.shares is None:
            return "free"
        share = self.shares.get(decoder, 0)
        return {"share": share} if share else "never"

    def place(self, name: str, tensor: Tensor) -> Tensor:
        """A field that Python keeps, or that the core delivers on the host, where it belongs."""
        device = self.devices.get(name)
        if device is None or device.type == tensor.device.type:
            return tensor
        if tensor.nbytes > _STAGED_BYTES:
            tensor = tensor.pin_memory()
        return tensor.to(device, non_blocking=True)


def _shares(decoders: object) -> dict[str, float]:
    """What ``decoders=`` leaves to a GPU's decoders."""
    if decoders == "cpu":
        return {}
    if not isinstance(decoders, Mapping):
        raise NotImplementedError(
            f'decoders={decoders!r} is not offered; leave it out, use "cpu", or shares such as '
            '{"cuda": 0.5, "hardware": 0.3}'
        )
    unknown = [name for name in decoders if name not in ("cpu", *_BESIDE_THREADS)]
    if unknown:
        raise NotImplementedError(
            f'decoders: {unknown[0]!r} is not offered, shares are of "cuda", "hardware" and "cpu"'
        )
    if not decoders:
        raise ValueError('decoders must give the share of "cuda", "hardware" or "cpu", got {}')
    for share in decoders.values():
        is_number = isinstance(share, (int, float)) and not isinstance(share, bool)
        if not is_number or not 0 <= share <= 1:
            raise ValueError(f"decoders: a share must be a number from 0 to 1, got {share!r}")
    total = sum(decoders.values())
    if total > 1 + 1e-9 or ("cpu" in decoders and len(decoders) > 1 and total < 1 - 1e-9):
        raise ValueError(
            'decoders: shares must add up to 1 at the most, and to 1 if "cpu" is one of several, '
            f"got {dict(decoders)!r}"
        )
    shares = {name: float(decoders[name]) for name in _BESIDE_THREADS if name in decoders}
    if not shares:
        # The rest goes to the one that needs no more of the host.
        shares = {"cuda": 1.0 - float(decoders["cpu"])}
    return shares


def existing_gpu(device: torch.device) -> torch.device:
    """A CUDA device with its number, the current one if it names none.

    Raises:
        ValueError: torch sees no GPU of that number.
        RuntimeError: CUDA cannot be used, in torch's words.
    """
    # torch says best what is wrong: no GPU, no driver, a forked process.
    torch.cuda.init()  # type: ignore[no-untyped-call]
    index = torch.cuda.current_device() if device.index is None else device.index
    if index >= torch.cuda.device_count():
        raise ValueError(
            f"device='cuda:{index}' does not exist; torch sees {torch.cuda.device_count()}"
        )
    return torch.device("cuda", index)


def as_device(value: object) -> torch.device:
    """The CPU or a GPU, as ``device=`` names it.

    Raises:
        ValueError: not the name of a device.
        NotImplementedError: a device of another kind.
    """
    if isinstance(value, (str, torch.device)):
        try:
            device = torch.device(value)
        except RuntimeError:
            raise ValueError(f'device must be "cpu" or "cuda", got {value!r}') from None
    elif isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f"device must be a number from 0 on, got {value}")
        device = torch.device("cuda", value)
    else:
        raise ValueError(
            f'device must be "cpu", "cuda", "cuda:1", a number or a torch.device, got {value!r}'
        )
    if device.type not in ("cpu", "cuda"):
        raise NotImplementedError(f'device={str(device)!r} is not offered; use "cpu" or "cuda"')
    return device
