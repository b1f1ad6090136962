"""Datasets: samples by number, in this process and in others; with PyTorch where it is installed."""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tree_helpers import add, pack, write_files

import gompfs
from gompfs.arrays import line_index
from gompfs.errors import ArchiveFormatError, EntryIsDirectoryError, EntryNotFoundError, OptionError
from gompfs.torch import ArchiveDataset, RunSampler

LINES = [b"", b"\n", b"one", b"one\n", b"\n\none\n\n", b"a\nbc\n" * 3000, b"\r\nx\ry\r\n", bytes(5000) + b"\nend"]


@pytest.fixture(scope="module")
def contents() -> dict[str, bytes]:
    rng = random.Random(5)
    files = {f"train/{number:03d}.bin": rng.randbytes(rng.randrange(40_000)) for number in range(60)}
    files |= {f"lines/{number}.txt": content for number, content in enumerate(LINES)}
    return files | {"other/größe.bin": b"other"}


@pytest.fixture(scope="module")
def archive(contents: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("dataset") / "tree"
    write_files(root, contents)
    (root / "train/again.bin").hardlink_to(root / "train/000.bin")
    pack(root.with_name("a.gomp"), root, block_size=1 << 14)
    return root.with_name("a.gomp")


@pytest.fixture
def lines() -> list[bytes]:
    """All lines, as Python splits them."""
    split = [content.split(b"\n") for content in LINES]
    return [line for of_file in split for line in (of_file if of_file[-1] else of_file[:-1])]


def test_all_files(archive: Path, contents: dict[str, bytes]) -> None:
    dataset = ArchiveDataset(archive, output="bytes")
    assert len(dataset) == len(contents)
    names = [dataset.path(number) for number in range(len(dataset))]
    assert {name.replace("again", "000") for name in names} == set(contents)
    order = random.Random(1).choices(range(len(dataset)), k=200)
    assert dataset.__getitems__(order) == [contents[names[number].replace("again", "000")] for number in order]
    assert dataset[-1] == dataset[len(dataset) - 1]
    assert dataset.__getitems__([]) == []
    for number in (len(dataset), -len(dataset) - 1):
        with pytest.raises(IndexError):
            dataset[number]
    assert repr(dataset) == f"<ArchiveDataset: {len(contents)} files of {str(archive)!r}>"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("train/*", 60),
        ("*.bin", 61),
        ("*/00?.bin", 10),
        ("*/again*", 1),
        ("other/gr??e.bin", 1),
        (["train/004.bin", "lines/3.txt", "train/004.bin"], 3),
        ([], 0),
    ],
)
def test_chosen_files(archive: Path, contents: dict[str, bytes], files: Any, expected: int) -> None:
    dataset = ArchiveDataset(archive, files, output="bytes")
    assert len(dataset) == expected
    if not isinstance(files, str):
        assert list(dataset) == [contents[name] for name in files]


@pytest.mark.parametrize("pattern", ["*.nothing", "train", ""])
def test_a_pattern_that_matches_nothing(archive: Path, pattern: str) -> None:
    """It was a dataset without samples, and an epoch of nothing."""
    with pytest.raises(FileNotFoundError) as raised:
        ArchiveDataset(archive, pattern)
    assert str(raised.value) == f"{archive}: no file matches {pattern!r}"


def test_an_open_archive_is_not_pickled(archive: Path) -> None:
    """The message named a class inside."""
    with gompfs.open(archive) as opened:
        for each in (opened, opened.archive):
            with pytest.raises(TypeError, match=r"open it in each process by its path; gompfs\.torch\.ArchiveDataset"):
                pickle.dumps(each)


@pytest.mark.parametrize("batch_bytes", [1, 7, 4096, 1 << 26])
def test_lines(archive: Path, lines: list[bytes], batch_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_index, "_BATCH_BYTES", batch_bytes)
    files = [f"lines/{number}.txt" for number in range(len(LINES))]
    if batch_bytes < 10:
        files = files[:5] + files[6:7]
        lines = [line for content in (*LINES[:5], LINES[6]) for line in content.split(b"\n")[: content.count(b"\n")]]
        lines.insert(1, b"one")
    dataset = ArchiveDataset(archive, files, lines=True, output="bytes")
    assert len(dataset) == len(lines)
    order = random.Random(2).sample(range(len(lines)), len(lines))
    assert dataset.__getitems__(order) == [lines[number] for number in order]
    assert dataset.path(0) == "lines/1.txt"
    assert dataset.path(-1) == files[-1]
    assert len(ArchiveDataset(archive, ["lines/0.txt"], lines=True, output="bytes")) == 0


def test_arrays_and_transforms(archive: Path, contents: dict[str, bytes]) -> None:
    files = ["train/004.bin", "train/005.bin"]
    dataset = ArchiveDataset(archive, files, output="array", transform=np.flip, verify=True)
    assert dataset[1].tobytes() == contents["train/005.bin"][::-1]
    assert [array.dtype for array in dataset.__getitems__([0, 1])] == [np.uint8, np.uint8]


def test_mistakes(archive: Path) -> None:
    with pytest.raises(OptionError, match="unknown output"):
        ArchiveDataset(archive, output="text")
    with pytest.raises(OptionError, match="not bytes"):
        ArchiveDataset(archive, output="bytes", device="cuda:0")
    with pytest.raises(OptionError, match="unknown device"):
        ArchiveDataset(archive, output="bytes", device="gpu")
    with pytest.raises(EntryNotFoundError):
        ArchiveDataset(archive, ["train/004.bin", "missing"])
    with pytest.raises(EntryIsDirectoryError):
        ArchiveDataset(archive, ["train"])


