"""Feeds a folder of good, damaged and hostile files to Forebay, in child processes.

    python tests/corpus.py FOLDER

Every file goes through ``forebay.ops.decode_image`` and through a Loader that skips bad samples.
Prints what became of them and exits with 1 if one of these was violated:

- no crash, no hang, no more than 3 GiB for one file;
- what is refused is a ValueError or NotImplementedError with a reason, and the Loader and the op
  agree on every file (ERR-2);
- with a ``manifest.jsonl`` in the folder, valid JPEG, PNG, WebP and GIF files decode to the pixels
  whose SHA-256 the manifest has from Pillow's ``convert("RGB")``, as stored and upright (PIX-1), so
  does what is decoded of valid BMP and TIFF files, and no file of a format that is not decoded is
  called damaged. Grey of 16 bits is not compared: Pillow clips it.

The manifest has a JSON object per line: ``path``, ``verdict`` ("valid", "recoverable", "rejected",
"too-big"), ``sniffed`` (the format), ``structure`` (of a PNG, its ``chunks``) and ``pillow``
(``rgb_sha256``, ``transposed_rgb_sha256``, ``transposed_size``). Without one all files below the
folder are taken, and the first two are checked.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import resource
import select
import subprocess
import sys
import tempfile
from pathlib import Path

import memory

FILE_LIMIT_S = 25
MEMORY_LIMIT = 3 << 30
# What Forebay decodes; every other format is refused by name.
DECODED = ("jpeg", "png", "webp", "gif", "bmp", "tiff")
# Of these the manifest's verdict is Pillow's, which reads more than their rules allow.
LENIENT = ("bmp", "tiff")
OUTCOMES = ("decoded", "not offered", "truncated", "damaged", "no image", "too large", "LOST")


def outcome(error: Exception | None) -> str:
    """The column of the table that an op's error belongs to."""
    if error is None:
        return "decoded"
    text = str(error)
    if isinstance(error, NotImplementedError):
        return "not offered"
    if not isinstance(error, ValueError) or not text:
        return "LOST"
    if text.startswith("truncated"):
        return "truncated"
    if text.startswith(("empty file", "not an image")):
        return "no image"
    return "too large" if "exceed the limit" in text else "damaged"


# Children. Each answers with a JSON line per file.


def limit_memory() -> None:
    """Refuses allocations of more than the limit, beside what torch holds already."""
    limit = memory.data() + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def decode_child() -> None:
    """Decodes the files that are named on stdin, one at a time."""
    import torch

    from forebay import ops

    limit_memory()
    before = memory.resident()
    for line in sys.stdin:
        data = bytearray(Path(line.rstrip("\n")).read_bytes())
        encoded = torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0).byte()
        memory.reset_peak()
        answer: dict[str, object] = {}
        for name in ("ignore", "apply"):
            error = None
            try:
                pixels = ops.decode_image(encoded, orientation=name).permute(1, 2, 0).contiguous()
                digest = hashlib.sha256(pixels.numpy()).hexdigest()
                answer[name] = [pixels.shape[1], pixels.shape[0], digest]
                del pixels
            except Exception as caught:
                error = caught
            answer |= {
                "outcome": outcome(error),
                "reason": str(error),
                "type": type(error).__name__,
            }
        answer["peak"] = memory.peak() - before
        print(json.dumps(answer), flush=True)


def loader_child(listing: str, log: str) -> None:
    """Feeds all listed files through a Loader; a line per sample."""
    import forebay
    from forebay import transforms as T

    paths = Path(listing).read_text().splitlines()
    loader = forebay.Loader(
        forebay.FileList(paths),
        transforms=[T.Resize((64, 64))],
        num_workers=2,
        on_error="skip",
        fields=("valid",),
        quarantine=log,
    )
    limit_memory()
    for (valid,) in loader:
        print(json.dumps(bool(valid)), flush=True)


# Parent.


class Child:
    """A child process that is asked for lines; ``None`` means it hung or died."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def line(self, request: str | None = None, limit_s: float = FILE_LIMIT_S) -> str | None:
        assert self.process.stdin and self.process.stdout
        try:
            if request is not None:
                self.process.stdin.write(request + "\n")
        except BrokenPipeError:
            return None
        if not select.select([self.process.stdout], [], [], limit_s)[0]:
            return None
        return self.process.stdout.readline() or None

    def fate(self) -> str:
        """How it ended; kills it if it runs."""
        try:
            return f"ended with status {self.process.wait(1)}"
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"gave nothing for {FILE_LIMIT_S} s"


def decode_all(paths: list[Path]) -> list[dict]:
    answers, child = [], None
    for path in paths:
        first = child is None
        child = child or Child("--child", "decode")
        # A new child has torch to import.
        line = child.line(str(path), FILE_LIMIT_S * (4 if first else 1))
        if line is None:
            answers.append({"outcome": "LOST", "reason": f"the child {child.fate()}", "peak": 0})
            child = None
        else:
            answers.append(json.loads(line))
    if child is not None:
        assert child.process.stdin
        child.process.stdin.close()
        child.process.wait()
    return answers


def load_all(paths: list[Path]) -> tuple[list[bool], dict[int, str], str]:
    """Which samples were valid, the others' reasons, and how the child ended if early."""
    with tempfile.TemporaryDirectory() as folder:
        listing, log = Path(folder, "files.txt"), Path(folder, "bad.jsonl")
        listing.write_text("".join(f"{path}\n" for path in paths))
        log.touch()
        child, valid = Child("--child", "loader", str(listing), str(log)), []
        for number in range(len(paths)):
            line = child.line(limit_s=FILE_LIMIT_S * (1 if number else 4))
            if line is None:
                break
            valid.append(json.loads(line))
        fate = "" if len(valid) == len(paths) and child.process.wait(60) == 0 else child.fate()
        rows = map(json.loads, log.read_text().splitlines())
        return valid, {row["index"]: row["reason"] for row in rows}, fate


