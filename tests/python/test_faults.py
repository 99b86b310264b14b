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


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", DAMAGE)
def test_t01_t02_raise_names_the_sample_and_goes_on(damaged, make_loader, kind, num_workers):
    source = damaged(kind)
    iterator = iter(make_loader(source, num_workers=num_workers))
    batches, errors = 0, []
    while True:
        try:
            next(iterator)
            batches += 1
        except forebay.SampleError as error:
            errors.append(error)
        except StopIteration:
            break
    assert batches == 7
    [error] = errors
    assert (error.index, error.stage) == (BAD, DAMAGE[kind][1])
    assert error.key == source.key(BAD)
    assert source.key(BAD) in str(error)
    assert [failure.index for failure in error.failures] == [BAD]


@pytest.mark.parametrize("kind", DAMAGE)
def test_t01_t02_skip_leaves_a_marked_hole(damaged, make_loader, kind):
    loader = make_loader(damaged(kind), on_error="skip", fields=("image", "label", "valid"))
    images, labels, valid = map(torch.cat, zip(*loader, strict=True))
    assert labels.tolist() == [-100 if number == BAD else number for number in range(64)]
    assert valid.tolist() == [number != BAD for number in range(64)]
    assert not images[BAD].any()
    assert loader.stats()["bad_samples"] == 1


@pytest.mark.parametrize("kind", DAMAGE)
def test_t01_t02_replace_fills_the_slot(damaged, make_loader, kind):
    source = damaged(kind)

    def run(**keywords):
        loader = make_loader(
            source, on_error="replace", fields=("image", "label", "valid"), **keywords
        )
        return [torch.cat(column) for column in zip(*loader, strict=True)]

    images, labels, valid = run()
    assert valid.all()
    assert labels[BAD] != BAD
    kept = [number for number in range(64) if number != BAD]
    assert labels[kept].tolist() == kept
    again = run(num_workers=1, batch_size=16)
    assert torch.equal(again[0], images)
    assert torch.equal(again[1], labels)


def test_faults_change_no_other_sample_and_no_state(damaged, make_loader, tmp_path):
    fields = ("image", "index", "valid")
    bad = make_loader(damaged("half", (3, 40)), on_error="skip", shuffle=True, fields=fields)
    bad_images, bad_index, bad_valid = map(torch.cat, zip(*bad, strict=True))
    state = bad.state_dict()
    good_source = forebay.FileList(write_list(tmp_path, 64), labels=list(range(64)))
    good = make_loader(good_source, on_error="skip", shuffle=True, fields=fields)
    images, index, _ = map(torch.cat, zip(*good, strict=True))
    assert torch.equal(index, bad_index)
    assert torch.equal(images[bad_valid], bad_images[bad_valid])
    assert (state["epoch"], state["position"]) == (1, 0)


def test_several_bad_samples_are_all_told(damaged, make_loader):
    with pytest.raises(forebay.SampleError) as caught:
        next(iter(make_loader(damaged("half", (5, 2, 7)))))
    assert caught.value.index == 2
    assert [failure.index for failure in caught.value.failures] == [2, 5, 7]


def test_replace_gives_up_when_everything_is_bad(damaged, make_loader):
    loader = make_loader(damaged("empty", range(64)), on_error="replace")
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


def test_t05_a_huge_declared_size_is_refused(make_loader, tmp_path):
    data = bytearray(jpeg(photo(16, 16)))
    start = data.index(b"\xff\xc0") + 5
    data[start : start + 4] = (65_500).to_bytes(2, "big") * 2
    path = tmp_path / "huge.jpg"
    path.write_bytes(data)
    loader = make_loader(forebay.FileList([path]), batch_size=1)
    with pytest.raises(forebay.SampleError, match="65500") as caught:
        next(iter(loader))
    assert "178956970" in caught.value.reason.replace("_", "").replace(",", "")


def test_t10_ranks_stay_in_step(damaged, make_loader):
    source = damaged("half", (9, 13))
    counts = []
    for rank in range(2):
        loader = make_loader(
            source,
            batch_size=4,
            on_error="skip",
            rank=rank,
            world_size=2,
            fields=("image", "valid"),
        )
        counts.append([len(images) for images, _ in loader])
    assert counts[0] == counts[1] == [4] * 8


def test_truncated_accept_delivers_what_was_there(damaged, make_loader):
    loader = make_loader(damaged("half"), truncated="accept", transforms=[T.Resize((16, 16))])
    assert sum(len(images) for images, _ in loader) == 64
