"""T10, ORD-3: ranks stay in step, whatever is wrong with the files of one of them."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

import forebay
from conftest import HANG_S
from images import write_list

WORLD = 2
BATCH = 4

# Every rank takes part in a collective per batch: one batch more or less would hang.
PROGRAM = """
    import datetime, json, sys
    import torch, torch.distributed as dist
    import forebay
    from forebay import transforms as T

    rank, world, store, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=60))
    report = {}
    for policy in ("skip", "replace", "raise"):
        loader = forebay.Loader(
            forebay.FileList(paths, labels=list(range(len(paths)))),
            transforms=[T.RandomResizedCrop(16)], batch_size=4, num_workers=2, on_error=policy,
            fields=("image", "label", "valid"))
        iterator, sizes, valid, bad = iter(loader), [], 0, 0
        while True:
            size = 0
            try:
                images, labels, good = next(iterator)
                size = len(images)
                valid += int(good.sum())
            except forebay.SampleError as error:
                bad += len(error.failures)
                size = 4  # the batch counts as delivered
            except StopIteration:
                break
            total = torch.tensor([size])
            dist.all_reduce(total)
            assert int(total) == size * world, f"{policy}: {int(total)} after {len(sizes)} batches"
            sizes.append(size)
        described = loader.describe()
        report[policy] = {
            "sizes": sizes, "valid": valid, "raised": bad, "length": len(loader),
            "bad": loader.stats()["bad_samples"], "state": loader.state_dict(),
            "place": [described["rank"], described["world_size"]],
        }
        loader.close()
    dist.barrier()
    dist.destroy_process_group()
    print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """What two ranks report, of which the second has three bad files of 48."""
    if not torch.distributed.is_available():
        pytest.skip("torch has no torch.distributed")
    root = tmp_path_factory.mktemp("ranks")
    paths = write_list(root / "images", 48)
    # In order, rank 1 gets positions 4 to 7 of every 8.
    for number in (5, 14, 15):
        assert number % (WORLD * BATCH) >= BATCH
        Path(paths[number]).write_bytes(Path(paths[number]).read_bytes()[:500])
    program = root / "rank.py"
    program.write_text(textwrap.dedent(PROGRAM))
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program), str(rank), str(WORLD), str(root / "store"), *paths],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"GLOO_SOCKET_IFNAME": "lo"},
        )
        for rank in range(WORLD)
    ]
    try:
        outputs = [rank.communicate(timeout=HANG_S) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (_, errors) in zip(ranks, outputs, strict=True):
        assert rank.returncode == 0, errors
    return [json.loads(output.splitlines()[-1]) for output, _ in outputs]


@pytest.mark.parametrize("policy", ["skip", "replace", "raise"])
def test_t10_both_ranks_deliver_the_same_batches(reports, policy):
    first, second = (report[policy] for report in reports)
    assert first["sizes"] == second["sizes"] == [BATCH] * 6
    assert first["length"] == second["length"] == 6
    assert first["bad"] == 0
    assert second["bad"] >= 3
    assert first["state"] == second["state"], "RES-1: faults change no state"


def test_t10_what_becomes_of_the_bad_samples(reports):
    skip, replace, raised = (reports[1][policy] for policy in ("skip", "replace", "raise"))
    assert (skip["valid"], skip["bad"]) == (21, 3)
    assert replace["valid"] == 24
    assert (raised["valid"], raised["raised"]) == (16, 3)
    for policy in ("skip", "replace", "raise"):
        assert reports[0][policy]["valid"] == 24


def test_rank_and_world_size_come_from_torch_distributed(reports):
    for rank, report in enumerate(reports):
        for policy in report.values():
            assert policy["place"] == [rank, WORLD]


def test_ranks_without_torch_distributed_are_given(paths, make_loader):
    seen = []
    for rank in range(3):
        loader = make_loader(
            forebay.FileList(paths), rank=rank, world_size=3, fields=("index", "valid")
        )
        seen += [index[valid] for index, valid in loader]
    assert sorted(torch.cat(seen).tolist()) == list(range(64))
