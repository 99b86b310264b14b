"""Typed functions over ``torch.ops.forebay``, with their shape rules for ``torch.compile``."""

from __future__ import annotations

import torch
from torch import Tensor

from . import _native

__all__ = ["decode_image"]


def decode_image(encoded: Tensor, *, mode: str = "RGB", orientation: str = "apply") -> Tensor:
    """Decodes one image by its content (JPEG or PNG), whatever its name was.

    Pixels equal libjpeg-turbo's with the accurate integer DCT and fancy upsampling (PIX-1); PNG
    palettes, grey and alpha become RGB as Pillow's ``convert("RGB")`` makes them.

    Args:
        encoded: Tensor ``(n,)`` uint8 on the CPU, the bytes of the file.
        mode: ``"RGB"``.
        orientation: ``"apply"`` turns the image upright by its EXIF orientation, ``"ignore"``
            leaves the pixels as stored.

    Returns:
        Tensor ``(3, H, W)`` uint8 on the CPU; values 0..255, RGB, row-major, in memory of its own.

    Raises:
        ValueError: the image is truncated, damaged or of an unknown format.
        NotImplementedError: a kind of image that is not decoded yet, such as 12-bit JPEG.
        TypeError: ``encoded`` is not a uint8 tensor of one dimension on the CPU.

    Determinism: the same bytes give the same pixels on every machine.
    Threads: may be called from several threads at once; the GIL is released.
    Cost: one allocation for the result; ``encoded`` is not copied.
    """
    if not isinstance(encoded, Tensor):
        raise TypeError(f"encoded must be a uint8 tensor, got {type(encoded).__name__}")
    if encoded.dtype != torch.uint8 or encoded.dim() != 1 or encoded.device.type != "cpu":
        raise TypeError(
            "encoded must be a uint8 tensor of one dimension on the CPU, "
            f"got {encoded.dtype} {tuple(encoded.shape)} on {encoded.device}"
        )
    return _native.decode_image(encoded, mode, orientation)


def _decode_image_fake(encoded: Tensor, mode: str, orientation: str) -> Tensor:
    del mode, orientation  # of no influence on the shape
    context = torch.library.get_ctx()
    height, width = context.new_dynamic_size(), context.new_dynamic_size()
    return encoded.new_empty((3, height, width), dtype=torch.uint8)


torch.library.register_fake("forebay::decode_image", _decode_image_fake)
