"""Compiled kernels are found for the GPUs that can execute them, and only if they are of the sources that are there."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from cupy_on_host import cupy_on_host
from tool_modules import tool_module

from gompfs.gpu.device import kernel_sources
from gompfs.gpu.device.compiled_kernels import archive_name, compiled_folder, member_name, read_compiled
from gompfs.gpu.device.kernel_sources import kernel_folder, read_source

compile_kernels = tool_module("compile_kernels")
KERNEL, OTHER = "reading/gather_pieces", "encode/check"
ARCHITECTURES = (75, 80, 86)
NUM_MUTATIONS = 200


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Archives of two kernels."""
    folder: Path = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_kernels, "kernel_names", lambda: [OTHER, KERNEL])
        compile_kernels.compile_all(ARCHITECTURES, folder)
    return folder


@pytest.fixture
def installed(archives: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of sources as in an installed package, with the archives."""
    folder = tmp_path / "gompfs" / "kernels"
    shutil.copytree(kernel_folder(), folder, ignore=shutil.ignore_patterns("host", "compiled"))
    shutil.copytree(archives, folder / "compiled")
    monkeypatch.setattr(kernel_sources, "_PACKAGE", tmp_path / "gompfs")
    assert compiled_folder() == folder / "compiled"
    return folder


@pytest.fixture
def cubins() -> dict[int, bytes]:
    """The kernel KERNEL, compiled another time."""
    return {architecture: compile_kernels.compile_kernel(KERNEL, architecture) for architecture in ARCHITECTURES}


@pytest.mark.usefixtures("installed")
def test_a_gpu_gets_the_newest_kernel_that_it_can_execute(cubins: dict[int, bytes]) -> None:
    assert len(set(cubins.values())) == len(ARCHITECTURES)
    expected = {75: 75, 80: 80, 83: 80, 86: 86, 89: 86, 70: None, 72: None, 90: None, 100: None, 120: None}
    for architecture, number in expected.items():
        assert read_compiled(KERNEL, architecture) == (None if number is None else cubins[number])


def test_installed_sources_have_the_digests_of_the_checkout(
    installed: Path, archives: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = compile_kernels.kernel_names()
    assert len(names) > 20
    digests = [member_name(name) for name in names]
    assert len(set(digests)) == len(names)
    monkeypatch.undo()
    assert kernel_folder() != installed
    assert [member_name(name) for name in names] == digests
    with ZipFile(archives / archive_name(75)) as archive:
        assert archive.namelist() == [member_name(OTHER), member_name(KERNEL)]


def test_a_changed_header_makes_all_kernels_stale(installed: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert read_compiled(KERNEL, 75) is not None
    assert not caplog.records
    headers = [path for path in installed.rglob("*") if path.suffix in (".h", ".cuh")]
    assert len(headers) > 30
    for header in headers:
        content = header.read_bytes()
        header.write_bytes(content + b"\n")
        kernel_sources.digest_of_headers.cache_clear()
        caplog.clear()
        assert read_compiled(KERNEL, 75) is read_compiled(OTHER, 75) is None
        assert [record.levelno for record in caplog.records] == [logging.DEBUG] * 2
        assert f"{KERNEL}: the compiled kernel in {compiled_folder() / 'sm_75.zip'} is of another" in caplog.text
        header.write_bytes(content)
    kernel_sources.digest_of_headers.cache_clear()
    assert read_compiled(KERNEL, 75) is not None


def test_a_changed_source_makes_one_kernel_stale(installed: Path) -> None:
    source = installed / f"{KERNEL}.cu"
    source.write_text(source.read_text() + "\n")
    assert read_compiled(KERNEL, 75) is None
    assert read_compiled(OTHER, 75) is not None


def test_damaged_archives_have_no_kernels(
    installed: Path, cubins: dict[int, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever happens to the bytes: a kernel is either as it was, or not there."""
    path = installed / "compiled" / archive_name(75)
    content = path.read_bytes()
    rng = random.Random(4)
    found = []
    for number in range(NUM_MUTATIONS):
        damaged = bytearray(content)
        if number % 5 == 0:
            del damaged[rng.randrange(len(content)) :]
        for _ in range(rng.choice([1, 1, 2, 10])):
            # most of the structure of a zip archive is at its end
            start = rng.choice([0, max(len(damaged) - 400, 0)])
            if len(damaged) > start:
                damaged[rng.randrange(start, len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        found.append(read_compiled(KERNEL, 75))
    assert set(found) == {None, cubins[75]}
    assert found.count(None) > NUM_MUTATIONS // 10
    assert f"{KERNEL}: the compiled kernel in {path} cannot be read: " in caplog.text
    path.unlink()
    assert read_compiled(KERNEL, 75) is None
    path.mkdir()
    assert read_compiled(KERNEL, 75) is None


class FakeModule:
    """See cupy.cuda.Module. `refused` are cubins that the driver cannot load."""

    refused: bytes | None = None

    def load(self, cubin: bytes) -> None:
        if cubin == self.refused:
            raise FakeDriverError("CUDA_ERROR_NO_BINARY_FOR_GPU")
        self.content = cubin

    def get_function(self, name: str) -> tuple[bytes, str]:
        return self.content, name


class FakeDriverError(RuntimeError):
    """See cupy.cuda.driver.CUDADriverError."""


@pytest.fixture
def cuda() -> Iterator[SimpleNamespace]:
    """The names of gompfs.gpu.device.cuda, with a stand-in for CuPy that compiles source to the bytes of its text."""

    def raw_module(code: str, options: tuple[str, ...], backend: str) -> SimpleNamespace:
        assert backend == "nvrtc"
        module = FakeModule()
        module.load(code.encode())
        return SimpleNamespace(module=module)

    with cupy_on_host():
        import cupy

        from gompfs.gpu.device import cuda

        device = SimpleNamespace(id=0, compute_capability="75")
        cupy.cuda.Device = lambda: device
        cupy.cuda.Module = type("Module", (FakeModule,), {})
        cupy.cuda.driver = SimpleNamespace(CUDADriverError=FakeDriverError)
        cupy.RawModule = raw_module
        yield SimpleNamespace(modules=cuda.KernelModules(), device=device, module=cupy.cuda.Module)


@pytest.mark.usefixtures("installed")
def test_modules_are_loaded_for_each_device(cuda: Any, cubins: dict[int, bytes]) -> None:
    assert cuda.modules.function(KERNEL, "a") == (cubins[75], "a")
    assert cuda.modules.function(KERNEL, "b") == (cubins[75], "b")
    assert cuda.modules.describe() == "kernels: 1 precompiled"
    cuda.device.id, cuda.device.compute_capability = 1, "89"
    assert cuda.modules.function(KERNEL, "a") == (cubins[86], "a")
    cuda.device.id, cuda.device.compute_capability = 2, "90"
    assert cuda.modules.function(KERNEL, "a") == (read_source(KERNEL).encode(), "a")
    assert cuda.modules.describe() == "kernels: 1 compiled by CuPy"
    cuda.device.id = 0
    assert cuda.modules.function(KERNEL, "a") == (cubins[75], "a")


def remove(folder: Path, _cuda: Any) -> None:
    shutil.rmtree(folder / "compiled")


def damage(folder: Path, _cuda: Any) -> None:
    (folder / "compiled" / archive_name(75)).write_bytes(b"PK" * 100)


def change_header(folder: Path, _cuda: Any) -> None:
    with (folder / "shared" / "warp.cuh").open("a") as header:
        header.write("// changed\n")


def refuse(folder: Path, cuda: Any) -> None:
    cuda.module.refused = read_compiled(KERNEL, 75)


@pytest.mark.parametrize(
    ("spoil", "level"),
    [(remove, logging.DEBUG), (damage, logging.WARNING), (change_header, logging.DEBUG), (refuse, logging.WARNING)],
)
def test_what_cannot_be_loaded_is_compiled(
    installed: Path,
    cuda: Any,
    spoil: Callable[[Path, Any], None],
    level: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    spoil(installed, cuda)
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    assert cuda.modules.function(KERNEL, "a") == (read_source(KERNEL).encode(), "a")
    assert [record.levelno for record in caplog.records] == [level]
    other = cuda.modules.function(OTHER, "a")[0]
    assert (other[:4] == b"\x7fELF") == (spoil is refuse)
    counts = "1 precompiled, 1" if spoil is refuse else "2"
    assert cuda.modules.describe() == f"kernels: {counts} compiled by CuPy"
