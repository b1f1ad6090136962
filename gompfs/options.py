"""The options for packing and mounting, with their defaults, and the parsing of mount options."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gompfs.codec import (
    DEFAULT_BLOCK_SIZE,
    DEFAULT_LEVEL,
    MAX_BLOCK_SIZE,
    MAX_PART_SIZE,
    MIN_BLOCK_SIZE,
    Codec,
    CodecOptions,
)
from gompfs.codec.constants import MAX_DICTIONARY_SIZE
from gompfs.errors import OptionError
from gompfs.light_types import TYPE_CHECKING, frozen
from gompfs.model import WORD_RULES

if TYPE_CHECKING:
    from typing import Any


@frozen
class PackOptions:
    """How an archive is packed. Sizes are in bytes; `jobs` 0 means one thread per core.

    With `part_size`, a part of the stream ends after that many bytes. `dictionary_size` 0 means that the archive gets
    no dictionary, None that its size depends on that of the stream; `add` ignores it. With `check`, blocks are decoded
    when they are encoded, and everything is read back before it becomes visible. With `checksum`, `add` also reads
    files whose size and time have not changed; `pack` ignores it. `purpose` is a name of PURPOSES, which the archive
    notes; `for_purpose` sets the other fields. `comment` is a text for the list of generations.
    """

    codec: Codec = Codec.GOMPRESSO_TADOC
    level: int = DEFAULT_LEVEL
    dependency_elimination: bool = False
    block_size: int = DEFAULT_BLOCK_SIZE
    jobs: int = 0
    words: str = "identifiers"
    mtime_ns: int | None = None
    owner: int | None = None
    group: int | None = None
    force: bool = False
    part_size: int | None = None
    dictionary_size: int | None = None
    check: bool = True
    checksum: bool = False
    purpose: str | None = None
    comment: str = ""

    def __post_init__(self) -> None:
        if self.part_size is not None and self.part_size < 1:
            raise OptionError("a part has one byte or more")
        if not MIN_BLOCK_SIZE <= self.block_size <= MAX_BLOCK_SIZE or self.block_size & (self.block_size - 1):
            limits = f"{MIN_BLOCK_SIZE} and {MAX_BLOCK_SIZE}"
            raise OptionError(f"block size {self.block_size} is not a power of two between {limits}")
        if self.purpose is not None and self.purpose not in PURPOSES:
            raise OptionError(f"unknown purpose {self.purpose!r}; use {' or '.join(PURPOSES)}")
        if self.words not in WORD_RULES:
            raise OptionError(f"unknown word rule {self.words!r}; use {' or '.join(WORD_RULES)}")
        self._check_dictionary()
        self.data_codec()  # raises OptionError for an unknown level

    def _check_dictionary(self) -> None:
        size = self.dictionary_size
        if size and not self.can_have_dictionary:
            raise OptionError(
                "with this codec, an archive has no dictionary: use --codec gompresso-tadoc or gompresso-bit"
            )
        if size is not None and not 0 <= size <= MAX_DICTIONARY_SIZE:
            raise OptionError(f"a dictionary of {size} bytes is larger than {MAX_DICTIONARY_SIZE} bytes")

    @classmethod
    def for_purpose(cls, purpose: str | None, **fields: Any) -> PackOptions:
        """Returns the options of a name of PURPOSES, or the defaults; those in `fields` have other values.

        Raises OptionError.
        """
        return cls(**{**PURPOSES.get(purpose or "", {}), "purpose": purpose, **fields})

    @property
    def text_as_grammar(self) -> bool:
        """If text is stored as grammars of parts (codec gompresso-tadoc)."""
        return self.codec is Codec.GOMPRESSO_TADOC

    @property
    def can_have_dictionary(self) -> bool:
        """If a new archive can have a dictionary: content that is no grammar is stored by the codec gompresso-bit."""
        return self.data_codec().codec is Codec.GOMPRESSO_BIT

    def data_codec(self) -> CodecOptions:
        """Returns how all content is coded that is not stored as a grammar."""
        codec = Codec.GOMPRESSO_BIT if self.text_as_grammar else self.codec
        return CodecOptions(codec, self.level, self.dependency_elimination)


PURPOSES: dict[str, dict[str, Any]] = {
    "size": {"level": 8, "block_size": MAX_BLOCK_SIZE, "part_size": MAX_PART_SIZE},
    "speed": {"codec": Codec.GOMPRESSO_BYTE, "level": 1},
    "training": {"codec": Codec.GOMPRESSO_BYTE, "block_size": 32 << 10},
}
"""What an archive can be packed for, and the fields of PackOptions that are right for it. docs/howto/choose.md has the
measurements.
"""

# Options that mount(8), mount.fuse3, /etc/fstab and systemd may pass for any mount. gompfs mounts are read-only, nosuid
# and nodev in any case. mount(8) passes noexec too where `user` or `users` stands for it.
_IGNORED_FLAGS = (
    *("ro", "rw", "defaults", "auto", "noauto", "nofail", "_netdev"),
    *("user", "nouser", "users", "owner", "group"),
    *("suid", "nosuid", "dev", "nodev"),
    *("sync", "async", "dirsync", "silent", "loud", "mand", "nomand"),
    *("atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime"),
    *("strictatime", "nostrictatime", "lazytime", "nolazytime"),
)
_IGNORED_PREFIXES = ("x-", "X-", "comment=", "user=")
_LARGEST = {"uid": (1 << 32) - 1, "gid": (1 << 32) - 1, "umask": 0o7777}
_SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
RESIDENT_MODES = ("auto", "on", "off")
_LEAST_GPU_MEMORY = 64 << 20


@frozen
class GpuOptions:
    """Limits for a GPU engine: at most `memory` bytes of each device (None: half of the free memory).

    `resident` says which compressed blocks stay in device memory, so that the next read needs no upload: as many as fit
    (`auto`), or none (`off`). With `on`, the whole archive of `archive_size` bytes must fit; otherwise the engine is
    refused. Unless `resident` is off, the words of an archive may stay there too, for statistics, in `stats_memory`
    bytes besides `memory` (None: an eighth of the free memory; 0: they do not stay).
    """

    memory: int | None = None
    resident: str = "auto"
    archive_size: int = 0
    stats_memory: int | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and self.memory < _LEAST_GPU_MEMORY:
            raise OptionError(f"gpu_memory must be {_LEAST_GPU_MEMORY >> 20}M or more")
        if self.resident not in RESIDENT_MODES:
            raise OptionError(f"gpu_resident must be one of {', '.join(RESIDENT_MODES)}")


@frozen
class MountOptions:
    """How an archive is mounted. Sizes are in bytes; `umask` is the bits to clear in every mode.

    MOUNT_OPTIONS says what the fields mean. `several` says how to show several archives: merged into one tree
    (`union`), or each in a directory (`subdirs`). None stands for the default of the engine or the system.
    """

    engine: str = "auto"
    api: str = "low"
    cache_size: int = 64 << 20
    readahead: int = 4 << 20
    verify: bool = False
    allow_other: bool = False
    auto_unmount: bool = False
    noexec: bool = False
    follow: bool = False
    several: str | None = None
    uid: int | None = None
    gid: int | None = None
    umask: int = 0
    subdir: str = ""
    offset: int = 0
    stats: str = "hidden"
    stats_public: bool = False
    fsname: str | None = None
    log: str | None = None
    gpu_memory: int | None = None
    gpu_resident: str = "auto"
    gpu_stats_memory: int | None = None
    passthrough_size: int = 0
    decode_ahead: int | None = None

    def __post_init__(self) -> None:
        if self.stats == "off" and self.stats_public:
            raise OptionError("stats=off and stats=public contradict each other")

    def gpu_options(self, archive_size: int) -> GpuOptions:
        """Returns the GPU options for an archive of `archive_size` bytes."""
        return GpuOptions(self.gpu_memory, self.gpu_resident, archive_size, self.gpu_stats_memory)

    @classmethod
    def parse(cls, text: str) -> MountOptions:
        """Parse comma-separated options in the syntax of `mount -o`. Raises OptionError for an unknown option."""
        values: dict[str, object] = {}
        for item in filter(None, text.split(",")):
            option = _find_option(item)
            if option is not None:
                values[option.field or option.name] = option.parse(item)
            elif item == "remount":
                raise OptionError("gompfs cannot remount; unmount, then mount with the new options")
            elif item not in _IGNORED_FLAGS and not item.startswith(_IGNORED_PREFIXES):
                raise OptionError(f"unknown mount option {item!r}; gompfs mount --help describes all")
        options = cls(**values)  # type: ignore[arg-type]
        options.gpu_options(0)  # raises OptionError for invalid values
        return options


@frozen
class MountOption:
    """One option of `mount -o`: NAME=VALUE, or only NAME if `kind` is bool."""

    name: str
    kind: type | Callable[[str, str], object]
    """bool, str, or a function that gets the name and the value as text."""
    help: str
    choices: tuple[str, ...] = ()
    placeholder: str = ""
    """What stands for the value in `help`; "" for the default."""
    field: str = ""
    """The field of MountOptions; "" for `name`."""
    value: object = True
    """The value of the field if `kind` is bool."""

    @property
    def default(self) -> object:
        """The value without this option."""
        return None if self.kind is bool else getattr(MountOptions, self.field or self.name)

    @property
    def usage(self) -> str:
        """How the option is written."""
        if self.kind is bool:
            return self.name
        default = format_size(self.default) if isinstance(self.default, int) else self.default
        return f"{self.name}={self.placeholder or default}"

    def matches(self, item: str) -> bool:
        """Returns whether an item of `mount -o` is this option."""
        return item == self.name if self.kind is bool else item.partition("=")[0] == self.name

    def parse(self, item: str) -> object:
        """Returns the value of the field. Raises OptionError."""
        if self.kind is bool:
            return self.value
        text = item.partition("=")[2]
        if self.choices and text not in self.choices:
            raise OptionError(f"{self.name} must be one of {', '.join(self.choices)}, not {text!r}")
        if not text:
            raise OptionError(f"mount option {self.name} needs a value")
        return text if isinstance(self.kind, type) else self.kind(self.name, text)


def _find_option(item: str) -> MountOption | None:
    return next((option for option in MOUNT_OPTIONS if option.matches(item)), None)


def _size(name: str, text: str) -> int:
    return parse_size(text, name)


def _decimal(name: str, text: str) -> int:
    return _number(name, text, 10)


def _octal(name: str, text: str) -> int:
    return _number(name, text, 8)


MOUNT_OPTIONS = (
    MountOption("engine", str, "engine that decodes blocks and computes statistics", placeholder="auto|cpu|gpu"),
    MountOption(
        "subdir",
        str,
        "show this directory of the archive as the root; statistics still cover all of it",
        placeholder="PATH",
    ),
    MountOption(
        "offset",
        _size,
        "where in its file the archive begins, in bytes, for example after a program that mounts it; mount(8) keeps "
        "this option for itself",
        placeholder="SIZE",
    ),
    MountOption("cache_size", _size, "memory for decoded blocks"),
    MountOption(
        "passthrough_size",
        _size,
        "memory for files of 1M and more that are decoded whole when they are opened, so that the kernel reads them "
        "without the daemon; needs root and Linux 6.9, and slows down mounts of many small files (default 0: off)",
        placeholder="SIZE",
    ),
    MountOption(
        "decode_ahead",
        _size,
        "how far to decode ahead of a sequential reader (default 8M, with a GPU 32M)",
        placeholder="SIZE",
    ),
    MountOption("readahead", _size, "how far the kernel reads ahead; takes effect only if root mounts"),
    MountOption(
        "gpu_memory",
        _size,
        "maximum memory to use on each GPU (default: half of the free memory)",
        placeholder="SIZE",
    ),
    MountOption(
        "gpu_resident",
        str,
        "keep compressed blocks in GPU memory: as many as fit (auto), all (on), none (off)",
        choices=RESIDENT_MODES,
    ),
    MountOption(
        "gpu_stats_memory",
        _size,
        "memory of each GPU in which the words of an archive stay, so that statistics do not read them each time, "
        "unless gpu_resident=off (default: an eighth of the free memory; 0: they do not stay)",
        placeholder="SIZE",
    ),
    MountOption("verify", bool, "also compare decoded bytes with their checksums"),
    MountOption(
        "stats=public",
        bool,
        "let all users read all statistics, even of files that they may not read; may be combined with stats=visible",
        field="stats_public",
    ),
    MountOption(
        "stats",
        str,
        "hidden: the directory stats can be opened but is not listed in the root; visible: it is listed; off: it does "
        "not exist",
        choices=("hidden", "visible", "off"),
    ),
    MountOption("union", bool, "the same as --union, for mount(8) and /etc/fstab", field="several", value="union"),
    MountOption("subdir_per_archive", bool, "the same as --subdir-per-archive", field="several", value="subdirs"),
    MountOption("allow_other", bool, "let other users access the mount; modes, owners and ACLs are enforced"),
    MountOption("follow", bool, "show the new content when the archive is replaced or added to"),
    MountOption("uid", _decimal, "show this user as the owner of all entries", placeholder="N"),
    MountOption("gid", _decimal, "show this group as the group of all entries", placeholder="N"),
    MountOption("umask", _octal, "remove these permissions from all entries", placeholder="OCTAL"),
    MountOption(
        "api",
        str,
        "low: talk to /dev/fuse directly; high: go through libfuse 3; slower, for systems where low fails",
        choices=("low", "high"),
    ),
    MountOption("noexec", bool, "let no program in the mount be executed"),
    MountOption("exec", bool, "undo an earlier noexec, as with mount(8)", field="noexec", value=False),
    MountOption("auto_unmount", bool, "unmount when the daemon is killed"),
    MountOption(
        "log",
        str,
        "append the messages of the daemon to this file too, with their times; it may be rotated",
        placeholder="FILE",
    ),
    MountOption("fsname", str, "source name to show in /proc/mounts", placeholder="NAME"),
)
"""All options of `mount -o`: the parser, the help and the documentation use this table. The first match counts."""


def join_source(archives: Sequence[str], several: str | None) -> str:
    """Join archives into one source name, separated by colons; colons in names are escaped with a backslash."""
    return archives[0] if several is None else ":".join(archive.replace(":", "\\:") for archive in archives)


def split_source(source: str, several: str | None) -> list[str]:
    """Split a source name of join_source() into archives. Raises OptionError if a name is empty."""
    import re

    archives = [source] if several is None else [name.replace("\\:", ":") for name in re.split(r"(?<!\\):", source)]
    if not all(archives):
        raise OptionError(f"an archive name is empty in {source!r}")
    return archives


def parse_size(text: str, name: str = "size") -> int:
    """Parse a number of bytes with an optional unit K, M or G (powers of 1024).

    Raises OptionError, which says that `name` is wrong.
    """
    import re  # here, since reading an archive does not need it

    match = re.fullmatch(r"([+-]?[0-9]+)\s*([KMG]?)(?:I?B)?", text.strip(), re.ASCII | re.IGNORECASE)
    if match is None:
        raise OptionError(f"{name} must be a number of bytes, such as 65536, 64K or 1M, not {text!r}")
    return _number(name, match[1], 10) * _SIZE_UNITS[match[2].upper()]


def format_size(size: int) -> str:
    """Returns a size as parse_size() takes it, with the largest unit that divides it."""
    unit = max((unit for unit, factor in _SIZE_UNITS.items() if size % factor == 0), key=_SIZE_UNITS.__getitem__)
    return f"{size // _SIZE_UNITS[unit]}{unit}"


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
