"""Measures an epoch over many files in random order, by PyTorch's DataLoader with several worker processes."""

from __future__ import annotations

import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gompfs.engine import select_engine
from gompfs.torch import ArchiveDataset, RunSampler

from .arrays import ARCHIVES
from .blocks import regular_files
from .report import Report
from .servers import Server, mounted, run, servers_of
from .timing import interleave

_COLUMNS = ["files/s", "MB/s", "seconds", "MB stored"]
_FILES_OF_SHARD = 1000
_SHUFFLED_AT_ONCE = 5000  # samples, in each worker of WebDataset

Batch = tuple[Any, list[int]]  # the bytes of all samples as a tensor, and their sizes


class Paths:
    """Files by number, as a dataset."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [str(path) for path in paths]

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        return np.fromfile(self._paths[index], np.uint8)


def join(samples: Sequence[NDArray[np.uint8]]) -> Batch:
    """Returns a batch as one tensor: each tensor that goes to another process takes an open file, which is slow."""
    import torch

    return torch.from_numpy(np.concatenate(samples)), [sample.size for sample in samples]


def measure_epoch(tree: Path, num_workers: int, batch_size: int, only: Sequence[str], rounds: int) -> Report:
    """Returns a table with a row for each way to store the files of a tree.

    Raises AssertionError if an epoch does not have every file once, with its bytes.
    """
    paths = [path for path in regular_files(tree) if path.stat().st_size]
    contents = [path.read_bytes() for path in paths]
    size, expected = sum(map(len, contents)), sum(map(zlib.crc32, contents))
    del contents
    title = f"{len(paths):,} files of {tree.name}, {size / 1e6:,.1f} MB; {num_workers} workers; medians of {rounds}"
    report = Report(title, _COLUMNS)
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch, ExitStack() as stack:
        loaders: dict[str, Iterable[Batch]] = {}
        stored: dict[str, float] = {}
        load = partial(_loader, num_workers=num_workers, batch_size=batch_size)
        for name, dataset, archive in _of_archives(tree, paths, Path(scratch)):
            if not only or any(text in name for text in only):
                in_runs = f"{name}, in runs"
                loaders[name], loaders[in_runs] = load(dataset), load(dataset, sampler=RunSampler(dataset))
                stored[name] = stored[in_runs] = archive.stat().st_size / 1e6
        for server, directory in _mount_all(tree, Path(scratch), stack, report):
            name = f"{server.name}, mounted" if server.mount else "the files themselves"
            loaders[name] = load(Paths([directory / path.relative_to(tree) for path in paths]))
            stored[name] = server.archive_size or size / 1e6
        if find_spec("webdataset") is None:
            report.add_missing("WebDataset", ["webdataset"])
        else:
            shards = _make_shards(paths, Path(scratch))
            loaders["WebDataset, tar"] = _web_loader(shards, num_workers, batch_size)
            stored["WebDataset, tar"] = sum(shard.stat().st_size for shard in shards) / 1e6
        for name, loader in loaders.items():
            assert (len(paths), expected) == _checksum(loader), name
        jobs: dict[str, Callable[[], object]] = {name: partial(_run, each) for name, each in loaders.items()}
        for name, seconds in interleave(jobs, rounds).items():
            report.add(name, len(paths) / seconds, size / 1e6 / seconds, seconds, stored[name])
    report.notes.append(
        f"From the start of the workers to the last batch of {batch_size} files, joined to one tensor. Each file came "
        "once, with its bytes, in random order; in runs: 16 files that are stored side by side, in random order. "
        "WebDataset takes shards of 1,000 files in random order, and files from a buffer of 5,000 in each worker. The "
        "page cache is warm."
    )
    return report


def _of_archives(tree: Path, paths: Sequence[Path], scratch: Path) -> Iterator[tuple[str, ArchiveDataset, Path]]:
    """Packs the tree. Yields names, datasets, and the archives that they read."""
    from gompfs.pack import open_source, pack_archive  # needs zstandard, which other benchmarks may miss

    for name, options in ARCHIVES.items():
        archive = scratch / f"{name}.gomp"
        pack_archive([open_source(tree)], archive, options, engine=select_engine("cpu"))
        yield name, ArchiveDataset(archive, [str(path.relative_to(tree)) for path in paths], output="array"), archive


def _mount_all(tree: Path, scratch: Path, stack: ExitStack, report: Report) -> Iterator[tuple[Server, Path]]:
    """Yields the servers that are installed, and where each has mounted the tree until the end of the stack."""
    for number, server in enumerate(servers_of(tree, scratch, scratch / "none", None)):
        if missing := server.missing():
            report.add_missing(server.name, missing)
            continue
        if server.make:
            run(server.make)
        place = scratch / f"mount-{number}"
        server = servers_of(tree, scratch, place, None)[number]
        yield server, stack.enter_context(mounted(server, tree, place, cold=False))[0]


def _loader(dataset: Any, *, num_workers: int, batch_size: int, sampler: RunSampler | None = None) -> Iterable[Batch]:
    from torch.utils.data import DataLoader

    return DataLoader(
        dataset, batch_size, shuffle=sampler is None, sampler=sampler, num_workers=num_workers, collate_fn=join
    )


def _make_shards(paths: Sequence[Path], scratch: Path) -> list[Path]:
    """Writes tar archives with the files, in order. Returns their paths."""
    shards: list[Path] = []
    numbered = enumerate(paths)
    while some := list(islice(numbered, _FILES_OF_SHARD)):
        shards.append(scratch / f"shard-{len(shards):05}.tar")
        with tarfile.open(shards[-1], "w") as tar:
            for number, path in some:
                tar.add(path, f"{number:08}.bin")
    return shards


def _web_loader(shards: Sequence[Path], num_workers: int, batch_size: int) -> Iterable[Batch]:
    import webdataset

    samples = webdataset.WebDataset(
        [str(shard) for shard in shards], shardshuffle=len(shards), empty_check=False
    ).shuffle(_SHUFFLED_AT_ONCE)
    arrays = samples.to_tuple("bin").map(lambda sample: np.frombuffer(sample[0], np.uint8))
    batches = arrays.batched(batch_size, collation_fn=join)
    loader: Iterable[Batch] = webdataset.WebLoader(batches, batch_size=None, num_workers=num_workers)
    return loader


def _run(loader: Iterable[Batch]) -> None:
    for _ in loader:
        pass


def _checksum(loader: Iterable[Batch]) -> tuple[int, int]:
    """Returns the number of samples of an epoch, and the sum of their checksums."""
    count = total = 0
    for joined, sizes in loader:
        ends = np.cumsum(sizes)
        count += len(sizes)
        total += sum(zlib.crc32(sample) for sample in np.split(joined.numpy(), ends[:-1]))
    return count, total
