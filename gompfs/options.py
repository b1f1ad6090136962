"""The options for packing and mounting, with their defaults, and the parsing of mount options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gompfs.codec import DEFAULT_BLOCK_SIZE, MAX_BLOCK_SIZE, MIN_BLOCK_SIZE, CodecOptions
from gompfs.errors import OptionError
from gompfs.model import GRAMMAR_BUILDERS, WORD_RULES


@dataclass(frozen=True)
class PackOptions:
    """How an archive is packed. Sizes are in bytes; `jobs` 0 means one thread per core."""

    codec: CodecOptions = field(default_factory=CodecOptions)
    block_size: int = DEFAULT_BLOCK_SIZE
    jobs: int = 0
    stats: bool = True
    grammar_builder: str = "repair"
    words: str = "whitespace"
    mtime_ns: int | None = None
    owner: int | None = None
    group: int | None = None
    force: bool = False

    def __post_init__(self) -> None:
        if not MIN_BLOCK_SIZE <= self.block_size <= MAX_BLOCK_SIZE or self.block_size & (self.block_size - 1):
            limits = f"{MIN_BLOCK_SIZE} and {MAX_BLOCK_SIZE}"
            raise OptionError(f"block size {self.block_size} is not a power of two between {limits}")
        if self.grammar_builder not in GRAMMAR_BUILDERS:
            raise OptionError(f"unknown grammar builder {self.grammar_builder!r}; use {' or '.join(GRAMMAR_BUILDERS)}")
        if self.words not in WORD_RULES:
            raise OptionError(f"unknown word rule {self.words!r}; use {' or '.join(WORD_RULES)}")


_TRUE_FLAGS = ("allow_other", "auto_unmount", "follow", "verify")
# Options that mount(8), mount.fuse3, /etc/fstab and systemd may pass for any mount. gompfs mounts are read-only in any
# case.
_IGNORED_FLAGS = (
    *("ro", "rw", "defaults", "auto", "noauto", "nofail", "_netdev"),
    *("user", "nouser", "users", "owner", "group"),
    *("suid", "nosuid", "dev", "nodev", "exec", "noexec"),
    *("sync", "async", "dirsync", "silent", "loud", "mand", "nomand"),
    *("atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime"),
    *("strictatime", "nostrictatime", "lazytime", "nolazytime"),
)
_IGNORED_PREFIXES = ("x-", "X-", "comment=", "user=")
_LARGEST = {"uid": (1 << 32) - 1, "gid": (1 << 32) - 1, "umask": 0o7777}
_SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
STATS_PLACES = ("hidden", "visible", "off")
RESIDENT_MODES = ("auto", "on", "off")
_OTHER_FLAGS: dict[str, tuple[str, object]] = {
    "union": ("several", "union"),
    "subdir_per_archive": ("several", "subdirs"),
    "stats=public": ("stats_public", True),  # may be combined with stats=visible or stats=hidden
}
FUSE_APIS = ("low", "high")
_CHOICES = {"api": FUSE_APIS, "stats": STATS_PLACES}
_LEAST_GPU_MEMORY = 64 << 20


@dataclass(frozen=True)
class GpuOptions:
    """Limits for a GPU engine: at most `memory` bytes of each device (None: half of the free memory).

    `resident` says which compressed blocks stay in device memory, so that the next read needs no upload: as many as fit
    (`auto`), or none (`off`). With `on`, the whole archive of `archive_size` bytes must fit; otherwise the engine is
    refused.
    """

    memory: int | None = None
    resident: str = "auto"
    archive_size: int = 0

    def __post_init__(self) -> None:
        if self.memory is not None and self.memory < _LEAST_GPU_MEMORY:
            raise OptionError(f"gpu_memory must be {_LEAST_GPU_MEMORY >> 20}M or more")
        if self.resident not in RESIDENT_MODES:
            raise OptionError(f"gpu_resident must be one of {', '.join(RESIDENT_MODES)}")


@dataclass(frozen=True)
class MountOptions:
    """How an archive is mounted. Sizes are in bytes; `umask` is the bits to clear in every mode.

    `subdir` is the directory of the archive to show as the root. `readahead` is how far the kernel reads ahead,
    `decode_ahead` how far the daemon decodes ahead of a sequential reader (None: the default of the engine). Open files
    are decoded whole into memory that the kernel reads directly, up to `passthrough_size` bytes in total.
    With `follow`, the mount shows the new content when the archive is replaced or added to. `stats` says whether the
    virtual directory `stats` is listed in the root (`visible`), can be opened but is not listed (`hidden`), or does not
    exist (`off`). `stats_public` lets all users read all statistics, even of files that they may not read.
    `several` says how to show several archives: merged into one tree (`union`), or each in a directory (`subdirs`).
    `api` selects the connection to the kernel: /dev/fuse directly (`low`), or libfuse (`high`).
    """

    engine: str = "auto"
    api: str = "low"
    cache_size: int = 256 << 20
    readahead: int = 4 << 20
    verify: bool = False
    allow_other: bool = False
    auto_unmount: bool = False
    follow: bool = False
    several: str | None = None
    uid: int | None = None
    gid: int | None = None
    umask: int = 0
    subdir: str = ""
    stats: str = "hidden"
    stats_public: bool = False
    fsname: str | None = None
    gpu_memory: int | None = None
    gpu_resident: str = "auto"
    passthrough_size: int = 0
    decode_ahead: int | None = None

    def __post_init__(self) -> None:
        if self.stats == "off" and self.stats_public:
            raise OptionError("stats=off and stats=public contradict each other")

    def gpu_options(self, archive_size: int) -> GpuOptions:
        """Returns the GPU options for an archive of `archive_size` bytes."""
        return GpuOptions(self.gpu_memory, self.gpu_resident, archive_size)

    @classmethod
    def parse(cls, text: str) -> MountOptions:
        """Parse comma-separated options in the syntax of `mount -o`. Raises OptionError for an unknown option."""
        values: dict[str, object] = {}
        for item in filter(None, text.split(",")):
            name, has_value, value = item.partition("=")
            if name in _TRUE_FLAGS and not has_value:
                values[name] = True
            elif item in _OTHER_FLAGS:
                field_name, flag_value = _OTHER_FLAGS[item]
                values[field_name] = flag_value
            elif name in ("uid", "gid"):
                values[name] = _number(name, value, 10)
            elif name == "umask":
                values[name] = _number(name, value, 8)
            elif name in ("cache_size", "gpu_memory", "passthrough_size", "decode_ahead", "readahead"):
                values[name] = parse_size(value)
            elif value in _CHOICES.get(name, ()) or (name in ("engine", "fsname", "gpu_resident", "subdir") and value):
                values[name] = value
            elif item not in _IGNORED_FLAGS and not item.startswith(_IGNORED_PREFIXES):
                raise OptionError(f"unknown mount option {item!r}")
        options = cls(**values)  # type: ignore[arg-type]
        options.gpu_options(0)  # raises OptionError for invalid values
        return options


def join_source(archives: Sequence[str], several: str | None) -> str:
    """Join archives into one source name, separated by colons; colons in names are escaped with a backslash."""
    return archives[0] if several is None else ":".join(archive.replace(":", "\\:") for archive in archives)


def split_source(source: str, several: str | None) -> list[str]:
    """Split a source name of join_source() into archives. Raises OptionError if a name is empty."""
    archives = [source] if several is None else [name.replace("\\:", ":") for name in re.split(r"(?<!\\):", source)]
    if not all(archives):
        raise OptionError(f"an archive name is empty in {source!r}")
    return archives


def parse_size(text: str) -> int:
    """Parse a number of bytes with an optional unit K, M or G (powers of 1024). Raises OptionError."""
    stripped = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = stripped[-1:] if stripped[-1:] in ("K", "M", "G") else ""
    return _number("size", stripped.removesuffix(unit), 10) * _SIZE_UNITS[unit]


def _number(name: str, text: str, base: int) -> int:
    try:
        value = int(text, base)
    except ValueError:
        raise OptionError(f"{name} must be a number, not {text!r}") from None
    if value < 0:
        raise OptionError(f"{name} must not be negative")
    if value > _LARGEST.get(name, value):
        raise OptionError(f"{name} must be at most {_LARGEST[name]:{'o' if base == 8 else 'd'}}")
    return value
