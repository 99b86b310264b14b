"""Who may use what (docs/architecture.md): what neither cargo nor mypy enforces."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("rust", "cpp", "torch_ext", "python", "tests", "benches", "examples")
CXX = (".h", ".hpp", ".cpp", ".cc", ".c", ".cu", ".cuh")
RUST = (".rs",)
PYTHON = (".py", ".pyi")
PACKAGE = "python/forebay/"


def files(suffixes):
    """Our own sources of a kind, as paths from the root."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path.relative_to(ROOT).as_posix()


def code(name):
    """A file's text without comments and docstrings, which may speak of anything."""
    text = (ROOT / name).read_text()
    if name.endswith(PYTHON):
        return re.sub(r'""".*?"""|#[^\n]*', "", text, flags=re.DOTALL)
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def offenders(suffixes, pattern, allowed):
    """Files that match, apart from those below the allowed places."""
    return [
        name
        for name in files(suffixes)
        if not name.startswith(tuple(allowed)) and re.search(pattern, code(name))
    ]


INCLUDE = r"#\s*include\s*[<\"]"
RULES = {
    "L5 torch headers": (CXX, INCLUDE + r"(torch|ATen|c10|caffe2)/", ["torch_ext/"]),
    "L5 stable torch headers": (CXX, INCLUDE + r"torch/(?!csrc/stable/|headeronly/)", []),
    "L6 Python headers": (CXX, INCLUDE + r"(Python\.h|pybind11/|nanobind/|torch/extension)", []),
    "L7 torch.ops": (
        PYTHON,
        r"torch\.(ops|classes)\b|import ops\b.*torch|from torch(\._ops| import .*\bops\b)",
        [f"{PACKAGE}_native.py", f"{PACKAGE}ops.py", "tests/", "benches/"],
    ),
    "L8 unsafe": (
        RUST,
        r"\bunsafe\s*(\{|fn\b|impl\b|extern\b)",
        [
            "rust/slab/",
            "rust/codec/src/jpeg/",
            "rust/codec/src/pixel/",
            "rust/codec/tests/",  # encode through libjpeg, and compare with its own reader
            "rust/codec/benches/",  # compare with TurboJPEG by its own interface
            "rust/bridge/",
            "rust/source/src/mmap.rs",
            "rust/cuda/",
            "tests/kernels/",  # run the kernels on the host's memory
        ],
    ),
    "L9 environment": (
        PYTHON,
        r"\b(os\.environ|getenv|from os import .*environ)",
        [f"{PACKAGE}_native.py", "tests/", "benches/"],
    ),
    "L9 environment in Rust": (
        RUST,
        r"\benv::(var|vars|set_var)",
        ["rust/codec/build.rs", "rust/cuda/build.rs", "rust/cuda/tests/"],
    ),
    "L9 environment in C++": (CXX, r"\b(secure_)?getenv\s*\(", []),
    "L10 threads": (
        RUST,
        r"\bthread::(spawn|Builder|scope)|\brayon\b",
        # Tests may; the core's own threads are the engine's.
        ["rust/engine/", *(f"rust/{crate}/tests/" for crate in ("slab", "codec", "source"))],
    ),
    "L10 threads in C++": (
        CXX,
        r"std::(jthread|thread|async)\b|\bpthread_create\b",
        # A GPU's threads, where a test has them on the host.
        ["tests/kernels/src/threads.cpp"],
    ),
    "L11 randomness": (
        RUST,
        r"\b(rand|fastrand|getrandom|oorandom)::",
        ["rust/core/", "rust/bridge/src/handles.rs"],
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(rule):
    suffixes, pattern, allowed = RULES[rule]
    found = offenders(suffixes, pattern, allowed)
    if rule == "L10 threads":  # scoped threads in a file's own unit tests
        found = [name for name in found if re.search(pattern, code(name).split("#[cfg(test)]")[0])]
    assert found == [], rule


def test_the_search_sees_every_room():
    for room, suffixes in (("rust", RUST), ("cpp", CXX), ("torch_ext", CXX), ("python", PYTHON)):
        assert any(name.startswith(f"{room}/") for name in files(suffixes)), room
    assert offenders(CXX, INCLUDE + "torch/", []), "the pattern finds what is allowed"
    assert offenders(RUST, RULES["L8 unsafe"][1], [])
    assert offenders(PYTHON, RULES["L7 torch.ops"][1], ["tests/"])
    assert offenders(RUST, RULES["L10 threads"][1], [])


def test_crates_that_need_no_unsafe_forbid_it():
    for crate in ("core", "source", "engine"):
        text = (ROOT / "rust" / crate / "src/lib.rs").read_text()
        assert "#![forbid(unsafe_code)]" in text, crate


def test_crates_depend_inwards_only():  # L1 to L3, as Cargo sees it
    inner = {
        "slab": {"core"},
        "source": {"core"},
        "codec": {"core"},
        "cuda": {"core"},
        "engine": {"core", "slab"},
    }
    for crate, allowed in {"core": set(), **inner}.items():
        manifest = (ROOT / "rust" / crate / "Cargo.toml").read_text().split("[dev-dependencies]")[0]
        found = set(re.findall(r"^forebay-(\w+)", manifest, re.MULTILINE))
        assert found <= allowed, crate
    libraries = [
        path.parent.name
        for path in (ROOT / "rust").glob("*/Cargo.toml")
        if "staticlib" in path.read_text()
    ]
    assert libraries == ["bridge"]


def bodies(text):
    """Functions and methods of Rust source, as name -> body."""
    found = {}
    for match in re.finditer(r"\bfn (\w+)[^{}]*\{", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        found[match.group(1)] = text[match.end() : at - 1]
    return found


def test_every_bridge_function_is_one_guard():
    text = code("rust/bridge/src/lib.rs")
    declared = re.search(r'extern "Rust" \{(.*?)\n    \}', text, re.DOTALL).group(1)
    signatures = re.findall(r"fn (\w+)\((.*?)\)\s*(->[^;]*)?;", declared, re.DOTALL)
    assert len(signatures) > 20
    implemented = {}
    for path in sorted((ROOT / "rust/bridge/src").glob("*.rs")):
        source = code(path.relative_to(ROOT).as_posix())
        source = re.sub(r"mod ffi \{.*?\n\}", "", source, flags=re.DOTALL)
        for name, body in bodies(source).items():
            implemented.setdefault(name, []).append(body)
    for name, arguments, result in signatures:
        guarded = [body for body in implemented[name] if len(re.findall(r"\bguard\(", body)) == 1]
        if "Result<" in result:
            assert guarded, f"{name}: expected one guard(|| ...)"
        else:
            # What cannot fail is a method that reads a field: no call that could panic.
            assert "self:" in arguments, name
            assert any(re.fullmatch(r"\s*&?self\.[\w.]+(\(\))?\s*", b) for b in implemented[name])
