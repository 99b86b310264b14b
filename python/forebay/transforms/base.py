"""What all transforms are made of: data that the core reads, and checks of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar, Protocol, TypeAlias, TypeGuard

import torch

from ..checks import as_int

DTYPES = {
    torch.uint8: "uint8",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
}
# Height and width of what the core makes.
MAX_SIDE = 65_535
INTERPOLATIONS = ("bilinear", "bicubic", "nearest", "nearest-exact")
PADDING_MODES = ("constant", "edge", "reflect", "symmetric")
# Pillow's numbers, which torchvision accepts too.
_PILLOW_INTERPOLATIONS = {0: "nearest", 2: "bilinear", 3: "bicubic"}


class _InterpolationMode(Protocol):
    """``torchvision.transforms.InterpolationMode``, without importing torchvision."""

    @property
    def value(self) -> str: ...


Interpolation: TypeAlias = "str | int | _InterpolationMode"
Size: TypeAlias = "int | Sequence[int]"
Range: TypeAlias = "float | Sequence[float] | None"


class Transform:
    """One step of a recipe."""

    # Done to a whole batch, and not to each image.
    of_batch: ClassVar[bool] = False

    def to_dict(self) -> dict[str, Any]:
        """The transform as the core reads it; sizes are ``[height, width]``."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"name": type(self).__name__} | {name: _plain(value) for name, value in own.items()}

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _wrong(self, argument: str, got: object, right: str) -> ValueError:
        return ValueError(f"{type(self).__name__}: {argument} must be {right}, got {got!r}")


@dataclass(frozen=True)
class Perhaps(Transform):
    """One that is done with probability ``p``, and has no other argument."""

    p: float = 0.5

    def __post_init__(self) -> None:
        """Checks the probability."""
        check_probability(self, self.p)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.to_dict() if isinstance(value, Transform) else value


def dtype_name(dtype: object, argument: str) -> str:
    """The core's name of an element type that images may have."""
    if isinstance(dtype, torch.dtype) and dtype in DTYPES:
        return DTYPES[dtype]
    right = ", ".join(str(known) for known in DTYPES)
    kind = ValueError if isinstance(dtype, torch.dtype) else TypeError
    raise kind(f"{argument} must be one of {right}, got {dtype!r}")


def interpolation_name(given: object) -> str | None:
    """The core's name of a filter; None if it is none of those offered."""
    if isinstance(given, int):
        name = _PILLOW_INTERPOLATIONS.get(given, "")
    else:
        name = given if isinstance(given, str) else getattr(given, "value", "")
    return name if name in INTERPOLATIONS else None


def flag(owner: Transform, argument: str, value: object) -> bool:
    """A truth value."""
    if isinstance(value, bool):
        return value
    raise owner._wrong(argument, value, "True or False")


def whole(owner: Transform, argument: str, value: object, least: int) -> int:
    """A whole number from ``least`` on."""
    number = as_int(value)
    if number is None or number < least:
        raise owner._wrong(argument, value, f"a whole number from {least} on")
    return number


def sides_of(owner: Transform, value: object, argument: str, least: int = 1) -> tuple[int, ...]:
    """One length or several, of ``least`` on."""
    listed = tuple(value) if isinstance(value, Sequence) else (value,)
    sides = tuple(side for side in map(as_int, listed) if side is not None)
    if not sides or len(sides) < len(listed) or not least <= min(sides) <= max(sides) <= MAX_SIDE:
        raise owner._wrong(argument, value, f"an int of {least}..{MAX_SIDE}, or a sequence of them")
    return sides


def pair(owner: Transform, value: object) -> tuple[int, int]:
    """Height and width, of one number or two."""
    sides = sides_of(owner, value, "size")
    if len(sides) > 2:
        raise owner._wrong("size", value, "one number or (height, width)")
    return sides[0], sides[-1]


def numbers(owner: Transform, argument: str, value: object, count: int) -> tuple[float, ...]:
    """So many numbers."""
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == count:
        if all(is_number(part) for part in value):
            return tuple(float(part) for part in value)
    raise owner._wrong(argument, value, f"{count} numbers")


def per_channel(owner: Transform, argument: str, value: object) -> tuple[float, ...]:
    """Three numbers, of one for all or one for each."""
    if isinstance(value, (int, float)):
        return (float(value),) * 3
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and len(value) == 1:
        value = tuple(value) * 3
    return numbers(owner, argument, value, 3)


def check_probability(owner: Transform, p: object) -> None:
    """Normalises ``p``, too."""
    if not is_number(p) or not 0 <= p <= 1:
        raise owner._wrong("p", p, "a probability in 0..1")
    owner._set(p=float(p))


def is_number(value: object) -> TypeGuard[float]:
    """Those of numpy count, too, and truth values do not."""
    return isinstance(value, Real) and not isinstance(value, bool)
