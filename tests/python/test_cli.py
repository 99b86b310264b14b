"""The command as such, doctor and demo: exit status, JSON, and files they leave."""

import importlib.metadata
import itertools
import json
import subprocess
import sys

import pytest

import forebay
from conftest import HANG_S
from forebay import _native
from forebay.cli import main
from images import jpeg, photo


def test_doctor_tells_what_is_here(capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cpu"]["usable_cores"] >= 1
    assert report["cpu"]["simd"]
    assert report["decoders"]["jpeg"]
    for name in ("driver", "nvjpeg", "nvrtc"):
        section = report["cuda"][name]
        assert section["version"] if section["found"] else section["problem"]
    assert main(["doctor"]) == 0
    assert "usable_cores" in capsys.readouterr().out


def test_the_package_runs_as_a_module():
    process = subprocess.run(
        [sys.executable, "-m", "forebay", "doctor", "--json"],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["python"]


@pytest.fixture
def shell(tmp_path):
    """Runs ``forebay check`` on one good image, with the shell's redirections."""
    (tmp_path / "a.jpg").write_bytes(jpeg(photo(20, 30)))

    def run(words):
        return subprocess.run(
            ["sh", "-c", f'"$0" -m forebay check "$1" {words}', sys.executable, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    return run


@pytest.mark.parametrize(
    ("where", "words"),
    [(">&-", "stdout is closed"), (">/dev/full", "No space left"), ("2>&1 >&- | cat", "closed")],
)
@pytest.mark.parametrize("json_", ["", "--json"])
def test_a_result_that_cannot_be_written_is_a_failure(shell, json_, where, words):
    process = shell(f"{json_} {where}")
    text = process.stderr + process.stdout
    assert words in text
    assert text.count("\n") == 1, text
    assert process.returncode == (0 if "cat" in where else 1)


def test_without_stderr_the_result_is_as_ever(shell):
    process = shell("--json 2>&-")
    assert process.returncode == 0
    assert json.loads(process.stdout)["images"] == 1
    assert shell("--max-pixels 0 2>&-").returncode == 2
    assert shell("2>&- >&-").returncode == 1


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["stats", ".", "--num-workers", "0"], "--num-workers"),
        (["check", ".", "--max-pixels", "-1"], "--max-pixels"),
        (["demo", "--images", "1"], "--images"),
        (["demo", "--seconds", "nan"], "--seconds"),
        (["demo", "--num-workers", "-1"], "--num-workers"),
    ],
)
def test_a_senseless_command_line_has_a_status_of_its_own(capsys, words, option):
    assert main(words) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"forebay: {words[0]}: {option} must be ")


def test_one_version_everywhere(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"forebay {forebay.__version__}\n"
    assert importlib.metadata.version("forebay") == forebay.__version__
    assert _native.system_info()["version"] == forebay.__version__


def test_every_command_has_help(capsys):
    for name in ("demo", "doctor", "bench", "stats", "check"):
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        assert "--json" in capsys.readouterr().out


def test_demo_shows_both_rates_and_a_contact_sheet(tmp_path, capsys):
    pytest.importorskip("torchvision")
    from PIL import Image

    folder = tmp_path / "demo"
    words = ["--folder", str(folder), "--images", "40", "--seconds", "0.2", "--num-workers", "1"]
    assert main(["demo", *words]) == 0
    text = capsys.readouterr().out
    for word in ("forebay", "DataLoader", "ratio", "contact_sheet.png"):
        assert word in text
    sheet = Image.open(folder / "contact_sheet.png")
    assert sheet.size == (8 * 160, 4 * 160)
    for left, top in itertools.product(range(0, 8 * 160, 160), range(0, 4 * 160, 160)):
        name = sheet.crop((left, top, left + 30, top + 8))  # white letters on black
        assert name.getpixel((0, 0)) == (0, 0, 0)
        assert max(colour for _, colour in name.getcolors()) > (200, 200, 200)
    assert len(list(folder.rglob("*.jpg"))) == 40
    assert main(["demo", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ratio"] > 0
