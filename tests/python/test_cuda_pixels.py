"""PIX-3: batches on a GPU are the CPU's byte for byte, whoever decodes (T09, T17)."""

from pathlib import Path

import pytest
import torch

import forebay
from forebay import transforms as T
from images import jpeg, photo, png, smooth_jpeg, write_mixed

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

NORMALIZE = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
RECIPES = {
    "train": [T.RandomResizedCrop(64), T.RandomHorizontalFlip()],
    "val": [T.Resize(72), T.CenterCrop(64)],
    "jitter": [T.RandomResizedCrop(48), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomVerticalFlip()],
    "warped": [
        T.RandomPerspective(0.4, 0.5),
        T.RandomResizedCrop(48),
        T.RandomAffine(40, (0.1, 0.1), (0.7, 1.4), 20, "bilinear", 9),
        T.RandomRotation(180),
        T.GaussianBlur((5, 3)),
    ],
    "augmented": [T.RandomResizedCrop(56), T.RandAugment(3, 15), T.AutoAugment(), T.Pad(2)],
    "mixed": [T.RandomResizedCrop(56), T.AugMix(severity=8), T.RandomHorizontalFlip()],
    "normalized": [
        T.RandomResizedCrop((40, 56)),
        T.RandomHorizontalFlip(),
        NORMALIZE,
        T.RandomErasing(0.5, value="random"),
    ],
}
FLOATS = [torch.float16, torch.bfloat16, torch.float32]
CASES = [
    (recipe, dtype)
    for recipe in RECIPES
    for dtype in (FLOATS if recipe == "normalized" else [torch.uint8, *FLOATS])
]
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def bits(tensor):
    """Elements as they lie in memory, so that -0.0 is not 0.0."""
    return tensor.cpu().view(BITS[tensor.element_size()])


def assert_same(batches, expected):
    for (images, labels), (cpu_images, cpu_labels) in zip(batches, expected, strict=True):
        assert images.is_cuda
        assert (images.dtype, images.stride()) == (cpu_images.dtype, cpu_images.stride())
        different = (bits(images) != bits(cpu_images)).flatten(1).any(1)
        assert not different.any(), f"samples {cpu_labels[different].tolist()} differ"
        assert torch.equal(labels.cpu(), cpu_labels)


def decoded_by(loader, decoder):
    """How many images it has decoded so far."""
    return loader.stats()["decoders"].get(decoder, {}).get("count", 0)


@pytest.fixture
def pair(make_loader, photos):
    """Makes two loaders over the photos: on the GPU, and on the CPU."""
    source = forebay.FileList(photos, labels=list(range(len(photos))))

    def pair(decoders=None, **keywords):
        keywords = {"batch_size": 32, "shuffle": True} | keywords
        loader = make_loader(source, device="cuda", decoders=decoders, **keywords)
        return loader, make_loader(source, **keywords)

    return pair


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("recipe", "dtype"), CASES)
def test_every_recipe_gives_the_cpus_bytes(pair, recipe, dtype, memory_format):
    loader, reference = pair(transforms=RECIPES[recipe], dtype=dtype, memory_format=memory_format)
    assert_same(loader, reference)
    assert decoded_by(loader, "cuda") > 0


@pytest.mark.parametrize("decoder", ["cuda", "hardware"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_decoder_gives_the_cpus_bytes(pair, engines, recipe, decoder):
    loader, reference = pair(transforms=RECIPES[recipe], decoders={decoder: 1.0})
    assert_same(loader, reference)
    assert (decoded_by(loader, decoder) > 0) == (decoder == "cuda" or engines > 0)


@pytest.mark.parametrize("recipe", RECIPES)
def test_decoding_by_the_cpu_gives_its_bytes(pair, recipe):
    loader, reference = pair(transforms=RECIPES[recipe], decoders="cpu")
    assert_same(loader, reference)
    assert loader.describe()["decoders"] == ["cpu"]


@pytest.mark.parametrize("num_workers", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [1, 7, 360])
def test_threads_and_batch_size_change_no_byte(pair, num_workers, batch_size):
    keywords = {"transforms": RECIPES["train"], "batch_size": batch_size}
    loader, reference = pair(num_workers=num_workers, **keywords)
    for _ in range(2):
        assert_same(loader, reference)


@pytest.mark.parametrize("kind", ["444", "422", "420"])
def test_t17_an_image_has_the_same_bytes_in_any_batch_and_from_any_decoder(
    make_loader, tmp_path, kind
):
    source = forebay.FileList(write_mixed(tmp_path, 200, [kind]), labels=list(range(200)))
    keywords = {"transforms": [T.CenterCrop(61)], "shuffle": True}
    expected = torch.empty(200, 3, 61, 61, dtype=torch.uint8)
    for images, labels in make_loader(source, **keywords):
        expected[labels] = images
    for decoders in (None, {"cuda": 1.0}, {"hardware": 1.0}, {"cuda": 0.5, "hardware": 0.5}):
        for batch_size in (16, 50):
            more = {"batch_size": batch_size, "decoders": decoders}
            loader = make_loader(source, device="cuda", **more, **keywords)
            for _ in range(2):
                for images, labels in loader:
                    assert torch.equal(images.cpu(), expected[labels.cpu()])


def test_tiny_and_large_images(make_loader, tmp_path):
    datas = [jpeg(photo(height, width)) for height, width in [(1, 1), (1, 9), (8, 8), (17, 3)]]
    datas += [jpeg(photo(height, width)) for height, width in [(63, 65), (64, 64), (65, 2000)]]
    datas += [
        smooth_jpeg(3000, 4001),
        smooth_jpeg(70, 16_390),
        png(photo(5, 4)),
        png(photo(900, 7)),
    ]
    for number, data in enumerate(datas):
        (tmp_path / f"{number:02d}.img").write_bytes(data)
    source = forebay.FileList(sorted(tmp_path.iterdir()), labels=list(range(len(datas))))
    for recipe in ([T.Resize((224, 224))], RECIPES["train"], RECIPES["jitter"]):
        keywords = {"transforms": recipe, "batch_size": len(datas)}
        loader = make_loader(source, device="cuda", **keywords)
        reference = make_loader(source, **keywords)
        for _ in range(5):
            assert_same(loader, reference)


def damaged_scan(data):
    """The headers and the end as they were; within the scan, pixels of another image."""
    middle = len(data) // 2
    return data[:middle] + bytes(200) + data[middle + 200 :]


@pytest.mark.parametrize("decoders", [None, {"cuda": 1.0}, {"hardware": 1.0}])
@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], damaged_scan])
def test_t09_a_bad_file_changes_no_other_sample_of_its_batch(
    make_loader, tmp_path, damage, decoders
):
    paths = write_mixed(tmp_path, 64, ["420", "444", "420, low", "422"])
    keywords = {
        "transforms": RECIPES["normalized"],
        "batch_size": 256,
        "on_error": "skip",
        "fields": ("image", "valid"),
    }
    expected, _ = next(iter(make_loader(forebay.FileList(paths), **keywords)))
    bad = Path(paths[100])
    bad.write_bytes(damage(bad.read_bytes()))
    loader = make_loader(forebay.FileList(paths), device="cuda", decoders=decoders, **keywords)
    _, cpu_valid = next(iter(make_loader(forebay.FileList(paths), **keywords)))
    others = torch.arange(256) != 100
    for _ in range(3):
        loader.set_epoch(0)
        [(images, valid)] = loader
        assert torch.equal(valid, cpu_valid), "the verdict is the CPU's"
        assert torch.equal(images.cpu()[others], expected[others])
        assert valid[100] or not images[100].any()
