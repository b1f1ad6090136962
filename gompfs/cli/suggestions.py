"""What a user may have meant by a command or an option that does not exist."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from difflib import get_close_matches

from gompfs.cli.command_line import NoSuchOptionError, UsageError

_NOT_AN_ARCHIVE = ": not a gompfs archive"
_LEAST_LIKENESS = 0.7

_NAMES_ELSEWHERE = {
    **dict.fromkeys(("c", "create", "compress", "mksquashfs", "mkdwarfs", "new"), "pack"),
    **dict.fromkeys(("append", "backup", "update", "r", "u"), "add"),
    **dict.fromkeys(("rm", "delete", "d"), "remove"),
    **dict.fromkeys(("x", "unpack", "unzip", "untar", "unsquashfs", "restore"), "extract"),
    **dict.fromkeys(("l", "t", "dir", "list", "contents", "tree", "find"), "ls"),
    "rg": "grep",
    **dict.fromkeys(("read", "print", "dump"), "cat"),
    **dict.fromkeys(("show", "status", "about"), "info"),
    **dict.fromkeys(("check", "fsck", "scrub", "test"), "verify"),
    **dict.fromkeys(("fix", "recover"), "repair"),
    **dict.fromkeys(("compact", "optimize", "prune", "gc", "recompress"), "repack"),
    **dict.fromkeys(("unmount", "eject", "detach"), "umount"),
    "mounts": "ps",
    "benchmark": "bench",
}
"""Names that tar, zip, SquashFS, borg and others have for a command."""

_ADVICE = {
    "diff": "mount both archives and use diff -r",
    "version": "see gompfs --version",
    "cp": "use extract",
    "mv": "the names in an archive cannot be changed; add the entry under its new name, and remove the old one",
    "du": "use ls -l, or du in a mount",
}


def unknown_command(name: str, commands: Iterable[str]) -> str:
    """Returns the message for a command that does not exist."""
    if name in _ADVICE:
        return f"No such command {name!r}: {_ADVICE[name]}"
    close = [_NAMES_ELSEWHERE[name]] if name in _NAMES_ELSEWHERE else _close(name, commands)
    return f"No such command {name!r}.{_did_you_mean(close)}"


def usage_message(error: UsageError) -> str:
    """Returns the message of a usage error without a period. Names options that are like a wrong one."""
    if not isinstance(error, NoSuchOptionError) or error.command is None:
        return str(error).rstrip(".")
    names = [name for option in error.command.options for name in (*option.names, *option.opposites)]
    close = _close(error.name, [name for name in names if name.startswith("--")])
    return f"No such option {error.name!r}.{_did_you_mean(close)}".rstrip(".")


def with_advice(message: str) -> str:
    """Returns the message of an error, and how to pack what can be packed, if that was taken for an archive."""
    path = message.removesuffix(_NOT_AN_ARCHIVE)
    if path == message:
        return message
    from gompfs.pack.sources.factory import is_packable_archive

    if not is_packable_archive(path):
        return message
    return f"{message}; pack it first: gompfs pack {shlex.quote(path)} {shlex.quote(_packed_name(path))}"


def _packed_name(path: str) -> str:
    name = path.rpartition("/")[2]
    return f"{name.partition('.')[0] or name}.gomp"


def _close(name: str, names: Iterable[str]) -> list[str]:
    return get_close_matches(name, names, n=2, cutoff=_LEAST_LIKENESS)


def _did_you_mean(names: list[str]) -> str:
    return f" Did you mean {' or '.join(map(repr, names))}?" if names else ""
