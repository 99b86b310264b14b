"""MixUp and CutMix: torchvision's images and labels with the same draws, and who meets whom."""

import pytest
import torch

import forebay
from forebay import transforms as T
from forebay.recipe import checked_transforms

V = pytest.importorskip("torchvision.transforms.v2")

CLASSES = 11
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BOTH = [T.MixUp(alpha=0.4, num_classes=CLASSES), T.CutMix(num_classes=CLASSES)]


@pytest.fixture
def drawn(monkeypatch):
    """What the core said about each batch: weights and partners."""
    seen = []
    plain = forebay.delivery.mixed_labels

    def mixed_labels(labels, skipped, num_classes, mixed):
        seen.append(mixed)
        return plain(labels, skipped, num_classes, mixed)

    monkeypatch.setattr(forebay.delivery, "mixed_labels", mixed_labels)
    return seen


@pytest.fixture
def epoch(make_loader, paths, device):
    """All batches of one epoch: images and labels."""

    def epoch(*mixes, floats=True, number=0, files=paths, **keywords):
        labels = [place % CLASSES for place in range(len(files))]
        transforms = [T.RandomResizedCrop((20, 28)), *([T.Normalize(MEAN, STD)] if floats else [])]
        keywords = {"shuffle": True, "device": device} | keywords
        loader = make_loader(
            forebay.FileList(files, labels=labels), transforms=[*transforms, *mixes], **keywords
        )
        loader.set_epoch(number)
        return list(loader)

    return epoch


def peers_labels(labels, weights):
    rows = torch.nn.functional.one_hot(labels, CLASSES).float()
    for weight in weights:
        rows = rows.roll(1, 0).mul_(1 - weight).add_(rows.mul(weight))
    return rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_mixup_is_torchvisions(epoch, drawn, dtype, memory_format):
    form = {"dtype": dtype, "memory_format": memory_format}
    plain = epoch(**form)
    batches = epoch(T.MixUp(alpha=0.4, num_classes=CLASSES), **form)
    assert len({tuple(mixed["weights"]) for mixed in drawn}) == len(plain) == len(batches)
    for (images, labels), (own, soft), mixed in zip(plain, batches, drawn, strict=True):
        [weight] = mixed["weights"]
        peer = V.MixUp(num_classes=CLASSES)
        parameters = {"labels": labels.cpu(), "lam": weight, "batch_size": len(images)}
        expected = peer.transform(images.cpu(), parameters)
        assert own.is_contiguous(memory_format=memory_format) and own.device == images.device
        assert torch.equal(own.cpu(), expected)
        assert torch.equal(soft.cpu(), peer.transform(parameters["labels"], parameters))


@pytest.mark.parametrize("floats", [True, False])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_cutmix_is_torchvisions(epoch, drawn, floats, memory_format):
    form = {"floats": floats, "memory_format": memory_format}
    plain = epoch(**form)
    batches = epoch(T.CutMix(num_classes=CLASSES), **form)
    areas = set()
    for (images, labels), (own, soft), mixed in zip(plain, batches, drawn, strict=True):
        [weight] = mixed["weights"]
        images, own = images.cpu(), own.cpu()
        rows, columns = torch.nonzero((own != images).any(1).any(0), as_tuple=True)
        area = round((1 - weight) * 20 * 28)
        areas.add(area)
        expected = images.clone()
        if area:
            box = (
                ...,
                slice(int(rows.min()), int(rows.max()) + 1),
                slice(int(columns.min()), int(columns.max()) + 1),
            )
            expected[box] = images.roll(1, 0)[box]
            assert expected[box][0, 0].numel() == area
        assert torch.equal(own, expected)
        assert torch.equal(soft.cpu(), peers_labels(labels.cpu(), [weight]))
    assert len(areas) > 4


