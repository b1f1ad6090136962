"""Files or lines of an archive as a dataset for PyTorch, or for anything that takes samples by number.

    from torch.utils.data import DataLoader
    dataset = ArchiveDataset("corpus.gomp", "train/*.jpg", transform=decode)
    for batch in DataLoader(dataset, batch_size=256, shuffle=True, num_workers=8): ...

A DataLoader asks for the samples of a batch at once (`__getitems__`), so that the blocks of all of them are decoded
together, each block once. RunSampler has batches take several samples from each place, for archives of small files.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gompfs.archive import Archive
from gompfs.archive.index_arrays import all_extents, file_sizes
from gompfs.arrays.caller_memory import device_number
from gompfs.arrays.line_index import LineIndex
from gompfs.engine import select_engine
from gompfs.errors import ArchiveFormatError, CorruptIndexError, EntryNotFoundError, OptionError
from gompfs.files import AnyPath, ArchiveFiles
from gompfs.options import GpuOptions

if TYPE_CHECKING:
    from gompfs.format import Footer

OUTPUTS = ("tensor", "array", "bytes")


class ArchiveDataset:
    """The files of an archive, or the lines in them, by number. Thread-safe, picklable, and usable in forked processes.

    `files` chooses the files: a pattern that the whole path must match, in which `*` also matches slashes, or paths in
    the order of the samples. Files of a pattern are in the order in which they were packed; one with several names is
    one sample.

    With `lines`, each line of these files is a sample, without the newline that ends it. Where lines begin is found
    when the dataset is made, by reading all files once; it takes 8 bytes for each line.

    `output` says what a sample is: a `tensor` of PyTorch or an `array` of NumPy (CuPy on a GPU), of type uint8; or
    `bytes`. `transform`, if given, is called with each sample. `device` is where samples are decoded to, as for
    `ArchiveFiles.read_many`: `cpu`, or `cuda:0`, which suits a process without workers: workers of a DataLoader are
    forked, and cannot use a GPU that their parent has used.

    A process decodes on `num_threads` threads (0: one per core). `gpu_memory`, `gpu_resident` and `verify` are those of
    `gompfs.open`.
    """

    def __init__(
        self,
        archive: AnyPath,
        files: str | Iterable[AnyPath] = "*",
        *,
        lines: bool = False,
        output: str = "tensor",
        device: str = "cpu",
        transform: Callable[[Any], Any] | None = None,
        num_threads: int = 1,
        verify: bool = False,
        gpu_memory: int | None = None,
        gpu_resident: str = "auto",
    ) -> None:
        """Opens the archive, and finds the samples.

        Raises OptionError for wrong arguments, EntryNotFoundError if no file matches a pattern other than `*`, and the
        errors of `gompfs.open` and, with `lines`, of `read_many`; then also MemoryError if there are too many lines.
        """
        if output not in OUTPUTS:
            raise OptionError(f"unknown output {output!r}; use one of {', '.join(OUTPUTS)}")
        if output == "bytes" and device_number(device) is not None:
            raise OptionError("samples on a GPU are arrays or tensors, not bytes")
        self._path = os.path.abspath(os.fsdecode(archive))
        self._output, self._device, self._transform = output, device, transform
        self._num_threads, self._verify = num_threads, verify
        size = os.path.getsize(self._path) if gpu_resident == "on" else 0
        self._gpu = GpuOptions(gpu_memory, gpu_resident, size)
        self._footer: Footer | None = None
        self._opened: ArchiveFiles | None = None
        self._inos, sizes = self._find(files)
        self._lines = self._find_lines(sizes) if lines else None

    def _find(self, files: str | Iterable[AnyPath]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the inode numbers and the sizes of the files."""
        if not isinstance(files, str):
            inodes = [self.files.file_inode(path) for path in files]
            columns = np.array([(inode.ino, inode.size) for inode in inodes], np.int64).reshape(-1, 2)
        else:
            columns = file_sizes(self.files.archive)
            if files != "*":
                inos = _matching(self.files.archive, re.compile(fnmatch.translate(files)))
                columns = columns[np.isin(columns[:, 0], np.array(inos, np.int64))]
                if not len(columns):  # as torchvision's ImageFolder does: a typing error would be an epoch of nothing
                    raise EntryNotFoundError(f"no file matches {files!r}", archive=self._path)
        if (columns[:, 1] < 0).any():
            raise CorruptIndexError("table inode has impossible sizes", archive=self._path)
        return columns[:, 0].copy(), columns[:, 1].copy()

    def _find_lines(self, sizes: NDArray[np.int64]) -> LineIndex:
        """Finds the lines of all files, on all cores."""
        archive = Archive(self._path, engine=select_engine("cpu"), verify=self._verify)
        with ArchiveFiles(archive) as files:
            return LineIndex(files.read_many, self._inos, sizes, all_extents(archive))

    @property
    def files(self) -> ArchiveFiles:
        """The open archive. It is opened again in a process that has received this dataset.

        Raises ArchiveFormatError if the file holds another archive, or another generation of it, than before.
        """
        if self._opened is None:
            engine = select_engine("cpu", self._num_threads)
            archive = Archive(self._path, engine=engine, verify=self._verify)
            if self._footer not in (None, archive.footer):
                archive.close()
                raise ArchiveFormatError("the archive has changed since the dataset was made", archive=self._path)
            self._footer = archive.footer
            self._opened = ArchiveFiles(archive, self._gpu)
        return self._opened

    def close(self) -> None:
        """Close the archive. It is opened again when a sample is needed."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def __len__(self) -> int:
        return self._inos.size if self._lines is None else len(self._lines)

    def __getitem__(self, index: int) -> Any:
        """Returns one sample. Raises IndexError, and the errors of `read_many`."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indexes: Sequence[int]) -> list[Any]:
        """Returns several samples, which are decoded together. Raises as `__getitem__` does."""
        numbers = np.array(indexes, np.int64).reshape(-1)
        numbers = np.where(numbers < 0, numbers + len(self), numbers)
        if ((numbers < 0) | (numbers >= len(self))).any():
            raise IndexError(f"there are {len(self)} samples")
        wanted = self._inos[numbers] if self._lines is None else self._lines.ranges(numbers)
        arrays = self.files.read_many(wanted, self._device)
        if self._output == "bytes":
            samples: list[Any] = [array.tobytes() for array in arrays]
        elif self._output == "tensor":
            samples = _as_tensors(arrays.data, arrays.offsets)
        else:
            samples = list(arrays)
        return samples if self._transform is None else [self._transform(sample) for sample in samples]

    def path(self, index: int) -> str:
        """Returns the path of the file that a sample comes from."""
        number = range(len(self))[index]
        file = number if self._lines is None else int(self._lines.files(np.array([number]))[0])
        return os.fsdecode(self.files.archive.path_of(int(self._inos[file])))

    def __repr__(self) -> str:
        what = "files" if self._lines is None else "lines"
        return f"<{type(self).__name__}: {len(self)} {what} of {self._path!r}>"


