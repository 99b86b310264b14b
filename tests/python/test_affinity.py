"""affinity=: threads stay near the GPU."""

import os
from types import SimpleNamespace

import pytest
import torch

from forebay import machine


@pytest.fixture
def near(tmp_path, monkeypatch):
    """`machine.cpus_near` on a made-up machine of two nodes."""

    def near(usable, node=1, nodes=("0-3,8", "4-7,9-11\n")):
        place = SimpleNamespace(pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=2)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: place)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(usable))
        pci = tmp_path / "bus/pci/devices/0000:1b:02.0"
        pci.mkdir(parents=True, exist_ok=True)
        (pci / "numa_node").write_text(f"{node}\n")
        for number, cpus in enumerate(nodes):
            folder = tmp_path / f"devices/system/node/node{number}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cpulist").write_text(cpus)
        return machine.cpus_near(0, tmp_path)

    return near


def test_threads_stay_on_the_gpus_node(near):
    assert near(range(12)) == [4, 5, 6, 7, 9, 10, 11]
    assert near(range(12), node=0) == [0, 1, 2, 3, 8]


def test_only_what_the_process_may_use_counts(near):
    assert near([0, 1, 5, 6]) == [5, 6]
    assert near([5, 6]) is None, "all are near already"
    assert near([0, 1]) is None, "bound elsewhere on purpose"


def test_without_nodes_nothing_is_bound(near, tmp_path):
    assert near(range(12), node=-1) is None
    assert machine.cpus_near(0, tmp_path / "nothing") is None


def test_default_workers_fit_the_node(monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 64)
    assert machine.default_workers(True, list(range(16))) == 14
    assert machine.default_workers(True) == 56
    monkeypatch.setattr(machine, "usable_cores", lambda: 1)
    assert machine.default_workers(True) == 1


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_describe_says_where_threads_run(make_loader):
    expected = machine.cpus_near(torch.cuda.current_device())
    assert make_loader(device="cuda").describe()["cpus"] == expected
    assert make_loader(device="cuda", affinity=False).describe()["cpus"] is None
    assert make_loader().describe()["cpus"] is None
