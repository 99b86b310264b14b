"""In a training script that has a Dataset and a DataLoader already: python 08_ops.py."""

import io

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from forebay import ops

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Photos(Dataset):
    """Encoded images with labels; the decoding that stood here has moved to `collate`."""

    def __init__(self, count: int = 64) -> None:
        """Makes JPEGs; the sixth is cut off."""
        rng = np.random.default_rng(0)
        self.files = []
        for number in range(count):
            buffer = io.BytesIO()
            pixels = rng.integers(0, 256, (120 + number, 160, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(buffer, "JPEG")
            self.files.append(buffer.getvalue()[: 2000 if number == 5 else None])

    def __len__(self) -> int:
        """Number of images."""
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """The bytes as they are, (n,) uint8, and the label."""
        return torch.frombuffer(bytearray(self.files[index]), dtype=torch.uint8), index % 10


def collate(samples: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Decodes the batch at once, only where the crops lie; what is no image is left out."""
    encoded, labels = map(list, zip(*samples, strict=True))
    boxes = []
    for _ in encoded:  # all are at least 120 pixels high and 160 wide
        like = torch.empty(3, 120, 160)
        top, left, height, width = v2.RandomResizedCrop.get_params(like, (0.1, 1), (0.75, 1.33))
        boxes.append([left, top, left + width, top + height])
    crops, ok = ops.decode_resized_crop(encoded, torch.tensor(boxes), size=96, strict=False)
    flip = torch.rand(len(encoded)) < 0.5
    images = ops.resized_crop_normalize(crops, size=96, flip=flip, mean=MEAN, std=STD)
    return images[ok], torch.tensor(labels)[ok]


if __name__ == "__main__":
    loader = DataLoader(Photos(), batch_size=16, shuffle=True, num_workers=2, collate_fn=collate)
    for images, labels in loader:  # (16, 3, 96, 96) float32, (16,) int64
        print(tuple(images.shape), images.dtype, f"mean {images.mean():+.3f}", labels.tolist())
