"""From what the user passes as ``transforms=`` to the recipe that the core reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import transforms
from .transforms import (
    INSTEAD,
    CenterCrop,
    Crop,
    RandomCrop,
    RandomResizedCrop,
    Resize,
    Transform,
)


def checked_transforms(given: object) -> tuple[Transform, ...]:
    """The recipe's transforms.

    Raises:
        TypeError: something in the list is not a transform at all.
        NotImplementedError: a transform that is not offered.
        ValueError: images would keep sizes of their own, so that no batch can hold them.
    """
    listed: Iterable[Any] = ()
    if isinstance(given, Iterable):
        listed = given
    elif given is not None:
        listed = [given]
    recipe = tuple(_checked(place, transform) for place, transform in enumerate(listed))
    fixed = any(
        isinstance(step, (RandomResizedCrop, CenterCrop, Crop, RandomCrop))
        or (isinstance(step, Resize) and isinstance(step.size, tuple) and len(step.size) == 2)
        for step in recipe
    )
    if not fixed:
        names = ", ".join(type(step).__name__ for step in recipe) or "nothing"
        raise ValueError(
            f"transforms must give every image the same size, got {names}; add "
            "Resize((height, width)), RandomResizedCrop, CenterCrop, Crop or RandomCrop"
        )
    return recipe


def _checked(place: int, step: Any) -> Transform:
    if isinstance(step, Transform):
        return step
    where = f"transforms[{place}]"
    if isinstance(step, type) and issubclass(step, Transform):
        raise TypeError(f"{where} is the class {step.__name__}; write {step.__name__}(...)")
    kind = step if isinstance(step, type) else type(step)
    name = getattr(step, "__name__", kind.__name__)
    if kind.__module__.startswith("torchvision."):
        if name in INSTEAD:
            raise TypeError(f"{where} is torchvision's {name}; {INSTEAD[name]}")
        if name in transforms.__all__:
            raise TypeError(f"{where} is torchvision's {name}; use forebay.transforms.{name}")
        raise NotImplementedError(f"{where} is torchvision's {name}, {_offered()}")
    if callable(step):
        raise NotImplementedError(
            f"{where} is a Python callable ({name}); transforms run outside Python: use those of "
            "forebay.transforms, or apply it to the batch in the training loop"
        )
    raise TypeError(f"{where} must be one of forebay.transforms, got {name}")


def _offered() -> str:
    names = ", ".join(name for name in transforms.__all__ if name != "Transform")
    return f"which is not offered; forebay.transforms has {names}"
