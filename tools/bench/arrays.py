"""Measures reading many files into one array: by `read_many`, on the CPU and on a GPU, and file by file."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gompfs
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.files import ArchiveFiles
from gompfs.options import PackOptions

from .blocks import regular_files
from .report import Report
from .timing import interleave

ARCHIVES = {
    "gompresso-byte": PackOptions(codec=Codec.GOMPRESSO_BYTE),
    "gompresso-bit": PackOptions(codec=Codec.GOMPRESSO_BIT, dictionary_size=0),
    "gompresso-bit with dictionary": PackOptions(codec=Codec.GOMPRESSO_BIT),
    "gompresso-tadoc": PackOptions(),
}
_COLUMNS = ["GB/s", "ms", "ratio"]
_SEED = 1
_BATCH = 64  # files that a worker of a DataLoader reads at once


@dataclass
class Chosen:
    """The files that are read, in random order: their paths in the tree, and all their bytes one after another."""

    tree: Path
    paths: list[Path]
    content: NDArray[np.uint8]

    @property
    def names(self) -> list[str]:
        """The paths in an archive of the tree."""
        return [str(path.relative_to(self.tree)) for path in self.paths]


def measure_arrays(tree: Path, num_files: int, num_workers: int, only: Sequence[str], rounds: int) -> Report:
    """Returns a table with a row for each way to read `num_files` files of a tree, and each kind of archive.

    The peer is PyTorch's DataLoader with `num_workers` processes. Raises AssertionError if one returns other bytes.
    """
    from gompfs.pack import open_source, pack_archive  # needs zstandard, which other benchmarks may miss

    chosen = _choose(tree, num_files)
    size = chosen.content.size
    title = f"{len(chosen.paths)} files of {tree.name}, {size / 1e6:.1f} MB, in random order; medians of {rounds}"
    report = Report(title, _COLUMNS)
    ratios: dict[str, float | None] = {}
    with tempfile.TemporaryDirectory(prefix="gompfs-bench-") as scratch, ExitStack() as stack:
        jobs: dict[str, Callable[[], Any]] = _from_tree(chosen)
        if find_spec("torch") is None:
            report.add_missing(f"files of the tree, DataLoader, {num_workers} workers", ["torch"])
        else:
            jobs |= _by_data_loader(chosen, num_workers)
        for name, options in ARCHIVES.items():
            if only and not any(text in name for text in only):
                continue
            archive = Path(scratch, f"{name}.gomp")
            packed = pack_archive([open_source(tree)], archive, options, engine=select_engine("cpu"))
            for way, job in _from_archive(archive, chosen, stack).items():
                jobs[f"{name}, {way}"] = job
                ratios[f"{name}, {way}"] = packed.size / packed.archive_size
        for name, job in jobs.items():
            assert _on_host(job()).tobytes() == chosen.content.tobytes(), name
        for name, seconds in interleave(jobs, rounds).items():
            report.add(name, size / 1e9 / seconds, seconds * 1e3, ratios.get(name))
    report.notes.append(
        "By number: inode numbers that were looked up before. On cuda:0, the array is in device memory; `resident`: "
        "the compressed blocks are there before. The tree is in the page cache. Every way returned the same bytes."
    )
    report.notes.append(
        f"DataLoader: workers that run already read batches of {_BATCH} files, which are copied into one tensor. "
        "Batches for cuda:0 are pinned."
    )
    return report


def _choose(tree: Path, num_files: int) -> Chosen:
    paths = list(regular_files(tree))
    random.Random(_SEED).shuffle(paths)
    paths = paths[:num_files]
    return Chosen(tree, paths, np.frombuffer(b"".join(path.read_bytes() for path in paths), np.uint8))


def _from_tree(chosen: Chosen) -> dict[str, Callable[[], Any]]:
    """Returns ways to read the files themselves."""

    def read() -> NDArray[np.uint8]:
        return np.concatenate([np.fromfile(path, np.uint8) for path in chosen.paths])

    return {"files of the tree": read}


class _Batches:
    """The files of a tree by number of a batch, as a dataset: an item is the bytes of a batch."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [str(path) for path in paths]

    def __len__(self) -> int:
        return -(-len(self._paths) // _BATCH)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        batch = self._paths[index * _BATCH : (index + 1) * _BATCH]
        return np.concatenate([np.fromfile(path, np.uint8) for path in batch])


def _by_data_loader(chosen: Chosen, num_workers: int) -> dict[str, Callable[[], Any]]:
    """Returns ways to read the files by worker processes of PyTorch, in the same order."""
    import torch
    from torch.utils.data import DataLoader

    def reader(target: str) -> Callable[[], Any]:
        loader: Any = DataLoader(
            _Batches(chosen.paths),  # type: ignore[arg-type]  # it has the methods of a dataset
            batch_size=None,
            num_workers=num_workers,
            persistent_workers=True,
            pin_memory=target != "cpu",
        )
        out = torch.empty(chosen.content.size, dtype=torch.uint8, device=target)

        def read() -> Any:
            start = 0
            for batch in loader:
                out[start : start + batch.numel()].copy_(batch, non_blocking=True)
                start += batch.numel()
            if target != "cpu":
                torch.cuda.synchronize()
            return out

        return read

    name = f"files of the tree, DataLoader, {num_workers} workers"
    jobs = {name: reader("cpu")}
    if _has_gpu():
        jobs[f"{name}, to cuda:0"] = reader("cuda:0")
    return jobs


def _from_archive(archive: Path, chosen: Chosen, stack: ExitStack) -> dict[str, Callable[[], Any]]:
    """Returns ways to read the files from an archive."""
    names = chosen.names
    on_cpu = stack.enter_context(gompfs.open(archive, engine="cpu"))
    numbers = np.array([on_cpu.stat(name).st_ino for name in names], np.int64)
    jobs: dict[str, Callable[[], Any]] = {
        "one by one": lambda: np.frombuffer(b"".join(map(on_cpu.read, names)), np.uint8),
        "read_many": lambda: on_cpu.read_many(names).data,
        "read_many by number": lambda: on_cpu.read_many(numbers).data,
    }
    if _has_gpu():
        for resident in ("off", "on"):
            files = stack.enter_context(gompfs.open(archive, engine="gpu", gpu_resident=resident))
            where = "cuda:0, resident" if resident == "on" else "cuda:0"
            jobs[f"read_many by number, {where}"] = _reader(files, numbers, chosen.content.size)
    return jobs


def _reader(files: ArchiveFiles, numbers: NDArray[np.int64], size: int) -> Callable[[], Any]:
    import cupy

    out = cupy.empty(size, cupy.uint8)
    return lambda: files.read_many(numbers, "cuda:0", out=out).data


def _on_host(array: Any) -> NDArray[np.uint8]:
    """Returns an array of NumPy, CuPy or PyTorch as one of NumPy."""
    if hasattr(array, "get"):
        array = array.get()
    elif hasattr(array, "cpu"):
        array = array.cpu().numpy()
    return np.asarray(array)


def _has_gpu() -> bool:
    try:
        select_engine("gpu")
    except gompfs.EngineUnavailableError:
        return False
    return True
