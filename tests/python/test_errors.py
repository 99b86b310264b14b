"""Errors keep kind and text on their way from Rust through C++ and torch to Python."""

import pickle

import pytest
import torch

import forebay
from forebay import _native
from forebay import transforms as T
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
    ("O", torch.OutOfMemoryError),
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


class Broken:
    """The ops, one of which raises a kind of the core's errors, or panics if there is no kind."""

    def __init__(self, name, number):
        self._name, self._number = name, number

    def __getattr__(self, name):
        if name != self._name:
            return getattr(torch.ops.forebay, name)
        if self._number is None:
            return lambda *_: torch.ops.forebay._panic()
        return lambda *_: torch.ops.forebay._raise(self._number)


ALL_KINDS = [*enumerate(kind for _, kind in KINDS), (None, RuntimeError)]


def check(caught, kind):
    assert type(caught.value) is kind
    text = str(caught.value)
    assert "on request" in text
    assert text[1] != ":", "the letter never reaches the user"
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


@pytest.mark.parametrize(("number", "kind"), ALL_KINDS)
def test_every_kind_comes_out_of_forebay_ops(monkeypatch, number, kind):
    monkeypatch.setattr(_native, "_ops", Broken("decode_image", number))
    with pytest.raises(kind) as caught:
        forebay.ops.decode_image(torch.zeros(4, dtype=torch.uint8))
    check(caught, kind)


@pytest.mark.parametrize(("number", "kind"), ALL_KINDS)
def test_every_kind_comes_out_of_a_loader(monkeypatch, make_loader, number, kind):
    loader = make_loader(batch_size=4)
    iterator = iter(loader)
    next(iterator)
    with monkeypatch.context() as patch:
        patch.setattr(_native, "_ops", Broken("pipeline_next", number))
        with pytest.raises(kind) as caught:
            next(iterator)
    check(caught, kind)
    assert len(list(iterator)) == 15, "what the core did not say changes nothing"


@pytest.mark.parametrize(
    ("op", "use"),
    [
        ("pipeline_open", iter),
        ("pipeline_start", iter),
        ("pipeline_next", next),
        ("pipeline_state", lambda loader: loader.state_dict()),
        ("pipeline_check_state", lambda loader: loader.load_state_dict(STATE)),
        ("pipeline_stats", lambda loader: loader.stats()),
        ("pipeline_describe", lambda loader: loader.describe()),
        ("scan_folder", lambda loader: len(loader.source)),
        ("scan_poll", lambda loader: len(loader.source)),
    ],
)
def test_every_call_of_a_loader_translates(monkeypatch, make_loader, folder, op, use):
    loader = make_loader(forebay.ImageFolder(folder), transforms=[T.CenterCrop(8)])
    if op.startswith("pipeline_") and op != "pipeline_open":
        iterator = iter(loader)
        use = use if use is not next else lambda _: next(iterator)
    monkeypatch.setattr(_native, "_ops", Broken(op, 2))
    with pytest.raises(TypeError) as caught:
        use(loader)
    check(caught, TypeError)


STATE = {"version": 1, "fingerprint": "0" * 16, "seed": 0, "epoch": 0, "position": 0}


def test_a_panic_is_an_error_and_the_process_lives_on():
    for _ in range(3):
        with pytest.raises(RuntimeError, match=r"internal error.*report"), _native.native_errors():
            torch.ops.forebay._panic()


def test_ops_reject_wrong_handles():
    for handle in (torch.zeros(3, dtype=torch.int64), torch.zeros(1), torch.arange(5)):
        with pytest.raises(RuntimeError):
            torch.ops.forebay.pipeline_next(handle, 0)


def test_a_wrong_handle_is_called_by_what_was_expected():
    other = torch.zeros(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="expected a scan handle"):
        torch.ops.forebay.scan_poll(other, 0)
    with pytest.raises(RuntimeError, match="expected a pipeline handle"):
        torch.ops.forebay.pipeline_state(other)


def test_a_message_goes_on_after_a_nul():
    scan = _native.Scan("/no\0where", (".jpg",))
    with pytest.raises(OSError, match=r"/no\\0where: .") as caught:
        while scan.poll(50) is None:
            pass
    assert "\0" not in str(caught.value)


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
