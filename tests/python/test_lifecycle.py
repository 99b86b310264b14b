"""LIF-1: threads come late and go at once; nothing outlives its loader."""

import gc
import pickle
import time
import weakref
from pathlib import Path

import pytest

import forebay
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
