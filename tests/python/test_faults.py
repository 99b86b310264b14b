"""ERR-1, ERR-2: a bad sample is a value; nothing is silent and nothing shifts."""

import json
from pathlib import Path

import pytest
import torch

import forebay
from forebay import transforms as T
from images import jpeg, photo, write_list

BAD = 17


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def remove(path):
    path.unlink()


def make_folder(path):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "half": (cut, "decode"),
    "empty": (lambda path: path.write_bytes(b""), "decode"),
    "text": (lambda path: path.write_text("not an image"), "decode"),
    "header only": (lambda path: path.write_bytes(jpeg(photo(40, 40))[:200]), "decode"),
    "no end": (lambda path: path.write_bytes(path.read_bytes()[:-2]), "decode"),
    "folder": (make_folder, "read"),
    "missing": (remove, "read"),
}


@pytest.fixture
def damaged(tmp_path):
    """Writes 64 JPEGs, one of them damaged."""

    def damaged(kind, numbers=(BAD,)):
        paths = write_list(tmp_path, 64)
        for number in numbers:
            DAMAGE[kind][0](Path(paths[number]))
        return forebay.FileList(paths, labels=list(range(64)))

    return damaged


def logged(log):
    """The indices of the quarantine log's lines; failed replacements have lines of their own."""
    return [json.loads(line)["index"] for line in log.read_text().splitlines()]


