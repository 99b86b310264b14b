"""FOREBAY_NVTX=1: ranges of every stage, as a profiler that speaks NVTX sees them."""

import os
import shutil
import subprocess
import sys

import pytest

# What a profiler does: it is loaded by NVTX and puts its functions into NVTX's table. Numbers are
# those of nvtx3/nvtxTypes.h: table 1 holds callbacks, module 1 is the core, and in it function 9
# begins a range of its thread and 11 ends it.
PROFILER = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
typedef void (*function)(void);
typedef struct {
  size_t size;
  int (*functions)(uint32_t module, function*** table, unsigned int* count);
} callbacks;
static FILE* out(void) { static FILE* file; return file ? file : (file = fopen("ranges", "a")); }
static int push(const char* name) { fprintf(out(), "%s\n", name); fflush(out()); return 0; }
static int pop(void) { fprintf(out(), "end\n"); fflush(out()); return 0; }
int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  const callbacks* tables = export_table(1);
  function** table;
  unsigned int count;
  if (!tables || !tables->functions(1, &table, &count)) return 0;
  *table[PUSH] = (function)push;
  *table[POP] = (function)pop;
  return 1;
}
"""

SCRIPT = """
import sys, forebay
from forebay import transforms as T
loader = forebay.Loader(
    forebay.FileList(sys.argv[1:]), transforms=[T.Resize((8, 8))], batch_size=4, num_workers=2
)
for _ in loader:
    pass
loader.close()
"""


@pytest.fixture(scope="module")
def profiler(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler to make a profiler")
    folder = tmp_path_factory.mktemp("profiler")
    source = folder / "profiler.c"
    source.write_text(PROFILER)
    library = folder / "libprofiler.so"
    numbers = ["-DPUSH=9", "-DPOP=11"]
    subprocess.run([compiler, "-shared", "-fPIC", *numbers, source, "-o", library], check=True)
    return library


def ranges(profiler, paths, folder, **environment):
    environment = os.environ | {"NVTX_INJECTION64_PATH": str(profiler)} | environment
    command = [sys.executable, "-c", SCRIPT, *map(str, paths)]
    subprocess.run(command, cwd=folder, env=environment, check=True)
    log = folder / "ranges"
    return log.read_text().splitlines() if log.exists() else []


def test_stages_and_batches_have_ranges(profiler, paths, tmp_path):
    seen = ranges(profiler, paths[:8], tmp_path, FOREBAY_NVTX="1")
    begun = [name for name in seen if name != "end"]
    assert len(begun) == len(seen) - len(begun), "every range ends"
    stages = {name.split()[1] for name in begun}
    assert stages == {"read", "prepare,", "decode", "render", "hand"}
    assert sum(name.startswith("forebay prepare, batch 1") for name in begun) == 4
    assert sum(name.startswith("forebay hand out") for name in begun) == 2


def test_there_are_none_unless_asked_for(profiler, paths, tmp_path):
    assert ranges(profiler, paths[:4], tmp_path) == []
