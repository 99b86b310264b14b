"""Who may use what (docs/architecture.md): what neither cargo nor mypy enforces."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def offenders(folder, suffixes, pattern, allowed=()):
    """Files below ``folder`` that match, apart from those allowed by prefix."""
    found = []
    for path in sorted((ROOT / folder).rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in suffixes or name.startswith(tuple(allowed)):
            continue
        if re.search(pattern, path.read_text(), re.MULTILINE):
            found.append(name)
    return found


CXX = (".h", ".hpp", ".cpp", ".cc", ".c", ".cu")
PACKAGE = "python/forebay"


@pytest.mark.parametrize(
    ("rule", "folder", "suffixes", "pattern", "allowed"),
    [
        ("L5 torch headers", ".", CXX, r"#include\s*[<\"](torch|ATen|c10)/", ["torch_ext/"]),
        ("L6 Python.h", "torch_ext", CXX, r"#include\s*[<\"]Python\.h", []),
        (
            "L7 torch.ops",
            PACKAGE,
            (".py",),
            r"torch\.ops\b(?!`)",
            [f"{PACKAGE}/_native.py", f"{PACKAGE}/ops.py"],
        ),
        (
            "L8 unsafe",
            "rust",
            (".rs",),
            r"\bunsafe\s*(\{|fn|impl|extern)",
            ["rust/slab/", "rust/codec/", "rust/bridge/", "rust/source/src/mmap.rs", "rust/cuda/"],
        ),
        (
            "L9 environment",
            PACKAGE,
            (".py",),
            r"os\.(environ|getenv)",
            [f"{PACKAGE}/_native.py"],
        ),
        ("L9 environment in Rust", "rust", (".rs",), r"env::var\(", ["rust/codec/build.rs"]),
    ],
)
def test_rule(rule, folder, suffixes, pattern, allowed):
    skipped = ["target/", "build/", ".venv", "work/"]
    assert offenders(folder, suffixes, pattern, [*allowed, *skipped]) == [], rule
