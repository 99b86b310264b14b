"""Sources: names, labels and keys; folders by torchvision's rules."""

import copy
import os
import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import Subset, SubsetRandomSampler, random_split

import forebay
from forebay import transforms as T
from images import jpeg, photo, write_folder


def keys(source):
    return [source.key(index) for index in range(len(source))]


def test_a_list_keeps_names_and_labels(tmp_path):
    names = ["a b.jpg", b"c[1].jpg", tmp_path / "ü.jpg", "sub/d\udcff.jpg"]
    source = forebay.FileList(names, labels=[3, 1, 2, 0], root=tmp_path)
    assert keys(source) == [os.path.join(tmp_path, os.fsdecode(name)) for name in names]
    assert source.labels.tolist() == [3, 1, 2, 0]
    assert source.labels.dtype == torch.int64
    assert source.names.dtype == torch.uint8
    assert source.offsets[-1] == source.names.numel()


def test_a_million_names():
    count = 1_000_000
    names = [f"train/n{number % 1000:08d}/image_{number}.JPEG" for number in range(count)]
    source = forebay.FileList(names, labels=range(count))
    assert len(source) == count
    assert source.key(count - 1) == os.path.join(os.getcwd(), names[-1])
    assert source.key(123_456).endswith(names[123_456])


@pytest.mark.parametrize(
    ("labels", "dtype", "shape"),
    [
        ([0.5, 1], torch.float64, (2,)),
        ([True, False], torch.bool, (2,)),
        (np.array([1, 2], dtype=np.int32), torch.int32, (2,)),
        (torch.zeros(2, 3, dtype=torch.float16), torch.float16, (2, 3)),
        ([np.zeros(4, np.float32), np.ones(4, np.float32)], torch.float32, (2, 4)),
    ],
)
def test_labels_stack_with_their_dtype(labels, dtype, shape):
    column = forebay.FileList(["a", "b"], labels=labels).labels
    assert (column.dtype, tuple(column.shape)) == (dtype, shape)


@pytest.mark.parametrize("labels", [["cat", "dog"], [{"boxes": 1}, None], [[1], [1, 2]]])
def test_other_labels_stay_a_list(labels):
    assert forebay.FileList(["a", "b"], labels=labels).labels == labels


@pytest.mark.parametrize(
    ("paths", "labels", "error", "words"),
    [
        ([], None, ValueError, "at least one"),
        (["a", ""], None, ValueError, "empty one at place 1"),
        (["a\0b"], None, ValueError, "NUL"),
        ([("a", 0)], None, TypeError, r"got \('a', 0\) at place 0; .*paths, labels = zip\(\*pairs"),
        (["a", 3], None, TypeError, "got 3 at place 1$"),
        (["a", "b"], [1], ValueError, r"\(2\), got 1"),
        (["a"], "x", TypeError, "labels"),
    ],
)
def test_wrong_lists_are_refused(paths, labels, error, words):
    with pytest.raises(error, match=words):
        forebay.FileList(paths, labels=labels)


def write_list_file(tmp_path, content: bytes):
    path = tmp_path / "list.txt"
    path.write_bytes(content)
    return path


def test_a_text_file_of_names_and_labels(tmp_path):
    content = "\ufeffa b.jpg 3\r\n\nsub/c[1].jpg 1\nü.jpg 2\n".encode()
    source = forebay.FileList(write_list_file(tmp_path, content))
    assert keys(source) == [str(tmp_path / name) for name in ("a b.jpg", "sub/c[1].jpg", "ü.jpg")]
    assert source.labels.tolist() == [3, 1, 2]


def test_a_text_file_without_labels(tmp_path):
    source = forebay.FileList(write_list_file(tmp_path, b"a b.jpg\nc.jpg\n"), root="/")
    assert keys(source) == ["/a b.jpg", "/c.jpg"]
    assert source.labels is None


def test_a_text_file_of_floats_and_absolute_names(tmp_path):
    source = forebay.FileList(write_list_file(tmp_path, b"/x/a.jpg 0.5\nb.jpg 2\n"))
    assert source.key(0) == "/x/a.jpg"
    assert source.labels.tolist() == [0.5, 2.0]


