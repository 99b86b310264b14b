"""``forebay check``: what is broken and why, and what is strange."""

import errno
import io
import json
import os
import zlib

import numpy as np
import pytest
from PIL import Image

from forebay.cli import check, main
from images import jpeg, photo, png

GREY = photo(40, 50)[..., 0]


def report(capsys, folder, *words):
    status = main(["check", str(folder), *map(str, words), "--json"])
    return status, json.loads(capsys.readouterr().out)


def cmyk():
    buffer = io.BytesIO()
    Image.fromarray(photo(40, 50)).convert("CMYK").save(buffer, "JPEG")
    return buffer.getvalue()


def before_end(insert, **options):
    """A JPEG with bytes between its data and the end of image."""
    encoded = jpeg(photo(40, 50), **options)
    return encoded[:-2] + insert + encoded[-2:]


def scan_twice():
    encoded = jpeg(photo(40, 50))
    return encoded[:-2] + encoded[encoded.index(b"\xff\xda") :]


def checksum():
    """A PNG whose pixels have another Adler-32 than it says; the chunks' CRCs are right."""
    encoded = bytearray(png(photo(40, 50)))
    at = encoded.index(b"IDAT")
    end = at + 4 + int.from_bytes(encoded[at - 4 : at], "big")
    encoded[end - 1] ^= 1
    encoded[end : end + 4] = zlib.crc32(encoded[at:end]).to_bytes(4, "big")
    return bytes(encoded)


def damaged():
    """Decodes with warnings: bytes are missing before the restart marker RST3."""
    encoded = bytearray(jpeg(photo(120, 160), quality=95, restart_marker_blocks=4))
    marker = encoded.index(b"\xff\xd3")
    del encoded[marker - 30 : marker - 2]
    return bytes(encoded)


def palette(*transparent):
    """A PNG with a palette, of which the first entries have these alphas."""
    buffer = io.BytesIO()
    save = {"transparency": bytes(transparent)} if transparent else {}
    Image.fromarray(photo(40, 50)).quantize(16).save(buffer, "PNG", **save)
    return buffer.getvalue()


