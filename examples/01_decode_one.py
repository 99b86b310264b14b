"""Decodes one image: python 01_decode_one.py [FILE]. Without a file it makes one."""

import io
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from forebay import ops


def made_photo() -> bytes:
    """A JPEG of 240 rows and 320 columns that lies on its side, as its EXIF block says."""
    rng = np.random.default_rng(0)
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    pixels = rng.integers(0, 256, (240, 320, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def main() -> None:
    """Decodes it upright and as stored, then a file that is cut off."""
    data = Path(sys.argv[1]).read_bytes() if len(sys.argv) > 1 else made_photo()
    encoded = torch.frombuffer(bytearray(data), dtype=torch.uint8)  # (n,) uint8

    upright = ops.decode_image(encoded)
    stored = ops.decode_image(encoded, orientation="ignore")
    print("upright", tuple(upright.shape), upright.dtype)  # (3, 320, 240) for the made one
    print("stored ", tuple(stored.shape), stored.dtype)  # (3, 240, 320)

    try:
        ops.decode_image(encoded[: len(encoded) // 2])
    except ValueError as error:
        print("half   ", error)


if __name__ == "__main__":
    main()