def test_a_text_file_that_mixes_lines_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"c d\.jpg"):
        forebay.FileList(write_list_file(tmp_path, b"a.jpg 1\nc d.jpg\n"))


@pytest.mark.parametrize(
    "content",
    [
        b"a.jpg cat\nb.jpg dog\n",
        b"a.jpg,1\nb.jpg,2\n",
        b"path,label\na.JPG,1\n",
        b"a.jpg, 1\nb.jpg, 2\n",
        b"a b.png;cat\n",
        b"'a.jpg' cat\n",
        b"there cat\nelsewhere dog\n",
    ],
)
def test_labels_that_are_no_numbers_are_told(tmp_path, content):
    (tmp_path / "there").write_bytes(b"")
    with pytest.raises(ValueError, match=r"is no file; a label is a number .*FileList\(paths, lab"):
        forebay.FileList(write_list_file(tmp_path, content))


def test_names_that_look_like_labelled_ones_are_names_if_the_file_is_there(tmp_path):
    for name in ("a.jpg copy", "b.jpg,1"):
        (tmp_path / name).write_bytes(b"")
    source = forebay.FileList(write_list_file(tmp_path, b"a.jpg copy\nb.jpg,1\n"))
    assert keys(source) == [str(tmp_path / name) for name in ("a.jpg copy", "b.jpg,1")]
    assert source.labels is None
    assert len(forebay.FileList(write_list_file(tmp_path, b"record 12 a\nno ending\n"))) == 2


def test_an_image_is_no_text_file(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg(photo(8, 8)))
    with pytest.raises(ValueError, match=r"a\.jpg, which is no text"):
        forebay.FileList(path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"extensions": abs}, "takes no 'transform'; pass transforms= to the Loader"),
        ({"transform": abs}, "takes no 'transform'; pass transforms= to the Loader"),
        ({"is_valid_file": abs}, "takes no 'is_valid_file'; give forebay.FileList"),
        ({"loader": abs}, "takes no 'loader'; .*forebay.MapSource"),
        ({"allow": True}, "takes no 'allow'; it takes root, extensions and allow_empty"),
    ],
)
def test_torchvisions_arguments_of_a_folder_have_an_answer(folder, arguments, words):
    with pytest.raises(TypeError, match=words):
        forebay.ImageFolder(folder, **arguments)


def test_streams_are_told_apart_from_datasets():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter([b""])

    with pytest.raises(TypeError, match=r"Stream; of a DataPipe call \.forebay"):
        forebay.Loader(Stream(), transforms=[T.CenterCrop(8)], batch_size=1)
    with pytest.raises(TypeError, match="__getitem__"):
        forebay.MapSource(Stream())


def test_an_empty_dataset_is_told():
    with pytest.raises(ValueError, match=r"MapSource\(list\), whose length is 0"):
        forebay.Loader(forebay.MapSource([]), transforms=[T.CenterCrop(8)], batch_size=1)


@pytest.mark.parametrize("make", [forebay.FileList, forebay.ImageFolder])
def test_missing_paths_are_told_at_once(make, tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        make(tmp_path / "none")


@pytest.mark.parametrize(
    "make",
    [
        forebay.ImageFolder,
        forebay.FileList,
        lambda name: forebay.FileList(["a.jpg"], root=name),
    ],
)
def test_a_nul_in_a_name_is_told(make):
    with pytest.raises(ValueError, match=r"got '/a\\x00b', with a NUL character"):
        make("/a\0b")


def test_a_folder_equals_torchvisions(tmp_path):
    datasets = pytest.importorskip("torchvision.datasets")
    write_folder(tmp_path, classes=3, per_class=2)
    image = jpeg(photo(20, 20))
    for name in ("class_00/Z.JPEG", "class_00/.hidden.jpg", "class_01/deep/er/x.png", "loose.jpg"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image)
    (tmp_path / "class_01" / "note.txt").write_text("no image")
    (tmp_path / "class_02" / "link.jpg").symlink_to(tmp_path / "class_00" / "000.jpg")
    (tmp_path / "linked").symlink_to(tmp_path / "class_01")
    source, peer = forebay.ImageFolder(tmp_path), datasets.ImageFolder(tmp_path)
    assert source.classes == peer.classes
    assert source.class_to_idx == peer.class_to_idx
    assert list(zip(keys(source), source.labels.tolist(), strict=True)) == peer.samples


def test_folders_without_classes_or_images_are_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="class folder"):
        len(forebay.ImageFolder(tmp_path))
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.jpg").write_bytes(jpeg(photo(9, 9)))
    with pytest.raises(FileNotFoundError, match=r"classes empty in .*\.jpg"):
        len(forebay.ImageFolder(tmp_path).classes)
    source = forebay.ImageFolder(tmp_path, allow_empty=True)
    assert (source.classes, source.labels.tolist()) == (["empty", "full"], [1])
    with pytest.raises(FileNotFoundError, match=r"\.webp"):
        len(forebay.ImageFolder(tmp_path, extensions=".webp"))


