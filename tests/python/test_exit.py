"""T52, LIF-1: however a program ends, it ends at once, with its own exit status and no abort.

Not asked for: a daemon thread that feeds at the interpreter's exit. Python ends such threads within
whatever op of torch they are in, of which torch makes an abort.
"""

import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

import forebay
from conftest import HANG_S, full
from forebay import transforms as T


def within_s():
    """Five seconds on an idle machine."""
    return 5 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


PROGRAM = """
    import os, signal, sys, threading, time
    import forebay
    from forebay import transforms as T

    class Stuck:
        def __len__(self):
            return 4
        def __getitem__(self, index):
            time.sleep(1000)

    kind, paths = sys.argv[1], sys.argv[2:]
    source = forebay.FileList(paths) if kind == "files" else forebay.MapSource(paths)
    loader = forebay.Loader(source, transforms=[T.RandomResizedCrop(32)], batch_size=4,
                            num_workers=2)
    iterator = iter(loader)
    batch = next(iterator)

    def forever():
        while True:
            for batch in loader:
                pass

    def ends():
        print(time.monotonic(), flush=True)
"""


@dataclass
class Ending:
    """How the program ends; it calls ``ends()`` just before."""

    code: str
    status: int
    words: str = ""


ENDINGS = {
    "mid-epoch": Ending("ends()", 0),
    "batches kept": Ending("kept = [batch, *iterator]; ends()", 0),
    "exception": Ending("ends(); raise KeyError('mine')", 1, "KeyError: 'mine'"),
    "sys.exit": Ending("ends(); sys.exit(3)", 3),
    "sys.exit in a thread": Ending(
        "t = threading.Thread(target=lambda: (next(iterator), sys.exit(4)))\n"
        "t.start(); t.join(); next(iterator); ends()",
        0,
    ),
    "a thread goes on": Ending(
        "threading.Thread(target=list, args=(iterator,)).start(); ends()", 0
    ),
    "Ctrl-C while training": Ending(
        "ends(); os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2, "KeyboardInterrupt"
    ),
    "Ctrl-C while feeding": Ending(
        "def stop(): ends(); os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Timer(0.3, stop).start(); forever()",
        -2,
        "KeyboardInterrupt",
    ),
    "Ctrl-C while stuck": Ending(
        "stuck = forebay.Loader(forebay.MapSource(Stuck()), transforms=[T.CenterCrop(8)],"
        " num_workers=1)\n"
        "def stop(): ends(); os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Timer(0.3, stop).start(); next(iter(stuck))",
        -2,
        "KeyboardInterrupt",
    ),
    "fork after use": Ending(
        "child = os.fork()\n"
        "if child: ends(); sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        0,
    ),
    "fork, and the child feeds": Ending(
        "child = os.fork()\n"
        "if not child: list(loader); sys.exit(6)\n"
        "ends(); sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        6,
    ),
}


# One run from files and one from a dataset in Python each; two hundred and more at full size.
@pytest.mark.parametrize("repeats", [1, full(10)])
@pytest.mark.parametrize("name", ENDINGS)
def test_t52_programs_end_as_they_should(paths, tmp_path, name, repeats):
    ending = ENDINGS[name]
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM) + ending.code + "\n")

    def run(kind):
        command = [sys.executable, "-W", "ignore", str(program), kind, *paths]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            try:
                # The end of its output is the end of the process, and of what it forked.
                output, errors = process.communicate(timeout=HANG_S)
            finally:
                process.kill()
        ended = time.monotonic()
        assert output, f"it did not come to its end: status {process.returncode}, {errors}"
        return process.returncode, errors, ended - float(output.split()[0])

    with ThreadPoolExecutor(2) as pool:
        for status, errors, took in pool.map(run, ["files", "map"] * repeats):
            assert status == ending.status, errors
            if ending.words:
                assert ending.words in errors.splitlines()[-1]
            else:
                assert errors == ""
            for word in ("abort", "panick", "terminate called", "Fatal", "core dumped"):
                assert word not in errors
            assert took < within_s()


def test_ctrl_c_interrupts_a_wait_and_the_loader_lives_on(run_python, paths):
    program = """
        import os, signal, sys, threading, time, forebay
        from forebay import transforms as T

        class Slow:
            slow = True
            def __len__(self):
                return 4
            def __getitem__(self, index):
                while self.slow:
                    time.sleep(0.01)
                return sys.argv[1]

        dataset = Slow()
        loader = forebay.Loader(
            forebay.MapSource(dataset), transforms=[T.CenterCrop(8)], batch_size=2, num_workers=1)
        iterator = iter(loader)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            next(iterator)
        except KeyboardInterrupt:
            dataset.slow = False
            print(len(list(iterator)))
    """
    process = run_python(program, *paths)
    assert (process.stdout.strip(), process.returncode) == ("2", 0), process.stderr


def test_close_does_not_wait_for_a_dataset_that_hangs(make_loader):
    release = []

    class Stuck:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            while not release:
                time.sleep(0.01)
            return b""

    loader = make_loader(
        forebay.MapSource(Stuck()), transforms=[T.CenterCrop(8)], num_workers=2, timeout=0.2
    )
    with pytest.raises(RuntimeError, match="timed out"):
        next(iter(loader))
    began = time.monotonic()
    loader.close()
    took = time.monotonic() - began
    release.append(True)
    assert took < within_s(), "about a second, on an idle machine"
