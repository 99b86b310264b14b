"""Two ranks stop within an epoch; one goes on with it: python 06_elastic_resume.py."""

import json
import tempfile
from itertools import chain
from pathlib import Path

import numpy as np
import torch.distributed as dist
import torch.multiprocessing as mp
from PIL import Image

import forebay
from forebay import transforms as T


def write_photos(root: Path, count: int = 30) -> None:
    """JPEGs of noise."""
    rng = np.random.default_rng(0)
    for number in range(count):
        pixels = rng.integers(0, 256, (120, 160, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / f"{number:03d}.jpg")


def run(rank: int, world_size: int, root: Path, batch_size: int, stop: int | None) -> None:
    """One rank: goes on where the checkpoint says, and saves one after ``stop`` batches."""
    rendezvous = f"file://{root}/rendezvous-{world_size}"
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world_size)
    checkpoint, seen = root / "checkpoint.json", []
    with forebay.Loader(  # rank and world size are torch.distributed's
        forebay.FileList(sorted(root.glob("*.jpg"))),
        transforms=[T.RandomResizedCrop(64), T.RandomHorizontalFlip()],
        batch_size=batch_size,
        shuffle=True,
        num_workers=1,
        fields=("image", "index"),
    ) as loader:
        if checkpoint.exists():
            loader.load_state_dict(json.loads(checkpoint.read_text()))
        for number, (images, index) in enumerate(loader, start=1):
            dist.all_reduce(images.float().mean())  # stands for a step of training
            seen += index.tolist()
            if number == stop:
                break
        if rank == 0:  # every rank has the same state
            checkpoint.write_text(json.dumps(loader.state_dict()))
    (root / f"seen-{world_size}-{rank}.json").write_text(json.dumps(seen))
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_photos(Path(folder))
        mp.spawn(run, (2, Path(folder), 5, 2), nprocs=2)  # 2 batches of 5 on each of 2 ranks
        mp.spawn(run, (1, Path(folder), 4, None), nprocs=1)  # the rest, in batches of 4 on one
        parts = {path.stem: json.loads(path.read_text()) for path in Path(folder).glob("seen*")}
    for name in sorted(parts):
        print(name, parts[name])
    assert sorted(chain.from_iterable(parts.values())) == list(range(30)), "each sample once"