class RunSampler:
    """The numbers of a dataset's samples, each once, in runs of neighbours, which come in random order.

        DataLoader(dataset, batch_size=256, sampler=RunSampler(dataset), num_workers=8)

    Neighbours are stored side by side, so that a batch of 256 decodes the blocks of 16 places, not of 256. Where runs
    begin differs from epoch to epoch, and so do the samples of a batch. Samples must be numbered in the order in which
    they are stored, as those of an ArchiveDataset with a pattern are.
    """

    def __init__(self, dataset: Sized, length: int = 16, seed: int | None = None) -> None:
        """A run has `length` samples. With a `seed`, the first epoch and those after it are always the same.

        Raises OptionError for a length below 1.
        """
        if length < 1:
            raise OptionError(f"a run needs a sample or more, not {length}")
        self._num_samples, self._length = len(dataset), length
        self._random = np.random.default_rng(seed)

    def __len__(self) -> int:
        return self._num_samples

    def __iter__(self) -> Iterator[int]:
        samples = np.arange(self._num_samples)
        first_border = int(self._random.integers(self._length))
        runs = np.split(samples, np.arange(first_border, self._num_samples, self._length))
        self._random.shuffle(runs)
        return iter(np.concatenate(runs).tolist())


def _matching(archive: Archive, pattern: re.Pattern[str]) -> list[int]:
    """Returns the inode numbers of entries that have a path which matches."""
    paths = archive.paths()
    inos = []
    for parent, name, ino in archive.index.names():
        directory = paths.get(parent)
        path = name if not directory else directory + b"/" + name
        if directory is not None and pattern.match(os.fsdecode(path)):
            inos.append(ino)
    return inos


def _as_tensors(data: Any, offsets: NDArray[np.int64]) -> list[Any]:
    """Returns the items as tensors that share the memory of `data`."""
    import torch

    return list(torch.split(torch.from_dlpack(data), np.diff(offsets).tolist()))
