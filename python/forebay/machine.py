"""What this process may use of the machine, and its place among the ranks."""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch
from torch.utils.data import get_worker_info

from . import _native

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """Cores that this process may use: its affinity mask, within its cgroup's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quota = cgroup_quota()
    return max(1, min(cores or 1, math.ceil(quota) if quota else cores or 1))


def cgroup_quota() -> float | None:
    """Cores' worth of time that the cgroup grants; None without a limit."""
    quotas = []
    for folder in _own_cgroups():
        try:
            limit, period = (folder / "cpu.max").read_text().split()
            if limit != "max":
                quotas.append(int(limit) / int(period))
        except (OSError, ValueError):
            pass
    try:
        limit = (_CGROUP / "cpu/cpu.cfs_quota_us").read_text()
        period = (_CGROUP / "cpu/cpu.cfs_period_us").read_text()
        if int(limit) > 0:
            quotas.append(int(limit) / int(period))
    except (OSError, ValueError):
        pass
    return min(quotas, default=None)


def _own_cgroups() -> list[Path]:
    """Folders of this process's cgroup and its parents, whose limits all hold."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return [_CGROUP]
    own = next((line[3:] for line in lines if line.startswith("0::")), "/")
    leaf = _CGROUP / own.lstrip("/")
    return [leaf, *(parent for parent in leaf.parents if parent.is_relative_to(_CGROUP))]


def cpus_near(device: int, system: Path = Path("/sys")) -> list[int] | None:
    """Processors of the GPU's NUMA node that this process may use.

    None where that is no choice: a machine with one node, a GPU that no node is nearer to, a
    process that is bound to other nodes.
    """
    properties = torch.cuda.get_device_properties(device)
    place = [getattr(properties, f"pci_{part}_id", 0) for part in ("domain", "bus", "device")]
    domain, bus, slot = place
    try:
        pci = system / f"bus/pci/devices/{domain:04x}:{bus:02x}:{slot:02x}.0"
        node = int((pci / "numa_node").read_text())
        listed = (system / f"devices/system/node/node{node}/cpulist").read_text()
    except (OSError, ValueError):
        return None
    near = set(parse_cpulist(listed))
    usable = os.sched_getaffinity(0)
    return sorted(near & usable) if near & usable != usable and near & usable else None


def parse_cpulist(text: str) -> list[int]:
    """Linux's lists of processors: ``0-3,8``."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def default_workers(beside_engines: bool = False, cpus: list[int] | None = None) -> int:
    """This rank's share of the usable cores; 0 inside a DataLoader worker, which is one already.

    No more than there are ``cpus``, if the threads stay on these.

    Beside a GPU's JPEG engines, which cannot wait for a core, an eighth is left for the threads
    that read and the one that trains.
    """
    if get_worker_info() is not None:
        return 0
    cores = usable_cores() // max(1, _env_int("LOCAL_WORLD_SIZE", 1))
    if cpus is not None:
        cores = min(cores, len(cpus))
    if beside_engines:
        cores -= max(1, cores // 8)
    return max(1, cores)


def resolve_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Rank and world size: as given, else torch.distributed's, else the launcher's."""
    if rank is not None and world_size is not None:
        return rank, world_size
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    rank, world_size = _env_int("RANK", 0), _env_int("WORLD_SIZE", 1)
    if not 0 <= rank < world_size:
        raise ValueError(
            f"RANK={rank} and WORLD_SIZE={world_size} in the environment contradict each other; "
            "RANK must be in 0..WORLD_SIZE-1, or pass rank= and world_size="
        )
    return rank, world_size


def resolve_shard(rank: int, world_size: int) -> tuple[int, int]:
    """This process's place among all feeds of indices: ranks times DataLoader workers (RNG-1)."""
    worker = get_worker_info()
    if worker is None:
        return rank, world_size
    return rank * worker.num_workers + worker.id, world_size * worker.num_workers


def _env_int(name: str, default: int) -> int:
    value = _native.environment(name)
    if value is None:
        return default
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name} in the environment must be a number, got {value!r}") from None