def violations(row: dict, answer: dict) -> list[str]:
    """What the op's answer breaks, given the manifest's row (only a path without a manifest)."""
    found = []
    if answer["outcome"] == "LOST":
        found.append(f"{answer.get('type', 'no answer')}: {answer['reason']}")
    if answer["peak"] > MEMORY_LIMIT:
        found.append(f"took {answer['peak'] / 2**20:.0f} MiB")
    sniffed = row.get("sniffed")
    if sniffed not in (None, "unknown", "ico", *DECODED) and answer["outcome"] != "not offered":
        found.append(f"{sniffed} is not refused by name but as {answer['outcome']}")
    if sniffed not in DECODED or row["verdict"] != "valid" or answer["outcome"] == "not offered":
        return found
    pillow = row["pillow"]
    if pillow.get("mode") == "I;16" or (
        sniffed in LENIENT and answer["outcome"] in ("damaged", "truncated")
    ):
        return found
    if answer["outcome"] != "decoded":
        return [*found, f"valid, yet {answer['outcome']}: {answer['reason']}"]
    # Pillow turns a TIFF's pixels when it loads them.
    if answer["apply" if sniffed == "tiff" else "ignore"][2] != pillow["rgb_sha256"]:
        found.append("pixels differ from Pillow's")
    # Of a PNG only the eXIf chunk counts; Pillow also reads EXIF from ImageMagick's text chunks.
    if sniffed != "png" or "eXIf" in row["structure"]["chunks"]:
        if answer["apply"] != [*pillow["transposed_size"], pillow["transposed_rgb_sha256"]]:
            found.append("upright pixels differ from Pillow's")
    elif answer["apply"] != answer["ignore"]:
        found.append("turned without an eXIf chunk")
    return found


def report(rows: list[dict], answers: list[dict]) -> None:
    """Prints the counts."""
    counts: dict[tuple[str, str], collections.Counter] = {}
    for row, answer in zip(rows, answers, strict=True):
        place = (row.get("sniffed", "any"), row.get("verdict", "any"))
        counts.setdefault(place, collections.Counter())[answer["outcome"]] += 1
    print("format   verdict     " + "".join(f"{name:>12}" for name in OUTCOMES) + "       files")
    for (sniffed, verdict), counter in sorted(counts.items()):
        cells = "".join(f"{counter[name] or '-':>12}" for name in OUTCOMES)
        print(f"{sniffed:9}{verdict:12}{cells}{counter.total():>12}")
    refused = collections.Counter(
        answer["reason"] for answer in answers if answer["outcome"] == "not offered"
    )
    print("not offered: " + ", ".join(f"{text} ({n})" for text, n in refused.most_common()))
    worst = max(answer["peak"] for answer in answers)
    print(f"most memory for one file: {worst / 2**20:.0f} MiB")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    manifest = folder / "manifest.jsonl"
    if manifest.is_file():
        rows = [json.loads(line) for line in manifest.read_text().splitlines()]
    else:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        rows = [{"path": path.relative_to(folder)} for path in files]
    if not rows:
        print(f"{folder}: no files", file=sys.stderr)
        return 1
    paths = [folder / row["path"] for row in rows]
    answers = decode_all(paths)
    report(rows, answers)
    found = {
        row["path"]: violations(row, answer) for row, answer in zip(rows, answers, strict=True)
    }

    valid, reasons, fate = load_all(paths)
    print(f"Loader: {sum(valid)} delivered, {len(valid) - sum(valid)} skipped with a reason")
    if fate:
        found[rows[min(len(valid), len(rows) - 1)]["path"]].append(f"the Loader's child {fate}")
    for number, (row, answer, good) in enumerate(zip(rows, answers, valid, strict=False)):
        expected = None if answer["outcome"] == "decoded" else answer["reason"]
        got = None if good else reasons.get(number, "no reason")
        if got != expected:
            found[row["path"]].append(f"the op says {expected!r}, the Loader {got!r}")
    lines = [f"{path}: {text}" for path, texts in found.items() for text in texts]
    print("\n".join([*lines, f"{len(rows)} files, {len(lines)} violations"]))
    return 1 if lines else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        {"decode": decode_child, "loader": loader_child}[sys.argv[2]](*sys.argv[3:])
    else:
        sys.exit(main())
