"""T02: whatever stands where an image should be is a bad sample of stage read, never a hang."""

import errno
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

import forebay
from conftest import HANG_S
from forebay import transforms as T
from images import jpeg, photo


def unix_socket(path):
    server = socket.socket(socket.AF_UNIX)
    # The path of a socket may have 107 bytes only.
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        server.bind(path.name)
    finally:
        os.chdir(here)
    server.close()


def deep_name(path):
    return path.parent / ("x" * 300 + ".jpg")


def below_a_file(path):
    path.write_bytes(b"")
    return path / "a.jpg"


# Makes what is named by the path, or by another path that it returns; with words of the reason.
ODD = {
    "nothing": (os.fspath, "no such file"),
    "folder": (os.mkdir, "is a directory"),
    "pipe": (os.mkfifo, "not a regular file"),
    "socket": (unix_socket, "not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "link to nothing": (lambda path: path.symlink_to("gone.jpg"), "no such file"),
    "link to itself": (lambda path: path.symlink_to(path.name), os.strerror(errno.ELOOP)),
    "name too long": (deep_name, os.strerror(errno.ENAMETOOLONG)),
    "below a file": (below_a_file, os.strerror(errno.ENOTDIR)),
}


@pytest.fixture
def neighbours(tmp_path):
    """Three good files and a place between them."""
    for name in "acd":
        (tmp_path / f"{name}.jpg").write_bytes(jpeg(photo(20, 20)))
    return [tmp_path / f"{name}.jpg" for name in "abcd"]


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("kind", ODD)
def test_odd_files_are_bad_samples(make_loader, neighbours, kind, num_workers):
    make, words = ODD[kind]
    neighbours[1] = Path(make(neighbours[1]) or neighbours[1])
    keywords = {"transforms": [T.CenterCrop(8)], "batch_size": 4, "num_workers": num_workers}
    source = forebay.FileList(neighbours)
    loader = make_loader(source, on_error="skip", fields="valid", **keywords)
    assert next(iter(loader)).tolist() == [True, False, True, True]
    with pytest.raises(forebay.SampleError) as caught:
        next(iter(make_loader(source, **keywords)))
    assert (caught.value.index, caught.value.stage) == (1, "read")
    assert caught.value.key == str(neighbours[1])
    assert words.lower() in caught.value.reason.lower()


def test_a_map_source_may_name_odd_files(make_loader, neighbours):
    os.mkfifo(neighbours[1])
    loader = make_loader(
        forebay.MapSource([str(path) for path in neighbours]),
        transforms=[T.CenterCrop(8)],
        batch_size=4,
        on_error="skip",
        fields="valid",
    )
    assert next(iter(loader)).tolist() == [True, False, True, True]


def test_files_that_vanish_after_the_scan(make_loader, tmp_path):
    folder = tmp_path / "class"
    folder.mkdir()
    for number in range(4):
        (folder / f"{number}.jpg").write_bytes(jpeg(photo(20, 20)))
    source = forebay.ImageFolder(tmp_path)
    assert len(source) == 4
    (folder / "2.jpg").unlink()
    loader = make_loader(source, transforms=[T.CenterCrop(8)], batch_size=1)
    iterator = iter(loader)
    next(iterator), next(iterator)
    with pytest.raises(forebay.SampleError, match=r"2\.jpg: read: no such file"):
        next(iterator)
    next(iterator)


def test_files_that_change_between_epochs(make_loader, tmp_path):
    """Nothing of a file is remembered: a repaired one is good in the next epoch."""
    path = tmp_path / "a.jpg"
    good = jpeg(photo(20, 20))
    path.write_bytes(good[:-50])
    loader = make_loader(
        forebay.FileList([path]), transforms=[T.CenterCrop(8)], on_error="skip", fields="valid"
    )
    assert [valid.tolist() for valid in loader] == [[False]]
    path.write_bytes(good)
    assert [valid.tolist() for valid in loader] == [[True]]


PROGRAM = """
    import os, sys
    import forebay
    from forebay import transforms as T

    if os.geteuid() == 0:
        os.setresuid(65534, 65534, 65534)  # root may read everything
    loader = forebay.Loader(
        forebay.FileList(sys.argv[1:]), transforms=[T.CenterCrop(8)], batch_size=1, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    try:
        next(iterator)
    except forebay.SampleError as error:
        print(error.index, error.stage, error.reason)
    next(iterator)
    try:
        len(forebay.ImageFolder(os.path.dirname(sys.argv[2])))
    except OSError as error:
        print(type(error).__name__, error)
"""


def test_a_file_without_permission():
    # pytest's own folders are closed to other users.
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        (root / "closed").mkdir()
        paths = [root / "a.jpg", root / "closed" / "b.jpg", root / "c.jpg"]
        for path in paths:
            path.write_bytes(jpeg(photo(20, 20)))
            path.chmod(0o644)
        (root / "closed").chmod(0)
        program = root / "program.py"
        program.write_text(textwrap.dedent(PROGRAM))
        program.chmod(0o644)
        process = subprocess.run(
            [sys.executable, str(program), *map(str, paths)],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        (root / "closed").chmod(0o755)
    lines = process.stdout.splitlines()
    assert process.returncode == 0, process.stderr
    assert lines[0] == "1 read permission denied"
    assert lines[1].startswith("OSError") and "closed: cannot list the folder" in lines[1]
