"""Errors keep kind and text on their way from Rust through C++ and torch to Python."""

import pickle

import pytest
import torch

import forebay
from forebay import _native
from forebay.errors import Failure

# Kinds in the core's order, with the letter that carries each.
KINDS = [
    ("V", ValueError),
    ("I", IndexError),
    ("T", TypeError),
    ("D", ValueError),
    ("N", NotImplementedError),
    ("F", OSError),
    ("P", FileNotFoundError),
    ("M", MemoryError),
    ("G", RuntimeError),
    ("C", forebay.ClosedError),
    ("X", RuntimeError),
]


@pytest.mark.parametrize("prefix", ["", "forebay::decode_image: ", "torch says\n"])
@pytest.mark.parametrize("suffix", ["", "\nException raised from op at error.h:20\n#0 x"])
@pytest.mark.parametrize(("letter", "kind"), KINDS)
def test_the_letter_names_the_type(letter, kind, prefix, suffix):
    message = "internal error: size: got 3, expected 4"
    error = _native.native_exception(RuntimeError(f"{prefix}{letter}:{message}{suffix}"))
    assert type(error) is kind
    assert str(error) == message


def test_torchs_own_errors_pass_unchanged():
    for error in (
        RuntimeError("forebay::decode_image() is missing value for argument 'mode'"),
        NotImplementedError("V:Could not run on backend"),
    ):
        assert _native.native_exception(error) is error


@pytest.mark.parametrize(("number", "kind"), list(enumerate(kind for _, kind in KINDS)))
def test_every_kind_makes_the_round_trip(number, kind):
    with pytest.raises(RuntimeError, match="raised on request") as bare:
        torch.ops.forebay._raise(number)
    assert type(bare.value) is RuntimeError
    with pytest.raises(kind, match="raised on request") as native, _native.native_errors():
        torch.ops.forebay._raise(number)
    assert type(native.value) is kind


def test_a_panic_is_an_error_and_the_process_lives_on():
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"internal error.*report"), _native.native_errors():
            torch.ops.forebay._panic()


def test_ops_reject_wrong_handles():
    for handle in (torch.zeros(3, dtype=torch.int64), torch.zeros(1), torch.arange(5)):
        with pytest.raises(RuntimeError):
            torch.ops.forebay.pipeline_next(handle, 0)


def test_sample_errors_have_fields_and_pickle():
    failures = [Failure(3, 17, "a.jpg", "decode", "truncated"), Failure(5, 2, "b", "read", "gone")]
    error = forebay.SampleError(17, "a.jpg", "decode", "truncated", failures)
    assert str(error) == (
        "a.jpg: decode: truncated (sample 17) (and 1 more in this batch, see .failures)"
    )
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.index, copy.key, copy.stage, copy.reason) == (17, "a.jpg", "decode", "truncated")
    assert copy.failures == tuple(failures)
    assert str(copy) == str(error)


def test_the_letter_never_reaches_the_user(make_loader, paths):
    loader = make_loader(forebay.FileList(paths), fields=("image", "valid"))
    loader.close()
    with pytest.raises(forebay.ClosedError) as caught:
        iter(loader)
    assert not str(caught.value).startswith("C:")