def to_the_end(iterator):
    """What an iterator delivers and what it raises."""
    delivered, errors = [], []
    while True:
        try:
            delivered.append(next(iterator))
        except forebay.SampleError as error:
            errors.append(error)
        except StopIteration:
            return delivered, errors


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", DAMAGE)
def test_t01_t02_raise_names_the_sample_and_goes_on(
    damaged, make_loader, tmp_path, device, kind, num_workers
):
    source, log = damaged(kind), tmp_path / "bad.jsonl"
    loader = make_loader(source, num_workers=num_workers, quarantine=log, device=device)
    delivered, errors = to_the_end(iter(loader))
    numbers = [number for number in range(64) if number // 8 != BAD // 8]
    assert [labels.tolist() for _, labels in delivered] == [
        numbers[at : at + 8] for at in range(0, 56, 8)
    ]
    assert logged(log) == [BAD]
    stats = loader.stats()
    assert (stats["bad_samples"], stats["dropped_samples"], stats["batches"]) == (1, 7, 8)
    [error] = errors
    assert (error.index, error.stage) == (BAD, DAMAGE[kind][1])
    assert error.key == source.key(BAD)
    assert source.key(BAD) in str(error)
    assert [failure.index for failure in error.failures] == [BAD]


@pytest.mark.parametrize("kind", DAMAGE)
def test_t01_t02_skip_leaves_a_marked_hole(damaged, make_loader, tmp_path, device, kind):
    log, fields = tmp_path / "bad.jsonl", ("image", "label", "valid")
    loader = make_loader(
        damaged(kind), on_error="skip", fields=fields, quarantine=log, device=device
    )
    images, labels, valid = map(torch.cat, zip(*loader, strict=True))
    assert labels.tolist() == [-100 if number == BAD else number for number in range(64)]
    assert valid.tolist() == [number != BAD for number in range(64)]
    assert not images[BAD].any()
    assert all(image.any() for image, good in zip(images, valid, strict=True) if good)
    assert logged(log) == [BAD]
    stats = loader.stats()
    assert (stats["bad_samples"], stats["skipped"], stats["samples"]) == (1, 1, 63)


@pytest.mark.parametrize("kind", DAMAGE)
def test_t01_t02_replace_fills_the_slot(damaged, make_loader, tmp_path, device, kind):
    source, log = damaged(kind), tmp_path / "bad.jsonl"

    def run(**keywords):
        log.unlink(missing_ok=True)
        loader = make_loader(
            source,
            on_error="replace",
            fields=("image", "label", "valid"),
            quarantine=log,
            device=device,
            **keywords,
        )
        columns = [torch.cat(column) for column in zip(*loader, strict=True)]
        assert set(logged(log)) == {BAD}
        assert (loader.stats()["samples"], loader.stats()["replaced"]) == (64, 1)
        return columns

    images, labels, valid = run()
    assert valid.all()
    assert labels[BAD] != BAD
    kept = [number for number in range(64) if number != BAD]
    assert labels[kept].tolist() == kept
    again = run(num_workers=1, batch_size=16)
    assert torch.equal(again[0], images)
    assert torch.equal(again[1], labels)


def test_faults_change_no_other_sample_and_no_state(damaged, make_loader, tmp_path, device):
    keywords = {"shuffle": True, "fields": ("image", "index", "valid"), "device": device}
    bad = make_loader(damaged("half", (3, 40)), on_error="skip", **keywords)
    bad_images, bad_index, bad_valid = map(torch.cat, zip(*bad, strict=True))
    state = bad.state_dict()
    good_source = forebay.FileList(write_list(tmp_path, 64), labels=list(range(64)))
    good = make_loader(good_source, on_error="skip", **keywords)
    images, index, _ = map(torch.cat, zip(*good, strict=True))
    assert torch.equal(index, bad_index)
    assert torch.equal(images[bad_valid], bad_images[bad_valid])
    assert (state["epoch"], state["position"]) == (1, 0)


def test_a_batch_that_raised_counts_as_delivered(damaged, make_loader, device):
    """ERR-1 with RES-1: a state saved after SampleError goes on behind the bad batch."""
    source = damaged("half")
    iterator = iter(loader := make_loader(source, shuffle=False, device=device))
    for _ in range(2):
        next(iterator)
    with pytest.raises(forebay.SampleError):
        next(iterator)
    state = loader.state_dict()
    assert (state["epoch"], state["position"]) == (0, 24)
    resumed = make_loader(source, num_workers=1, device=device)
    resumed.load_state_dict(state)
    expected = [labels.tolist() for _, labels in iterator]
    assert [labels.tolist() for _, labels in resumed] == expected
    assert [number for labels in expected for number in labels] == list(range(24, 64))


@pytest.mark.parametrize("recipe", [T.CenterCrop(8), T.RandomResizedCrop(8), T.Resize((8, 8))])
def test_err_2_the_verdict_does_not_depend_on_the_crop(make_loader, tmp_path, device, recipe):
    """Rows 0 to 240 of 400 are there, and no crop needs all of the rest."""
    data = jpeg(photo(400, 120))
    path = tmp_path / "a.jpg"
    path.write_bytes(data[: 6 * len(data) // 10])
    loader = make_loader(
        forebay.FileList([path] * 50),
        transforms=[recipe],
        on_error="skip",
        fields="valid",
        device=device,
    )
    assert not any(valid.any() for valid in loader)
    assert loader.stats()["bad_samples"] == 50


def test_several_bad_samples_are_all_told(damaged, make_loader, device):
    with pytest.raises(forebay.SampleError) as caught:
        next(iter(make_loader(damaged("half", (5, 2, 7)), device=device)))
    assert caught.value.index == 2
    assert [failure.index for failure in caught.value.failures] == [2, 5, 7]


def test_replace_gives_up_when_everything_is_bad(damaged, make_loader, device):
    loader = make_loader(damaged("empty", range(64)), on_error="replace", device=device)
    with pytest.raises(forebay.SampleError) as caught:
        next(iter(loader))
    assert max(failure.attempt for failure in caught.value.failures) == 8


def test_max_errors_fails_the_epoch(damaged, make_loader):
    loader = make_loader(
        damaged("empty", range(20)), on_error="skip", max_errors=10, fields=("image", "valid")
    )
    with pytest.raises(Exception, match="10") as caught:
        for _ in loader:
            pass
    assert not isinstance(caught.value, forebay.SampleError)


def test_the_quarantine_log_has_a_line_per_failure(damaged, make_loader, tmp_path):
    log = tmp_path / "bad.jsonl"
    source = damaged("half", (3, 40))
    loader = make_loader(source, on_error="skip", fields=("image", "valid"), quarantine=log)
    for _ in range(2):
        for _ in loader:
            pass
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["epoch"], line["index"]) for line in lines] == [(0, 3), (0, 40), (1, 3), (1, 40)]
    assert lines[0] == {
        "epoch": 0,
        "position": 3,
        "index": 3,
        "key": source.key(3),
        "stage": "decode",
        "reason": lines[0]["reason"],
    }
    assert "truncated" in lines[0]["reason"]


def test_skipping_without_valid_warns_once(damaged, make_loader):
    loader = make_loader(damaged("half", (3, 40)), on_error="skip")
    with pytest.warns(UserWarning, match="valid") as warned:
        for _ in loader:
            pass
    assert len(warned) == 1


def test_truncated_accept_delivers_what_was_there(damaged, make_loader, device):
    keywords = {"truncated": "accept", "transforms": [T.Resize((16, 16))]}
    reference = [images for images, _ in make_loader(damaged("half"), **keywords)]
    loader = make_loader(damaged("half"), device=device, **keywords)
    for (images, _), expected in zip(loader, reference, strict=True):
        assert torch.equal(images.cpu(), expected)


def test_a_quarantine_that_cannot_be_written_is_named(damaged, make_loader):
    loader = make_loader(damaged("empty"), quarantine="/dev/full")
    with pytest.raises(OSError, match=r"quarantine: No space left on device: '/dev/full'"):
        list(loader)
