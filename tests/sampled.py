"""JPEGs of any sampling factors, which no encoder at hand writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Zigzag order (figure A.6 of the JPEG standard): along each diagonal, every other one backwards.
ZIGZAG = sorted(
    range(64), key=lambda at: (at // 8 + at % 8, at // 8 if (at // 8 + at % 8) % 2 else at % 8)
)
STEP = 6
# Codes of one length each: 12 of four bits for DC, all runs and sizes in eight bits for AC.
DC = list(range(12))
AC = [0x00, 0xF0, *(run << 4 | size for run in range(16) for size in range(1, 11))]


def sampled_jpeg(
    width: int, height: int, factors: Sequence[tuple[int, int]], seed: int = 0
) -> bytes:
    """A baseline YCbCr JPEG of some texture; ``factors``: across and down, by component."""
    rng = np.random.default_rng(seed)
    across, down = (max(of[axis] for of in factors) for axis in (0, 1))
    columns, rows = -(-width // (8 * across)), -(-height // (8 * down))
    components = [
        _blocks(rng, 8 * rows * vertical, 8 * columns * horizontal)
        for horizontal, vertical in factors
    ]
    bits, before = [], [0] * len(factors)
    for row in range(rows):
        for column in range(columns):
            for number, (horizontal, vertical) in enumerate(factors):
                for y in range(row * vertical, (row + 1) * vertical):
                    for x in range(column * horizontal, (column + 1) * horizontal):
                        block = components[number][y, x]
                        bits.append(_coded(block, int(block[0]) - before[number]))
                        before[number] = int(block[0])
    frame = bytes([8, *divmod(height, 256), *divmod(width, 256), len(factors)])
    frame += b"".join(bytes([at + 1, h << 4 | v, 0]) for at, (h, v) in enumerate(factors))
    scan = bytes([len(factors), *(part for at in range(len(factors)) for part in (at + 1, 0))])
    return b"".join([
        b"\xff\xd8",
        _segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0"),
        _segment(0xDB, bytes([0, *[STEP] * 64])),
        _segment(0xC0, frame),
        _segment(0xC4, bytes([0x00, *([0, 0, 0, len(DC)] + [0] * 12), *DC])),
        _segment(0xC4, bytes([0x10, *([0] * 7 + [len(AC)] + [0] * 8), *AC])),
        _segment(0xDA, scan + bytes([0, 63, 0])),
        _stuffed("".join(bits)),
        b"\xff\xd9",
    ])  # fmt: skip


def _segment(marker: int, content: bytes) -> bytes:
    return bytes([0xFF, marker, *divmod(len(content) + 2, 256)]) + content


def _blocks(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Quantised coefficients in zigzag order, (rows, columns, 64)."""
    y, x = np.mgrid[:height, :width]
    plane = 60 * np.sin(x / rng.uniform(2, 9)) + 50 * np.cos(y / rng.uniform(2, 9))
    plane = np.clip(plane + rng.normal(0, 9, plane.shape), -128, 127)
    places = np.arange(8)
    basis = np.cos((2 * places[None] + 1) * places[:, None] * np.pi / 16) / 2
    basis[0] /= np.sqrt(2)
    blocks = plane.reshape(height // 8, 8, width // 8, 8).transpose(0, 2, 1, 3)
    coefficients = basis @ blocks @ basis.T
    return np.rint(coefficients / STEP).astype(int).reshape(*blocks.shape[:2], 64)[..., ZIGZAG]


def _coded(block: np.ndarray, difference: int) -> str:
    size, bits = _value(difference)
    coded = f"{DC.index(size):04b}{bits}"
    run = 0
    for value in block[1:]:
        if value == 0:
            run += 1
            continue
        while run > 15:
            coded += f"{AC.index(0xF0):08b}"
            run -= 16
        size, bits = _value(int(value))
        coded += f"{AC.index(run << 4 | size):08b}{bits}"
        run = 0
    return coded + f"{AC.index(0):08b}" if run else coded


def _value(value: int) -> tuple[int, str]:
    """Its size, and its bits (F.1.2.1)."""
    size = abs(value).bit_length()
    number = value if value >= 0 else value + (1 << size) - 1
    return size, f"{number:0{size}b}" if size else ""


def _stuffed(bits: str) -> bytes:
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
