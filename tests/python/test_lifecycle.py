"""LIF-1, LIF-2: threads come late and go at once; nothing outlives its loader or its process."""

import gc
import os
import pickle
import sys
import time
import weakref
from pathlib import Path

import pytest

import forebay
from conftest import HANG_S
from forebay import transforms as T


def native_threads():
    """Names of this process's threads that belong to the core."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if name.startswith("forebay")]


def test_threads_start_with_the_first_batch_and_end_with_close(make_loader):
    before = len(native_threads())
    loader = make_loader()
    len(loader)
    assert len(native_threads()) == before
    next(iter(loader))
    assert len(native_threads()) > before
    loader.close()
    assert len(native_threads()) == before


def test_garbage_collection_closes(paths):
    before = len(native_threads())
    loader = forebay.Loader(
        forebay.FileList(paths), transforms=[T.CenterCrop(8)], batch_size=8, num_workers=2
    )
    iterator = iter(loader)
    next(iterator)
    gone = weakref.ref(loader)
    del loader
    next(iterator)  # the iterator keeps its loader
    del iterator
    gc.collect()
    assert gone() is None
    assert len(native_threads()) == before


def test_use_after_close_raises(make_loader):
    with make_loader() as loader:
        iterator = iter(loader)
        next(iterator)
    for use in (
        lambda: next(iterator),
        lambda: iter(loader),
        loader.state_dict,
        loader.stats,
        loader.describe,
    ):
        with pytest.raises(forebay.ClosedError):
            use()
    loader.close()


def test_an_older_iterator_raises(make_loader):
    loader = make_loader()
    older = iter(loader)
    next(older)
    newer = iter(loader)
    with pytest.raises(forebay.ClosedError, match="iter"):
        next(older)
    assert len(list(newer)) == 8
    with pytest.raises(StopIteration):
        next(newer)


def test_every_iter_begins_the_next_epoch(make_loader):
    loader = make_loader()
    for expected in range(3):
        next(iter(loader))
        assert loader.state_dict()["epoch"] == expected


def test_a_loader_pickles_as_its_options(make_loader):
    loader = make_loader(shuffle=True, fields="index")
    expected = [index.tolist() for index in loader]
    copy = pickle.loads(pickle.dumps(loader))
    assert [index.tolist() for index in copy] == expected
    copy.close()


def test_timeout_is_a_runtime_error(make_loader):
    class Stuck:
        def __len__(self):
            return 4

        def __getitem__(self, index):
            time.sleep(2)
            return b""

    loader = make_loader(forebay.MapSource(Stuck()), timeout=0.2)
    with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds"):
        next(iter(loader))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_t53_after_a_fork(make_loader):
    loader = make_loader(shuffle=True, fields="index")
    iterator = iter(loader)
    next(iterator)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            next(iterator)
        except forebay.ClosedError:
            fresh = [index.tolist() for index in loader]
            status = 0 if len(fresh) == 8 else 2
        finally:
            os._exit(status)
    deadline = time.monotonic() + HANG_S
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
        assert time.monotonic() < deadline, "the child hangs"
        time.sleep(0.05)
    assert os.waitstatus_to_exitcode(done[1]) == 0
    assert len(list(iterator)) == 7, "the parent goes on"


def test_inside_dataloader_workers(paths, run_python):
    program = """
        import sys, torch, forebay
        from forebay import transforms as T

        class Stream(torch.utils.data.IterableDataset):
            def __init__(self, loader):
                self.loader = loader
            def __iter__(self):
                assert self.loader.describe()["workers"] == 0
                return iter(self.loader)

        if __name__ == "__main__":
            loader = forebay.Loader(
                forebay.FileList(sys.argv[1:]), transforms=[T.CenterCrop(8)], batch_size=8,
                fields="index")
            for context in ("fork", "spawn"):
                batches = list(torch.utils.data.DataLoader(
                    Stream(loader), batch_size=None, num_workers=1,
                    multiprocessing_context=context))
                print(len(batches))
    """
    process = run_python(program, *paths)
    assert process.stdout.split() == ["8", "8"], process.stderr


ENDINGS = {
    "mid-epoch": ("", 0),
    "exception": ("raise KeyError('mine')", 1),
    "sys.exit": ("sys.exit(3)", 3),
    "exit in a thread": (
        "t = threading.Thread(target=lambda: (next(iterator), sys.exit(4))); t.start(); t.join()",
        0,
    ),
    "interrupt": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2),
    "fork after use": (
        "child = os.fork()\nif child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        0,
    ),
}


@pytest.mark.parametrize("source", ["files", "map"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_t52_the_interpreter_ends_as_it_should(run_python, paths, ending, source):
    code, status = ENDINGS[ending]
    made = "forebay.FileList(paths)" if source == "files" else "forebay.MapSource(paths)"
    program = (
        "import os, signal, sys, threading, time, forebay\n"
        "from forebay import transforms as T\n"
        "paths = sys.argv[1:]\n"
        f"loader = forebay.Loader({made}, transforms=[T.CenterCrop(8)], batch_size=4,"
        " num_workers=2)\n"
        "iterator = iter(loader)\n"
        "next(iterator)\n" + code + "\n"
    )
    process = run_python(program, *paths, timeout=60)
    assert process.returncode == status, process.stderr
    for word in ("abort", "panick", "terminate called", "Fatal"):
        assert word not in process.stderr


def test_ctrl_c_interrupts_a_wait(run_python):
    program = """
        import os, signal, threading, time, forebay
        from forebay import transforms as T

        class Stuck:
            def __len__(self):
                return 4
            def __getitem__(self, index):
                time.sleep(100)

        loader = forebay.Loader(
            forebay.MapSource(Stuck()), transforms=[T.CenterCrop(8)], num_workers=1)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            next(iter(loader))
        except KeyboardInterrupt:
            print("interrupted")
    """
    process = run_python(program, timeout=30)
    assert (process.stdout.strip(), process.returncode) == ("interrupted", 0), process.stderr


def test_t51_no_cuda_is_touched(run_python, paths):
    program = """
        import sys, torch, forebay
        from forebay import transforms as T
        loader = forebay.Loader(
            forebay.FileList(sys.argv[1:]), transforms=[T.CenterCrop(8)], batch_size=8)
        next(iter(loader))
        assert not torch.cuda.is_initialized()
        maps = open("/proc/self/maps").read()
        assert "libcuda.so" not in maps, "the driver was loaded"
    """
    process = run_python(program, *paths)
    assert process.returncode == 0, process.stderr


def test_importing_is_quiet_and_needs_no_torchvision(run_python):
    program = """
        import sys
        sys.modules["torchvision"] = sys.modules["PIL"] = None
        import forebay
        print(sorted(forebay.__all__))
    """
    process = run_python(program)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    assert "Loader" in process.stdout
    assert sys.version_info >= (3, 10)
