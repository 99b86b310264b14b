"""Every page's Python snippets run, from top to bottom, in a folder with ``photos``."""

import re
from pathlib import Path

import pytest

from images import write_folder

ROOT = Path(__file__).parents[2]
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```python" in page.read_text()
]
# Compilation is for test_ops_compile.py, and needs a compiler.
UNCOMPILED = "import torch; torch.compile = lambda **_: lambda function: function\n"


def test_pages_have_snippets():
    names = {page.name for page in PAGES}
    assert names >= {"README.md", "from-dataloader.md", "errors.md", "transforms.md", "ops.md"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.gpu] if page.stem == "gpu" else [], id=page.stem)
        for page in PAGES
    ],
)
def test_snippets_run(page, run_python, tmp_path, request):
    if page.stem == "gpu":
        request.getfixturevalue("gpu")
    needs = ["torchvision", *(["torchdata"] if "torchdata" in page.read_text() else [])]
    for module in needs:
        pytest.importorskip(module)
    write_folder(tmp_path / "photos", classes=4, per_class=16)
    parts = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    start = f"import os; os.chdir({str(tmp_path)!r})\n"
    done = run_python(start + UNCOMPILED + "\n".join(parts))
    assert done.returncode == 0, done.stderr