def keyed(pixels, colour):
    """A PNG of which one colour is transparent."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", transparency=colour)
    return buffer.getvalue()


STRANGE = {
    "rotated": ("turned.jpg", lambda: jpeg(photo(40, 50), orientation=6)),
    "cmyk": ("print.jpg", cmyk),
    "grey": ("grey.jpg", lambda: jpeg(GREY)),
    "alpha": ("alpha.png", lambda: png(np.dstack([photo(40, 50), GREY]))),
    "progressive": ("scans.jpg", lambda: jpeg(photo(40, 50), progressive=True)),
    "extension": ("really_a.png", lambda: jpeg(photo(40, 50))),
    "warnings": ("damaged.jpg", damaged),
}
BROKEN = {
    "cut.jpg": (lambda: jpeg(photo(40, 50))[:-40], "truncated"),
    "empty.jpg": (lambda: b"", "empty file"),
    "page.jpg": (lambda: b"<html>not found</html>", "not an image"),
    "cut.png": (lambda: png(photo(40, 50))[:200], "truncated"),
    "table.jpg": (lambda: before_end(b"\xff\xdb\0\x04\x0f\0"), "damaged JPEG: Bogus DQT index"),
    "scans.jpg": (scan_twice, "damaged JPEG: Didn't expect more than one scan"),
    "reserved.jpg": (
        lambda: before_end(b"\xff\x05\0\x03\0", restart_marker_blocks=4),
        "damaged JPEG: Unsupported marker type 0x05",
    ),
    "checksum.png": (checksum, "damaged PNG"),
}


def test_good_files_pass(tmp_path, capsys):
    (tmp_path / "a.jpg").write_bytes(jpeg(photo(40, 50)))
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.png").write_bytes(png(photo(40, 50)))
    (tmp_path / "notes.txt").write_text("not looked at")
    status, got = report(capsys, tmp_path)
    assert status == 0
    assert got["images"] == 2
    assert got["bytes"] == sum(path.stat().st_size for path in tmp_path.rglob("*.[jp]*g"))
    assert got["broken"] == []
    assert not any(got["strange"].values())


@pytest.mark.parametrize("name", ["a.webp", "a.bmp", "a.tif", "a.tiff"])
def test_formats_have_their_own_names(tmp_path, capsys, name):
    Image.fromarray(photo(40, 50)).save(tmp_path / name)
    status, got = report(capsys, tmp_path)
    assert (status, got["images"]) == (0, 1)
    assert not any(got["strange"].values())


@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_strange_is_listed_but_no_failure(tmp_path, capsys, kind):
    name, make = STRANGE[kind]
    (tmp_path / name).write_bytes(make())
    status, got = report(capsys, tmp_path)
    assert status == 0, got
    assert got["strange"] == {one: [] for one in check.STRANGE} | {kind: [str(tmp_path / name)]}


@pytest.mark.parametrize("count", [1, 20000])
@pytest.mark.parametrize("options", [{}, {"optimize": True}, {"restart_marker_blocks": 4}])
def test_bytes_between_the_last_row_and_the_end_are_warnings(tmp_path, capsys, count, options):
    (tmp_path / "a.jpg").write_bytes(before_end(b"x" * count, **options))
    status, got = report(capsys, tmp_path)
    assert status == 0
    assert got["strange"]["warnings"] == [str(tmp_path / "a.jpg")]


def test_transparent_entries_and_colours_are_alpha(tmp_path, capsys):
    (tmp_path / "opaque.png").write_bytes(palette())
    (tmp_path / "palette.png").write_bytes(palette(0, 128))
    (tmp_path / "grey.png").write_bytes(keyed(GREY, 7))
    (tmp_path / "rgb.png").write_bytes(keyed(photo(40, 50), (1, 2, 3)))
    _, got = report(capsys, tmp_path)
    assert got["strange"]["alpha"] == [
        str(tmp_path / name) for name in ("grey.png", "palette.png", "rgb.png")
    ]


def test_huge_is_more_than_16_megapixels(tmp_path, capsys):
    Image.new("L", (4000, 4000)).save(tmp_path / "at_the_limit.png")
    Image.new("L", (4001, 4000)).save(tmp_path / "above.png")
    _, got = report(capsys, tmp_path)
    assert got["strange"]["huge"] == [str(tmp_path / "above.png")]


def test_what_is_broken_is_a_failure_with_reasons(tmp_path, capsys):
    (tmp_path / "good.jpg").write_bytes(jpeg(photo(40, 50)))
    for name, (make, _) in BROKEN.items():
        (tmp_path / name).write_bytes(make())
    log = tmp_path / "bad.jsonl"
    log.write_text("of an earlier run\n")
    status, got = report(capsys, tmp_path, "--quarantine", log, "--num-workers", 2)
    assert status == 1
    assert got["images"] == 1 + len(BROKEN)
    assert [fault["key"] for fault in got["broken"]] == [
        str(tmp_path / name) for name in sorted(BROKEN)
    ]
    for fault in got["broken"]:
        assert fault.keys() == {"key", "stage", "reason"}
        assert fault["stage"] == "decode"
        assert BROKEN[os.path.basename(fault["key"])][1] in fault["reason"]
    assert [json.loads(line) for line in log.read_text().splitlines()] == got["broken"]


def test_too_large_is_broken(tmp_path, capsys):
    (tmp_path / "a.jpg").write_bytes(jpeg(photo(40, 50)))
    status, got = report(capsys, tmp_path, "--max-pixels", 1999)
    assert status == 1
    assert "exceed the limit of 1999" in got["broken"][0]["reason"]


def test_a_name_that_is_not_utf8(tmp_path, capsys):
    path = os.fsencode(tmp_path) + b"/n\xff.jpg"
    try:
        with open(path, "wb") as file:
            file.write(jpeg(GREY))
    except OSError as error:
        pytest.skip(f"the file system refuses such names: {error}")
    status, got = report(capsys, tmp_path)
    assert status == 0
    assert os.fsencode(got["strange"]["grey"][0]) == path
    assert main(["check", str(tmp_path)]) == 0
    assert "n\\xff.jpg" in capsys.readouterr().out


def test_each_folder_is_looked_at_once_whatever_links_lead_there(tmp_path, capsys):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").write_bytes(jpeg(GREY))
        for other in ("a", "b", "c"):
            (tmp_path / name / f"to_{other}").symlink_to(tmp_path / other)
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "itself").symlink_to("itself")
    (tmp_path / "a" / "gone").symlink_to("nowhere")
    (tmp_path / "a" / "past").symlink_to("1.jpg/past")
    status, got = report(capsys, tmp_path)
    assert status == 0
    assert got["strange"]["grey"] == [str(tmp_path / name / "1.jpg") for name in "abc"]


def test_links_to_images_and_folders_elsewhere_are_followed(tmp_path, capsys):
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "1.jpg").write_bytes(jpeg(GREY))
    root.mkdir()
    (root / "folder").symlink_to(elsewhere)
    (root / "2.jpg").symlink_to(elsewhere / "deep" / "1.jpg")
    (root / "gone.jpg").symlink_to("nowhere")
    (root / "itself.jpg").symlink_to("itself.jpg")
    status, got = report(capsys, root)
    assert status == 1
    assert got["images"] == 4
    assert [fault["key"] for fault in got["broken"]] == [
        str(root / name) for name in ("gone.jpg", "itself.jpg")
    ]


@pytest.mark.parametrize("words", [["check"], ["stats"], ["bench", "--data"]])
def test_a_folder_that_cannot_be_listed_is_a_failure(tmp_path, capsys, monkeypatch, words):
    (tmp_path / "a.jpg").write_bytes(jpeg(GREY))
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    hidden.chmod(0)
    if os.access(hidden, os.R_OK):  # for root no folder is unreadable
        scandir = os.scandir

        def refusing(path):
            if path == str(hidden):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refusing)
    assert main([*words, str(tmp_path)]) == 1
    assert f"Permission denied: '{hidden}'" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["/dev/full", "/none/bad.jsonl"])
def test_a_quarantine_that_cannot_be_written_is_named(tmp_path, capsys, file):
    (tmp_path / "cut.jpg").write_bytes(b"")
    assert main(["check", str(tmp_path), "--quarantine", file]) == 1
    text = capsys.readouterr().err
    assert "--quarantine: No s" in text
    assert file in text


def test_says_what_it_found(tmp_path, capsys):
    for number in range(12):
        (tmp_path / f"{number:02d}.jpg").write_bytes(jpeg(GREY))
    (tmp_path / "cut.jpg").write_bytes(jpeg(GREY)[:-40])
    assert main(["check", str(tmp_path)]) == 1
    text = capsys.readouterr().out
    assert "cut.jpg: decode: truncated" in text
    assert "grey: 12" in text
    assert "and 2 more" in text
    assert "13 images" in text


def test_a_wrong_folder_leaves_the_quarantine_alone(tmp_path, capsys):
    log = tmp_path / "bad.jsonl"
    log.write_text("kept\n")
    assert main(["check", str(tmp_path / "none"), "--quarantine", str(log)]) == 1
    assert "not a folder" in capsys.readouterr().err
    assert log.read_text() == "kept\n"
