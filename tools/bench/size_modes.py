"""The rows of the table `size`: how each archive of a directory is made, and how it is read."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from .packing import Packer
from .programs import GOMPFS, environment, lacking, pipeline, tar_of
from .servers import Server

OURS = "gompfs"
PROGRAMS = (
    *("tar", "gzip", "zstd", "mksquashfs", "squashfuse_ll", "squashfuse"),
    *("mkfs.erofs", "erofsfuse", "mkdwarfs", "dwarfs"),
)
KERNEL, DISK = "kernel", "disk"
_SQUASHFS_BLOCKS = {"128 KiB": "128K", "1 MiB": "1M"}
_SQUASHFUSE = ("squashfuse_ll", "squashfuse")
_MKFS = ("mkfs.erofs",)
_EROFS_CLUSTER = "65536"
_DWARFS_LEVELS = (4, 7)


@dataclass(frozen=True)
class Mode:
    """A way to store the directory.

    Without a packer it is the directory itself. The first of `servers` that works here mounts the archive; the archive
    of a mode without servers is a tar, which `decompress` writes to standard output.
    """

    name: str
    packer: Packer | None = None
    servers: tuple[Server, ...] = ()
    decompress: tuple[str | Path, ...] = ()


def modes_of(tree: Path, scratch: Path, mount_point: Path) -> list[Mode]:
    """Returns all modes. Archives go to `scratch`, mounts to `mount_point`."""
    return [
        *_our_modes(tree, scratch, mount_point),
        *_tar_modes(tree, scratch),
        *(_squashfs(tree, scratch, mount_point, name) for name in _SQUASHFS_BLOCKS),
        _erofs(tree, scratch, mount_point),
        *(_dwarfs(tree, scratch, mount_point, level) for level in _DWARFS_LEVELS),
        Mode("not packed", None, (Server(DISK),)),
    ]


def _our_modes(tree: Path, scratch: Path, mount_point: Path) -> list[Mode]:
    pack = [*GOMPFS, "pack", "-q"]
    commands: dict[str, list[str | Path]] = {
        "gompresso-tadoc": [*pack, "--codec", "gompresso-tadoc"],
        "gompresso-bit": [*pack, "--codec", "gompresso-bit"],
        "gompresso-byte": [*pack, "--codec", "gompresso-byte"],
    }
    modes = []
    for number, (name, command) in enumerate(commands.items()):
        archive = scratch / f"{number}.gomp"
        server = Server(OURS, mount=(*GOMPFS, "mount", archive, mount_point))
        modes.append(Mode(f"gompfs, {name}", Packer(name, [*command, tree, archive], archive), (server,)))
    return modes


def _tar_modes(tree: Path, scratch: Path) -> list[Mode]:
    modes = []
    for program, suffix, level in (("gzip", "gz", 6), ("gzip", "gz", 9), ("zstd", "zst", 3), ("zstd", "zst", 19)):
        name, archive = f"tar.{suffix} -{level}", scratch / f"{level}.tar.{suffix}"
        threads = ["-T0"] if program == "zstd" else []
        # The archive is $0, because gzip cannot name its output.
        compress = ["sh", "-c", 'exec "$@" > "$0"', archive, program, "-q", f"-{level}", *threads]
        packer = Packer(name, pipeline(tar_of(tree), compress), archive, ("bash", "tar", program))
        modes.append(Mode(name, packer, (), (program, "-dcq", archive)))
    return modes


def _squashfs(tree: Path, scratch: Path, mount_point: Path, block: str) -> Mode:
    name, image = f"squashfs zstd {block}", scratch / f"{_SQUASHFS_BLOCKS[block]}.squashfs"
    command = ["mksquashfs", tree, image, "-comp", "zstd", "-b", _SQUASHFS_BLOCKS[block], "-no-progress", "-quiet"]
    fuse = [Server(program, (program,), mount=(program, image, mount_point)) for program in _SQUASHFUSE]
    return Mode(name, Packer(name, command, image, ("mksquashfs",)), (_kernel("squashfs", image, mount_point), *fuse))


def _erofs(tree: Path, scratch: Path, mount_point: Path) -> Mode:
    codec, image = "zstd" if _erofs_has_zstd() else "lz4hc", scratch / "it.erofs"
    name = f"erofs {codec} 64 KiB"
    packer = Packer(name, ["mkfs.erofs", "--quiet", f"-z{codec}", f"-C{_EROFS_CLUSTER}", image, tree], image, _MKFS)
    fuse = Server("erofsfuse", ("erofsfuse",), mount=("erofsfuse", image, mount_point))
    return Mode(name, packer, (_kernel("erofs", image, mount_point), fuse))


def _erofs_has_zstd() -> bool:
    """Returns whether mkfs.erofs can compress with zstd, which versions before 1.8 cannot."""
    if lacking(_MKFS):
        return True
    done = subprocess.run([*_MKFS, "--help"], capture_output=True, text=True, check=False, env=environment())
    return "zstd" in done.stdout + done.stderr


def _dwarfs(tree: Path, scratch: Path, mount_point: Path, level: int) -> Mode:
    name, image = f"DwarFS -l{level}", scratch / f"{level}.dwarfs"
    command = ["mkdwarfs", "-i", tree, "-o", image, "-l", str(level), "--no-progress", "--log-level=warn"]
    server = Server("dwarfs", ("dwarfs",), mount=("dwarfs", image, mount_point))
    return Mode(name, Packer(name, command, image, ("mkdwarfs",)), (server,))


def _kernel(file_system: str, image: Path, mount_point: Path) -> Server:
    return Server(KERNEL, mount=("mount", "-t", file_system, "-o", "loop,ro", image, mount_point))
