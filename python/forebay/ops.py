"""Typed functions over ``torch.ops.forebay``: images in code that has a loader of its own.

All are stateless, run on threads of the core that end with the call, and release the GIL. Results
for a GPU are decoded by these threads and its JPEG engines and rendered by kernels, into torch's
memory, in the order of the current stream: they may be used there at once, and by torch's rules
elsewhere. What of a GPU is opened for that, at the first such call, is shared by all calls of the
process.

**Invariants**
- ERR-1: one bad item never spoils the others: strict calls name the first bad one, others
  return a mask.
- An item's result depends on its own bytes and arguments alone, not on what else is in the list,
  nor on the number of threads.
- MEM-2: results are new memory, also when nothing had to be done. On a GPU they are written after
  the current stream's work before the call, and what it does after the call finds them written.
- LIF-2: CUDA is touched by calls that name it, and no library is looked for before.

Within ``torch.compile`` the checks here are traced away; what the core refuses while compiled code
runs is RuntimeError with the same words, behind the letter of its kind.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, overload

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from . import _native, cuda, fakes  # noqa: F401  (fakes registers itself)
from .checks import as_int, check_choice, check_flag, check_int
from .placement import as_device, existing_gpu
from .transforms.base import INTERPOLATIONS, MAX_SIDE, Interpolation, interpolation_name

__all__ = ["decode_image", "decode_images", "decode_resized_crop", "resized_crop_normalize"]

# Channels; of "UNCHANGED" each file's own.
_CHANNELS = {"RGB": 3, "GRAY": 1, "RGB_ALPHA": 4}
_MODES = (*_CHANNELS, "UNCHANGED")
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_LARGEST = torch.finfo(torch.float32).max  # normalisation is done in float32

# Compiled code calls the ops themselves, and Python alone knows these folders.
_native.cuda_places(cuda.library_folders(), cuda.cuda_major(), cuda.kernel_folder())

# A list, a nested tensor, or a padded batch with its sizes.
Images: TypeAlias = "list[Tensor] | Tensor | tuple[Tensor, Tensor]"
# "cpu", "cuda", "cuda:1", or a number.
Device: TypeAlias = "str | int | torch.device"


def decode_image(encoded: Tensor, *, mode: str = "RGB", orientation: str = "apply") -> Tensor:
    """Decodes an image by its content (JPEG, PNG, WebP, BMP, TIFF, GIF, PNM), whatever its name.

    Pixels equal libjpeg-turbo's with the accurate integer DCT and fancy upsampling (PIX-1); those
    of other formats Pillow's ``convert``, of 16 bits the high byte.

    Args:
        encoded: Tensor ``(n,)`` uint8 on the CPU, the bytes of the file.
        mode: the channels, by TorchCodec's names. ``"RGB"``: 3. ``"GRAY"``: 1, as Pillow's
            ``convert("L")``. ``"RGB_ALPHA"``: 4, where a file without alpha has 255.
            ``"UNCHANGED"``: what the file stores, 1 to 4 channels; uint16 of a PNG, TIFF or
            PNM of 16 bits, and the indices of a PNG, TIFF, BMP or GIF with a palette.
        orientation: ``"apply"`` turns the image upright by its EXIF orientation, ``"ignore"``
            leaves the pixels as stored.

    Returns:
        Tensor ``(C, H, W)`` uint8 on the CPU; values 0..255, row-major, in memory of its own.

    Raises:
        ValueError: the image is truncated, damaged or of an unknown format.
        NotImplementedError: a kind of image that is not decoded, such as 12-bit JPEG; with
            ``"UNCHANGED"`` also JPEG and TIFF of four inks.
        TypeError: ``encoded`` is not a uint8 tensor of one dimension on the CPU.

    Determinism: the same bytes give the same pixels on every machine.
    Threads: may be called from several threads at once; the GIL is released.
    Cost: one allocation for the result; ``encoded`` is not copied.
    """
    _check_tensor("encoded", encoded, torch.uint8, 1)
    _check_decoding(mode, orientation)
    return _native.decode_image(encoded, mode, orientation)


@overload
def decode_images(
    encoded: Sequence[Tensor],
    *,
    mode: str = "RGB",
    orientation: str = "apply",
    layout: Literal["list"] = "list",
    strict: Literal[True] = True,
    threads: int = 0,
    device: Device = "cpu",
) -> list[Tensor]: ...


@overload
def decode_images(
    encoded: Sequence[Tensor],
    *,
    mode: str = "RGB",
    orientation: str = "apply",
    layout: Literal["list"] = "list",
    strict: Literal[False],
    threads: int = 0,
    device: Device = "cpu",
) -> tuple[list[Tensor], Tensor]: ...


@overload
def decode_images(
    encoded: Sequence[Tensor],
    *,
    mode: str = "RGB",
    orientation: str = "apply",
    layout: str,
    strict: bool = True,
    threads: int = 0,
    device: Device = "cpu",
) -> Any: ...


def decode_images(
    encoded: Sequence[Tensor],
    *,
    mode: str = "RGB",
    orientation: str = "apply",
    layout: str = "list",
    strict: bool = True,
    threads: int = 0,
    device: Device = "cpu",
) -> Images | tuple[Images, Tensor]:
    """Decodes images that keep sizes of their own; each as `decode_image` does.

    Args:
        encoded: N tensors ``(n_i,)`` uint8 on the CPU, the bytes of the files.
        mode: as of `decode_image`. ``"RGB"`` on a GPU; no ``"UNCHANGED"`` but in a list.
        orientation: ``"apply"`` or ``"ignore"`` the EXIF orientation.
        layout: ``"list"``; ``"nested"``, a nested tensor (``torch.nested``, strided); ``"padded"``,
            all in one tensor as large as the highest and the widest of them.
        strict: raise for a bad item. False: a bad item is an image of no pixels, ``(3, 0, 0)``.
        threads: how many work on the images; 0: the cores this process may use, and one within a
            DataLoader worker, beside which others work.
        device: of the images: ``"cpu"``, ``"cuda"`` (the current one), ``"cuda:1"`` or a
            ``torch.device``. The files lie on the CPU in any case.

    Returns:
        ``"list"``: N tensors ``(3, H_i, W_i)`` uint8 on ``device``, values 0..255, RGB, row-major.
        ``"nested"``: these as one nested tensor. ``"padded"``: a pair of a tensor
        ``(N, 3, max H, max W)`` uint8 with the images in their upper left corners and zeros
        elsewhere, and their sizes ``(N, 2)`` int64 on the CPU, height and width in pixels.
        With ``strict=False`` a pair of that and ``ok``, bool ``(N,)`` on the CPU, False for bad
        items.

    Raises:
        ValueError: an image is truncated, damaged or of an unknown format; the message begins
            with ``encoded[i]``, i being the first of these. Or ``device`` does not exist.
        NotImplementedError: the first bad item is of a kind that is not decoded yet. Or ``device``
            is of another kind than these two, or one of CUDA's libraries is missing.
        TypeError: an item is not a uint8 tensor of one dimension on the CPU.
        torch.OutOfMemoryError: the GPU has no memory for the images.
        RuntimeError: the GPU fails; the current stream is being captured into a graph; the process
            was forked from one that used CUDA.

    Determinism: an item's pixels depend on its bytes alone. On a GPU they are the CPU's, as far as
    its JPEG engines decode as the CPU does (docs/gpu.md).
    Threads: may be called from several threads at once; the GIL is released.
    Cost: one allocation an image; the bytes are not copied. ``"nested"`` and ``"padded"`` copy
    each image once more. For a GPU: JPEGs that its engines decode, from 32 of one subsampling on,
    are copied once, and one thread feeds the engines; other images go through page-locked memory.
    Nothing waits for the GPU but for scratch memory. The first call takes about a second, and the
    first with engines half a second.
    """
    check_choice("layout", layout, ("list", "nested", "padded"))
    if mode == "UNCHANGED" and layout != "list":
        raise ValueError(
            f"layout={layout!r} needs images of the same channels; "
            'mode="UNCHANGED" goes with layout="list"'
        )
    _check_decoding(mode, orientation)
    check_flag("strict", strict)
    threads, target = _threads(threads), _target(device)
    items = _checked_items(encoded)
    images: list[Tensor] = []
    ok = torch.empty(0, dtype=torch.bool, device="cpu")
    if items:  # without tensors the dispatcher finds no kernel
        images, ok = _native.decode_images(items, mode, orientation, strict, threads, device=target)
    laid: Images = images
    if layout == "nested":
        laid = torch.nested.nested_tensor(images, dtype=torch.uint8, device=target)
    elif layout == "padded":
        laid = _padded(images, _CHANNELS[mode], target)
    return laid if strict else (laid, ok)


@overload
def decode_resized_crop(
    encoded: Sequence[Tensor] | Tensor,
    boxes: Tensor | None = None,
    *,
    size: int | Sequence[int],
    offsets: Tensor | None = None,
    interpolation: Interpolation = "bilinear",
    antialias: bool = True,
    orientation: str = "apply",
    strict: Literal[True] = True,
    threads: int = 0,
    device: Device = "cpu",
) -> Tensor: ...


@overload
def decode_resized_crop(
    encoded: Sequence[Tensor] | Tensor,
    boxes: Tensor | None = None,
    *,
    size: int | Sequence[int],
    offsets: Tensor | None = None,
    interpolation: Interpolation = "bilinear",
    antialias: bool = True,
    orientation: str = "apply",
    strict: bool,
    threads: int = 0,
    device: Device = "cpu",
) -> Tensor | tuple[Tensor, Tensor]: ...


def decode_resized_crop(
    encoded: Sequence[Tensor] | Tensor,
    boxes: Tensor | None = None,
    *,
    size: int | Sequence[int],
    offsets: Tensor | None = None,
    interpolation: Interpolation = "bilinear",
    antialias: bool = True,
    orientation: str = "apply",
    strict: bool = True,
    threads: int = 0,
    device: Device = "cpu",
) -> Tensor | tuple[Tensor, Tensor]:
    """Decodes images, crops each to its box and resizes the crops to one size.

    Equal bit for bit to torchvision v2's ``resized_crop`` on the decoded uint8 image. Of a
    baseline JPEG only what the crop needs is decoded.

    Args:
        encoded: N tensors ``(n_i,)`` uint8 on the CPU, the bytes of the files; or one that holds
            them end to end, with ``offsets``.
        boxes: Tensor ``(N, 4)`` int64 on the CPU: left, top, right, bottom in pixels of the
            upright image (of the stored one under ``"ignore"``), right and bottom excluded. None:
            whole images.
        size: ``(height, width)`` of the crops in pixels, or one number for both.
        offsets: Tensor ``(N + 1,)`` int64 on the CPU, ascending: where each item begins in
            ``encoded``, and where the last one ends. Bytes before and after them are left alone, so
            ``offsets[2:6]`` names three of the items. This form has a static number of arguments,
            which suits ``torch.compile``.
        interpolation: ``"bilinear"``, ``"bicubic"``, ``"nearest"`` or ``"nearest-exact"``.
        antialias: stretch the filter where a crop is made smaller.
        orientation: ``"apply"`` or ``"ignore"`` the EXIF orientation.
        strict: raise for a bad item. False: a bad item is zeros.
        threads: as for `decode_images`.
        device: of the crops, as for `decode_images`. Files, boxes and offsets lie on the CPU.

    Returns:
        Tensor ``(N, 3, height, width)`` uint8 on ``device``, values 0..255, RGB, row-major. With
        ``strict=False`` a pair of it and ``ok``, bool ``(N,)`` on the CPU, False for bad items.

    Raises:
        ValueError: an image is damaged, or a box is empty or reaches out of its image; the
            message begins with ``encoded[i]``, i being the first of these. Or an argument is
            out of range.
        NotImplementedError: as for `decode_images`.
        TypeError: an argument is of a wrong type.
        torch.OutOfMemoryError: the GPU has no memory for the batch.
        RuntimeError: as for `decode_images`.

    Determinism: an item's crop depends on its bytes and box alone. On a GPU it is the CPU's, as
    for `decode_images`.
    Threads: may be called from several threads at once; the GIL is released.
    Cost: one allocation for the batch; no decoded image is kept whole, apart from formats other
    than JPEG and JPEG that has to be turned. For a GPU as for `decode_images`; what a thread
    decodes is what the crop needs, and what an engine decodes the whole image.
    """
    _check_decoding("RGB", orientation)
    check_flag("antialias", antialias)
    check_flag("strict", strict)
    target = _target(device)
    how = [_size(size), _interpolation(interpolation), antialias, orientation, strict]
    if isinstance(encoded, Tensor):
        if offsets is None:
            raise TypeError(
                "encoded is one tensor, so offsets must say where its items begin; pass offsets=, "
                "or a list of tensors"
            )
        _check_tensor("encoded", encoded, torch.uint8, 1)
        _check_tensor("offsets", offsets, torch.int64, 1)
        if offsets.shape[0] == 0:
            raise ValueError("offsets must hold one number more than there are items, got none")
        which = _boxes(boxes, offsets.shape[0] - 1)
        batch, ok = _native.decode_resized_crop_packed(
            encoded, offsets, which, *how, _threads(threads), device=target
        )
    else:
        if offsets is not None:
            raise TypeError("offsets belong to one packed tensor, got a list; leave offsets out")
        items = _checked_items(encoded)
        batch, ok = _native.decode_resized_crop(
            items, _boxes(boxes, len(items)), *how, _threads(threads), device=target
        )
    return batch if strict else (batch, ok)


def resized_crop_normalize(
    images: Tensor,
    boxes: Tensor | None = None,
    *,
    size: int | Sequence[int],
    flip: Tensor | None = None,
    mean: Sequence[float],
    std: Sequence[float],
    dtype: torch.dtype = torch.float32,
    interpolation: Interpolation = "bilinear",
    antialias: bool = True,
    threads: int = 0,
) -> Tensor:
    """Crops, resizes, mirrors and normalises images that are decoded already, in one pass.

    Equal bit for bit, in float32, to torchvision v2's ``resized_crop``, ``horizontal_flip``,
    ``to_dtype(scale=True)`` and ``normalize``. The half types are computed in float32 and rounded
    once.

    Args:
        images: Tensor ``(N, 3, H, W)`` uint8 on the CPU or a GPU, values 0..255; contiguous or
            channels_last (so a ``(N, H, W, 3)`` batch may be passed as a permuted view).
        boxes: as for `decode_resized_crop`, in pixels of ``images``.
        size: ``(height, width)`` of the results in pixels, or one number for both.
        flip: Tensor ``(N,)`` bool on the CPU: mirror left and right after the crop. None: none.
        mean: of each of the three channels, on the 0..1 scale.
        std: likewise, above 0.
        dtype: ``torch.float32``, ``torch.float16`` or ``torch.bfloat16``.
        interpolation: as for `decode_resized_crop`.
        antialias: as for `decode_resized_crop`.
        threads: as for `decode_images`; what they prepare for a GPU takes them little time.

    Returns:
        Tensor ``(N, 3, height, width)`` of ``dtype`` on the device of ``images``, contiguous;
        values ``(pixel / 255 - mean) / std``.

    Raises:
        ValueError: a box is empty or reaches out of its image (the message begins with
            ``images[i]``), or an argument is out of range.
        NotImplementedError: one of CUDA's libraries is missing.
        TypeError: an argument is of a wrong type.
        torch.OutOfMemoryError: the GPU has no memory for the batch.
        RuntimeError: as for `decode_images`.

    Determinism: an image's result depends on its pixels, box and flip alone, and is the same bits
    on the CPU and on a GPU.
    Threads: may be called from several threads at once; the GIL is released.
    Cost: one allocation for the batch; pixels are read and written once. On a GPU two launches for
    some 200 MiB of images, after one upload of tables; pixels are read where they lie, and nothing
    waits for the GPU but for scratch memory.
    """
    _check_tensor("images", images, torch.uint8, 4, contiguous=False, devices=("cpu", "cuda"))
    check_flag("antialias", antialias)
    if dtype not in _FLOATS:
        right = ", ".join(map(str, _FLOATS))
        kind = ValueError if isinstance(dtype, torch.dtype) else TypeError
        raise kind(f"dtype must be one of {right}, got {dtype!r}")
    if flip is None:
        flip = torch.empty(0, dtype=torch.bool, device="cpu")
    else:
        _check_tensor("flip", flip, torch.bool, 1)
        if flip.shape[0] != images.shape[0]:
            raise ValueError(f"flip must hold one per image ({images.shape[0]}), got {len(flip)}")
    return _native.resized_crop_normalize(
        images,
        _boxes(boxes, images.shape[0]),
        flip,
        _size(size),
        _channels("mean", mean),
        _channels("std", std),
        dtype,
        _interpolation(interpolation),
        antialias,
        _threads(threads),
    )


def _check_decoding(mode: object, orientation: object) -> None:
    check_choice("mode", mode, _MODES)
    check_choice("orientation", orientation, ("apply", "ignore"))


def _target(device: object) -> torch.device:
    target = as_device(device)
    # Compiled code may run where it is not compiled: there the op finds the current device.
    if target.type == "cuda" and not torch.compiler.is_compiling():
        target = existing_gpu(target)
    return target


def _check_tensor(
    name: str,
    value: object,
    dtype: torch.dtype,
    dims: int,
    contiguous: bool = True,
    devices: tuple[str, ...] = ("cpu",),
) -> None:
    where = "the CPU or a GPU" if "cuda" in devices else "the CPU"
    right = f"{name} must be a {dtype} tensor of {dims} dimension{'s' * (dims > 1)} on {where}"
    if not isinstance(value, Tensor):
        hint = ""
        if dtype == torch.uint8 and isinstance(value, (bytes, bytearray)):
            hint = "; use torch.frombuffer(bytearray(data), dtype=torch.uint8)"
        elif dtype == torch.uint8 and isinstance(value, (str, os.PathLike)):
            hint = "; read the file first, as torchvision.io.read_file does"
        raise TypeError(f"{right}, got {type(value).__name__}{hint}")
    if value.dtype != dtype or value.dim() != dims or value.device.type not in devices:
        got = f"{value.dtype} {tuple(value.shape)} on {value.device}"
        raise TypeError(f"{right}, got {got}")
    if contiguous and not value.is_contiguous():
        raise TypeError(f"{name} must be contiguous, got strides {value.stride()}; .contiguous()")


def _checked_items(encoded: Sequence[Tensor]) -> list[Tensor]:
    if not isinstance(encoded, Sequence) or isinstance(encoded, (str, bytes)):
        raise TypeError(f"encoded must be a list of uint8 tensors, got {type(encoded).__name__}")
    for place, item in enumerate(encoded):
        _check_tensor(f"encoded[{place}]", item, torch.uint8, 1)
    return list(encoded)


def _boxes(boxes: Tensor | None, count: int) -> Tensor:
    if boxes is None:
        return torch.empty((0, 4), dtype=torch.int64, device="cpu")
    _check_tensor("boxes", boxes, torch.int64, 2)
    if boxes.shape[0] != count or boxes.shape[1] != 4:
        raise ValueError(f"boxes must be ({count}, 4), one per item, got {tuple(boxes.shape)}")
    return boxes


def _size(size: int | Sequence[int]) -> list[int]:
    given: Any = size.tolist() if hasattr(size, "tolist") else size
    listed = list(given) if isinstance(given, (list, tuple)) else [given, given]
    sides = [side for side in map(as_int, listed) if side is not None]
    wrong = f"size must be (height, width) or one int, of 1..{MAX_SIDE}, got {{!r}}"
    if len(sides) < len(listed):
        raise TypeError(wrong.format(size))
    if len(sides) != 2 or not all(1 <= side <= MAX_SIDE for side in sides):
        raise ValueError(wrong.format(size))
    return sides


def _channels(name: str, given: object) -> list[float]:
    listed: Any = given.tolist() if hasattr(given, "tolist") else given
    wrong = f"{name} must hold 3 numbers, finite in float32, one for each channel, got {{!r:.80}}"
    if not isinstance(listed, (list, tuple)) or any(
        isinstance(value, (str, bytes, bool)) for value in listed
    ):
        raise TypeError(wrong.format(given))
    try:
        values = [float(value) for value in listed]
    except TypeError:
        raise TypeError(wrong.format(given)) from None
    except OverflowError:  # an int beyond all floats
        raise ValueError(wrong.format(given)) from None
    if len(values) != 3 or not all(-_LARGEST <= value <= _LARGEST for value in values):
        raise ValueError(wrong.format(given))
    return values


def _interpolation(given: Interpolation) -> str:
    name = interpolation_name(given)
    if name is None:
        raise ValueError(f"interpolation must be one of {', '.join(INTERPOLATIONS)}, got {given!r}")
    return name


def _threads(threads: int) -> int:
    threads = check_int("threads", threads, least=0)
    if threads == 0 and not torch.compiler.is_compiling() and get_worker_info() is not None:
        return 1
    return threads


def _padded(images: list[Tensor], channels: int, device: torch.device) -> tuple[Tensor, Tensor]:
    sizes = torch.tensor(
        [image.shape[1:] for image in images], dtype=torch.int64, device="cpu"
    ).reshape(-1, 2)
    height, width = sizes.amax(0).tolist() if images else (0, 0)
    batch = torch.zeros((len(images), channels, height, width), dtype=torch.uint8, device=device)
    for place, image in enumerate(images):
        batch[place, :, : image.shape[1], : image.shape[2]] = image
    return batch, sizes