def test_lists_are_left_to_chance_and_labels_are_always_rows(epoch, drawn):
    some = T.RandomApply([T.RandomChoice(BOTH)], p=0.5)
    plain = epoch(batch_size=2)
    batches = epoch(some, batch_size=2)
    counts = {0: 0, 1: 0}
    for (images, labels), (own, soft), mixed in zip(plain, batches, drawn, strict=True):
        weights = mixed["weights"] if mixed else []
        counts[len(weights)] += 1
        assert torch.equal(soft.cpu(), peers_labels(labels.cpu(), weights))
        assert weights or torch.equal(own, images)
    assert min(counts.values()) > 5
    twice = epoch(*BOTH)
    for (_, labels), (_, soft), mixed in zip(epoch(), twice, drawn[len(plain) :], strict=True):
        assert len(mixed["weights"]) == 2
        assert torch.equal(soft.cpu(), peers_labels(labels.cpu(), mixed["weights"]))


def test_threads_change_nothing_and_epochs_everything(epoch):
    def flat(batches):
        return [
            torch.cat([part.flatten() for part in column]) for column in zip(*batches, strict=True)
        ]

    reference = flat(epoch(*BOTH, num_workers=0))
    for keywords in ({"num_workers": 1}, {"num_workers": 4}, {"prefetch_factor": 1}):
        other = flat(epoch(*BOTH, **keywords))
        assert all(map(torch.equal, other, reference)), keywords
    assert not any(map(torch.equal, flat(epoch(*BOTH, number=1)), reference))
    assert not any(map(torch.equal, flat(epoch(*BOTH, seed=1)), reference))


def test_res_1_a_state_goes_on_with_the_same_mixes(make_loader, device):
    mixes = [type(mix)(num_classes=64) for mix in BOTH]

    def loader():
        transforms = [T.CenterCrop(24), T.Normalize(MEAN, STD), *mixes]
        return make_loader(transforms=transforms, shuffle=True, device=device)

    first = loader()
    batches = iter(first)
    for _ in range(3):
        next(batches)
    state = first.state_dict()
    rest = list(batches)
    other = loader()
    other.load_state_dict(state)
    again = list(other)
    assert len(again) == len(rest) == 5
    for mine, yours in zip(again, rest, strict=True):
        assert all(map(torch.equal, mine, yours))


def test_err_1_skipped_samples_meet_nobody(epoch, drawn, paths, tmp_path):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no image")
    files = [str(bad) if place % 8 == 3 else path for place, path in enumerate(paths)]
    keywords = {"files": files, "on_error": "skip", "shuffle": False}
    with pytest.warns(UserWarning, match="valid"):
        plain = epoch(**keywords)
    with pytest.warns(UserWarning, match="valid"):
        batches = epoch(T.MixUp(num_classes=CLASSES), **keywords)
    good = [0, 1, 2, 4, 5, 6, 7]
    for (images, labels), (own, soft), mixed in zip(plain, batches, drawn, strict=True):
        assert mixed["partners"] == [7, 0, 1, None, 2, 4, 5, 6]
        [weight] = mixed["weights"]
        images = images[good]
        expected = images.roll(1, 0).mul_(1 - weight).add_(images.mul(weight))
        assert torch.equal(own[good], expected)
        assert torch.equal(soft[good].cpu(), peers_labels(labels[good].cpu(), [weight]))
        assert not own[3].any() and not soft[3].any()


def test_err_1_a_bad_sample_is_raised_and_the_other_batches_are_mixed(make_loader, paths, device):
    source = forebay.FileList([*paths[:3], __file__, *paths[4:16]], labels=[0, 1] * 8)
    loader = make_loader(
        source,
        transforms=[T.CenterCrop(8), T.ToDtype(torch.float32, scale=True), T.MixUp(num_classes=2)],
        device=device,
    )
    batches = iter(loader)
    with pytest.raises(forebay.SampleError):
        next(batches)
    images, labels = next(batches)
    assert images.shape == (8, 3, 8, 8) and labels.shape == (8, 2)
    assert torch.allclose(labels.sum(1).cpu(), torch.ones(8))


def test_classes_are_counted_by_the_source(make_loader, folder, device):
    transforms = [T.CenterCrop(8), T.CutMix()]
    loader = make_loader(forebay.ImageFolder(folder), transforms=transforms, device=device)
    _, labels = next(iter(loader))
    assert labels.shape == (8, 4)


