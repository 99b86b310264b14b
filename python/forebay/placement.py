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


@dataclass(frozen=True)
class Placement:
    """Devices by field, and which decoders a GPU's pipeline uses."""

    devices: Mapping[str, torch.device]
    hardware: bool = True

    @classmethod
    def of(cls, device: object, decoders: object) -> Placement:
        """Checks the keywords.

        Raises:
            ValueError: no device, or fields on several GPUs.
            NotImplementedError: a kind of device, or a split, that is not offered.
        """
        given = device if isinstance(device, Mapping) else dict.fromkeys(_DELIVERED, device)
        if not given:
            raise ValueError('device must be "cpu", "cuda", or a dict of one by field, got {}')
        devices = {name: _device(value) for name, value in given.items()}
        found = sorted({str(each) for each in devices.values() if each.type == "cuda"})
        if len(found) > 1:
            raise ValueError(f"device must name one GPU, got {' and '.join(found)}")
        if decoders not in (None, "cpu"):
            raise NotImplementedError(
                f'decoders={decoders!r} is not offered; leave it out or use "cpu"'
            )
        return cls(devices, hardware=decoders is None)

    def resolved(self) -> Placement:
        """The same with the number of the GPU: the current one for plain ``"cuda"``."""
        given = [device for device in self.devices.values() if device.type == "cuda"]
        if not given:
            return self
        # torch says best what is wrong: no GPU, no driver, a forked process.
        torch.cuda.init()  # type: ignore[no-untyped-call]
        index = given[0].index
        index = torch.cuda.current_device() if index is None else index
        if index >= torch.cuda.device_count():
            raise ValueError(
                f"device='cuda:{index}' does not exist; torch sees {torch.cuda.device_count()}"
            )
        gpu = torch.device("cuda", index)
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
            "decoders": {"hardware": self.hardware},
        }

    def place(self, name: str, tensor: Tensor) -> Tensor:
        """A field that Python keeps, or that the core delivers on the host, where it belongs."""
        device = self.devices.get(name)
        if device is None or device.type == tensor.device.type:
            return tensor
        return tensor.to(device, non_blocking=True)


def _device(value: object) -> torch.device:
    if isinstance(value, (str, torch.device)):
        try:
            device = torch.device(value)
        except RuntimeError:
            raise ValueError(f'device must be "cpu" or "cuda", got {value!r}') from None
    elif isinstance(value, int) and not isinstance(value, bool):
        device = torch.device("cuda", value)
    else:
        raise ValueError(f'device must be "cpu", "cuda", "cuda:1" or a torch.device, got {value!r}')
    if device.type not in ("cpu", "cuda"):
        raise NotImplementedError(f'device={str(device)!r} is not offered; use "cpu" or "cuda"')
    return device