def test_a_folder_that_is_a_file_is_told(tmp_path):
    path = write_list_file(tmp_path, b"x")
    with pytest.raises(FileNotFoundError, match="a file"):
        forebay.ImageFolder(path)


def test_sources_pickle(tmp_path):
    source = forebay.FileList(["a", "b"], labels=["x", "y"], root=tmp_path)
    copy = pickle.loads(pickle.dumps(source))
    assert keys(copy) == keys(source)
    assert copy.labels == source.labels


def test_a_map_needs_getitem_and_may_name_its_samples():
    class Named:
        def __getitem__(self, index):
            return b""

        def __len__(self):
            return 2

        def key(self, index):
            return f"record {index}"

    assert forebay.MapSource(Named()).key(1) == "record 1"
    assert forebay.MapSource([b"", b""]).key(1) == "list[1]"
    assert forebay.MapSource([b""]).fingerprint() != forebay.MapSource([b"", b""]).fingerprint()
    with pytest.raises(TypeError, match="__getitem__"):
        forebay.MapSource(iter([b""]))


def test_parts_of_a_source_are_told_how(folder, make_loader):
    source = forebay.ImageFolder(folder)
    part, _ = random_split(source, [0.5, 0.5], generator=torch.Generator().manual_seed(0))
    for refuse in (
        lambda: forebay.Loader(part, transforms=T.CenterCrop(8)),
        lambda: forebay.MapSource(part),
    ):
        with pytest.raises(TypeError, match=r"sampler=SubsetRandomSampler\(subset.indices\)"):
            refuse()
    with pytest.raises(TypeError, match=r"Sampler\(indices into the source\)"):
        forebay.MapSource(Subset(part, [0]))
    with pytest.raises(TypeError, match="pass it to the Loader itself"):
        forebay.MapSource(source)
    loader = make_loader(source, sampler=part.indices, fields="index")
    assert torch.cat(list(loader)).tolist() == list(part.indices)
    sampler = SubsetRandomSampler(part.indices)
    loader = make_loader(source, sampler=sampler, fields="index")
    assert sorted(torch.cat(list(loader)).tolist()) == sorted(part.indices)


def test_torchvisions_folder_gives_paths_if_told_so(folder, make_loader):
    datasets = pytest.importorskip("torchvision.datasets")
    decoding = datasets.ImageFolder(folder)
    for dataset in (decoding, Subset(decoding, [0])):
        with pytest.raises(TypeError, match=r"ImageFolder\(root, loader=lambda path: path\)"):
            forebay.MapSource(dataset)
    plain = datasets.ImageFolder(folder, loader=lambda path: path)
    own = list(make_loader(forebay.ImageFolder(folder)))
    for given, expected in zip(make_loader(forebay.MapSource(plain)), own, strict=True):
        assert all(map(torch.equal, given, expected))


def test_a_folders_lists_are_torchvisions(folder):
    datasets = pytest.importorskip("torchvision.datasets")
    source, peer = forebay.ImageFolder(folder), datasets.ImageFolder(folder)
    for name in ("samples", "imgs", "targets", "classes", "class_to_idx"):
        assert getattr(source, name) == getattr(peer, name)
    assert source.samples is source.samples
    assert copy.copy(source)._lists is None