def test_rows_of_numbers_are_labels_too(make_loader, paths, drawn):
    rows = torch.rand(8, 3, dtype=torch.float64)
    loader = make_loader(
        forebay.FileList(paths[:8], labels=rows), transforms=[T.CenterCrop(8), T.CutMix()]
    )
    _, labels = next(iter(loader))
    [weight] = drawn[0]["weights"]
    assert torch.equal(labels, rows.roll(1, 0).mul_(1 - weight).add_(rows.mul(weight)))


def test_a_dataset_in_python_gives_labels_to_mix(make_loader, paths):
    class Pairs:
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return paths[index], index % 3

    transforms = [T.CenterCrop(8), T.CutMix(num_classes=3)]
    _, labels = next(iter(make_loader(forebay.MapSource(Pairs()), transforms=transforms)))
    assert labels.shape == (8, 3) and torch.allclose(labels.sum(1), torch.ones(8))


@pytest.mark.parametrize(
    ("labels", "mix", "error", "words"),
    [
        ([0, 1, 2, 5], T.CutMix(num_classes=5), ValueError, ["num_classes=5", "got 5"]),
        ([0, 1, -1, 2], T.CutMix(num_classes=5), ValueError, ["num_classes=5", "got -1"]),
        ([0, 1, 2, 3], T.CutMix(), ValueError, ["need num_classes"]),
        ([0.5, 1, 2, 3], T.CutMix(num_classes=5), TypeError, ["class numbers", "float64"]),
        (["a", "b", "c", "d"], T.CutMix(num_classes=5), TypeError, ["stack"]),
    ],
)
def test_labels_that_cannot_be_mixed_are_told(make_loader, paths, labels, mix, error, words):
    loader = make_loader(
        forebay.FileList(paths[:4], labels=labels), transforms=[T.CenterCrop(8), mix]
    )
    with pytest.raises(error) as caught:
        next(iter(loader))
    assert all(word in str(caught.value) for word in words), caught.value


def test_without_labels_there_is_nothing_to_mix(make_loader, paths):
    transforms = [T.CenterCrop(8), T.CutMix(num_classes=2)]
    with pytest.raises(ValueError, match="there are none"):
        make_loader(forebay.FileList(paths), transforms=transforms)
    with pytest.raises(ValueError, match="fields do not name them"):
        make_loader(transforms=transforms, fields="image")
    loader = make_loader(forebay.MapSource(paths), transforms=transforms)
    with pytest.raises(ValueError, match="gives none"):
        next(iter(loader))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: [T.MixUp(alpha=0)], ValueError, ["MixUp", "alpha", "got 0"]),
        (lambda: [T.CutMix(num_classes=0)], ValueError, ["CutMix", "num_classes"]),
        (lambda: [T.RandomApply([T.MixUp(), T.RandomHorizontalFlip()])], ValueError, ["all of"]),
        (lambda: [T.RandomOrder([T.MixUp(), T.CutMix()])], NotImplementedError, ["RandomOrder"]),
        (lambda: [T.CutMix(), T.RandomHorizontalFlip()], ValueError, ["Flip comes after CutMix"]),
        (
            lambda: [T.MixUp(num_classes=3), T.CutMix(num_classes=4)],
            ValueError,
            ["one number", "[3, 4]"],
        ),
        (
            lambda: [V.MixUp(num_classes=3, labels_getter=lambda batch: batch[1])],
            NotImplementedError,
            ["transforms[1]", "MixUp", "labels_getter"],
        ),
    ],
)
def test_recipes_that_cannot_be_are_refused(make, error, words):
    with pytest.raises(error) as caught:
        checked_transforms([T.CenterCrop(8), *make()])
    assert all(word in str(caught.value) for word in words), caught.value


def test_mixup_needs_floats(make_loader):
    with pytest.raises(ValueError, match=r"MixUp.*Normalize"):
        make_loader(transforms=[T.CenterCrop(8), T.MixUp(num_classes=64)])


def test_torchvisions_are_translated():
    peer = V.Compose(
        [
            V.CenterCrop(8),
            V.RandomChoice([V.MixUp(alpha=0.2, num_classes=5), V.CutMix(num_classes=5)], p=[1, 3]),
        ]
    )
    own = (
        T.CenterCrop(8),
        T.RandomChoice([T.MixUp(alpha=0.2, num_classes=5), T.CutMix(num_classes=5)], p=[1, 3]),
    )
    assert checked_transforms(peer) == own
