"""A dataset of your own, images in a zip archive: python 04_map_source.py [ARCHIVE]."""

import io
import sys
import zipfile

import numpy as np
from PIL import Image

import forebay
from forebay import transforms as T


class Archive:
    """Encoded images by number, with the folder's name as the label."""

    def __init__(self, archive: str | io.BytesIO) -> None:
        """Reads the list of names."""
        self.archive = zipfile.ZipFile(archive)
        self.names = [name for name in self.archive.namelist() if not name.endswith("/")]

    def __len__(self) -> int:
        """Number of images."""
        return len(self.names)

    def __getitem__(self, index: int) -> tuple[bytes, str]:
        """The file as it is, and its label; called from several threads at once."""
        name = self.names[index]
        return self.archive.read(name), name.partition("/")[0]

    def key(self, index: int) -> str:
        """What errors call a sample."""
        return self.names[index]


def made_archive(count: int = 12) -> io.BytesIO:
    """Images of noise; the sixth is no image."""
    rng, buffer = np.random.default_rng(0), io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(count):
            image = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (120, 160, 3), np.uint8)).save(image, "PNG")
            name = f"{'cats' if number % 2 else 'dogs'}/{number:02d}.png"
            archive.writestr(name, b"lost" if number == 5 else image.getvalue())
    return buffer


if __name__ == "__main__":
    source = forebay.MapSource(Archive(sys.argv[1] if len(sys.argv) > 1 else made_archive()))
    with forebay.Loader(source, transforms=[T.Resize((96, 96))], batch_size=4) as loader:
        batches = iter(loader)
        while True:
            try:
                images, labels = next(batches)  # labels that are no numbers come as a list
                print(tuple(images.shape), images.dtype, labels)
            except forebay.SampleError as error:
                print("bad:", error)
            except StopIteration:
                break