def read_all(dataset: ArchiveDataset, numbers: list[int]) -> tuple[list[bytes], int]:
    return [bytes(sample) for sample in dataset.__getitems__(numbers)], os.getpid()


@pytest.mark.parametrize(("method", "lines"), [("fork", True), ("spawn", False), ("forkserver", True)])
def test_other_processes(archive: Path, contents: dict[str, bytes], method: str, lines: bool) -> None:
    """Several workers read at once, also from a dataset that their parent has used."""
    dataset = ArchiveDataset(archive, "lines/*" if lines else "train/*", lines=lines, output="array")
    numbers = list(range(min(len(dataset), 200)))
    random.Random(3).shuffle(numbers)
    expected, parent = read_all(dataset, numbers)
    read = functools.partial(read_all, dataset)
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as executor:
        parts = [numbers[start : start + 20] for start in range(0, len(numbers), 20)]
        results = list(executor.map(read, parts))
    assert [sample for samples, _ in results for sample in samples] == expected
    assert parent not in {process for _, process in results}


def test_the_archive_has_changed(archive: Path, tmp_path: Path) -> None:
    """A copy of the dataset refuses to read from another generation; the dataset itself goes on with its own."""
    copy = tmp_path / "copy.gomp"
    copy.write_bytes(archive.read_bytes())
    dataset = ArchiveDataset(copy, output="bytes")
    same = pickle.loads(pickle.dumps(dataset))
    assert same[3] == dataset[3]
    (tmp_path / "more").write_bytes(b"more")
    add(copy, tmp_path / "more")
    with pytest.raises(ArchiveFormatError, match="has changed"):
        pickle.loads(pickle.dumps(dataset))[3]
    assert same[3] == dataset[3]
    dataset.close()
    with pytest.raises(ArchiveFormatError, match="has changed"):
        dataset[3]


def test_closing(archive: Path) -> None:
    dataset = ArchiveDataset(archive, output="bytes")
    first = dataset[0]
    dataset.close()
    dataset.close()
    assert dataset[0] == first
    with gompfs.open(archive) as files:
        files.read_many(["train/004.bin"])
    with pytest.raises(ValueError, match="closed"):
        files.read_many(["train/004.bin"])


def join(samples: list[Any]) -> bytes:
    return b"".join(sample.numpy().tobytes() + b"|" for sample in samples)


@pytest.fixture
def torch_dataset(archive: Path) -> ArchiveDataset:
    pytest.importorskip("torch")
    return ArchiveDataset(archive, "train/*")


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("num_workers", [0, 3])
def test_data_loader(torch_dataset: ArchiveDataset, contents: dict[str, bytes], method: str, num_workers: int) -> None:
    from torch.utils.data import DataLoader

    context = method if num_workers else None
    loader = DataLoader(
        torch_dataset, batch_size=7, shuffle=True, num_workers=num_workers, collate_fn=join,
        multiprocessing_context=context,
    )  # fmt: skip
    names = [name for name in contents if name.startswith("train/")]
    for _ in range(2):
        batches = list(loader)
        assert sum(map(len, batches)) == sum(len(contents[name]) + 1 for name in names)
        assert all(any(contents[name] + b"|" in batch for batch in batches) for name in names)


@pytest.mark.gpu
@pytest.mark.parametrize("lines", [False, True])
def test_samples_on_a_gpu(archive: Path, lines: bool) -> None:
    torch = pytest.importorskip("torch")
    pattern = "lines/*" if lines else "train/*"
    on_gpu = ArchiveDataset(archive, pattern, lines=lines, device="cuda:0")
    expected = ArchiveDataset(archive, pattern, lines=lines, output="bytes")
    numbers = list(range(min(len(expected), 100)))
    for _ in range(3):
        samples = on_gpu.__getitems__(numbers)
        assert {sample.device for sample in samples} == {torch.device("cuda:0")}
        assert [sample.cpu().numpy().tobytes() for sample in samples] == expected.__getitems__(numbers)


@pytest.mark.parametrize(("num_samples", "length"), [(0, 16), (1, 16), (5, 16), (1000, 16), (1000, 1), (1000, 600)])
def test_runs(num_samples: int, length: int) -> None:
    """Each epoch has every sample once, in runs of neighbours, and is another one."""
    sampler = RunSampler(range(num_samples), length, seed=7)
    assert len(sampler) == num_samples
    epochs = [list(sampler) for _ in range(3)]
    for epoch in epochs:
        assert sorted(epoch) == list(range(num_samples))
        num_borders = np.count_nonzero(np.diff(epoch) != 1)
        assert num_samples // length // 2 <= num_borders <= num_samples // length + 1
    again = RunSampler(range(num_samples), length, seed=7)
    assert [list(again) for _ in range(3)] == epochs
    if num_samples > 2 * length:
        assert len({tuple(epoch) for epoch in epochs}) == 3
    with pytest.raises(OptionError, match="a sample or more"):
        RunSampler(range(num_samples), 0)


def test_runs_in_a_data_loader(archive: Path, contents: dict[str, bytes]) -> None:
    data = pytest.importorskip("torch.utils.data")
    dataset = ArchiveDataset(archive, output="bytes")
    loader = data.DataLoader(dataset, 8, sampler=RunSampler(dataset, 4), num_workers=2, collate_fn=list)
    assert sorted(sample for batch in loader for sample in batch) == sorted(contents.values())
