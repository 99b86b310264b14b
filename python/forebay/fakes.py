"""Shapes of the ops' results without their data: the fake kernels that torch.compile traces with.

Sizes of decoded images depend on the data and become new symbols; crops have static sizes. Encoded
bytes and masks lie on the CPU, whatever device the pixels are for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_CHANNELS = {"RGB": 3, "GRAY": 1, "RGB_ALPHA": 4}


def _image(like: Tensor, mode: str, device: torch.device | None = None) -> Tensor:
    if mode not in _CHANNELS:
        raise NotImplementedError(
            f"mode={mode!r} cannot be compiled: channels and dtype depend on the file; use one of "
            + ", ".join(_CHANNELS)
        )
    context = torch.library.get_ctx()
    height, width = context.new_dynamic_size(), context.new_dynamic_size()
    return like.new_empty((_CHANNELS[mode], height, width), dtype=torch.uint8, device=device)


def _decode_image(encoded: Tensor, mode: str, orientation: str) -> Tensor:
    del orientation  # of no influence on the shape
    return _image(encoded, mode)


def _decode_images(
    encoded: list[Tensor], mode: str, *options: object, device: torch.device | None = None
) -> tuple[list[Tensor], Tensor]:
    del options
    images = [_image(item, mode, device) for item in encoded]
    return images, encoded[0].new_empty(len(encoded), dtype=torch.bool)


def _decode_resized_crop(
    encoded: list[Tensor],
    boxes: Tensor,
    size: list[int],
    *options: object,
    device: torch.device | None = None,
) -> tuple[Tensor, Tensor]:
    del options
    return _crops(boxes, len(encoded), size, device)


def _decode_resized_crop_packed(
    encoded: Tensor,
    offsets: Tensor,
    boxes: Tensor,
    size: list[int],
    *options: object,
    device: torch.device | None = None,
) -> tuple[Tensor, Tensor]:
    del encoded, options
    return _crops(boxes, offsets.shape[0] - 1, size, device)


def _crops(
    like: Tensor, count: int, size: list[int], device: torch.device | None
) -> tuple[Tensor, Tensor]:
    batch = like.new_empty((count, 3, *size), dtype=torch.uint8, device=device)
    return batch, like.new_empty(count, dtype=torch.bool)


def _resized_crop_normalize(
    images: Tensor,
    boxes: Tensor,
    flip: Tensor,
    size: list[int],
    mean: list[float],
    std: list[float],
    dtype: torch.dtype,
    interpolation: str,
    antialias: bool,
    threads: int,
) -> Tensor:
    del boxes, flip, mean, std, interpolation, antialias, threads
    # Contiguous whatever the input's memory format is.
    return images.new_empty((images.shape[0], 3, *size), dtype=dtype)


_KERNELS: dict[str, Callable[..., Any]] = {
    "decode_image": _decode_image,
    "decode_images": _decode_images,
    "decode_resized_crop": _decode_resized_crop,
    "decode_resized_crop_packed": _decode_resized_crop_packed,
    "resized_crop_normalize": _resized_crop_normalize,
}
for _name, _kernel in _KERNELS.items():
    torch.library.register_fake("forebay::" + _name, _kernel)
