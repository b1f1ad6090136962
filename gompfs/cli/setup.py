"""`gompfs setup`: links from where other programs look to files of the installation.

pip puts the files into the environment as they would lie below /usr/local: bin, share/man, and so on. So the links are
the same tree. Only mount(8) looks in one folder, /sbin.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from gompfs.cli.command_line import UsageError, command, option
from gompfs.errors import GompfsError

_HELPER = "mount.gompfs"
_FOLDERS = ("share/man/", "share/bash-completion/", "share/fish/", "share/zsh/", "share/systemd/", "lib/systemd/")


@command("setup")
@option("--system", "is_system", is_flag=True, help="For all users, in /usr/local and /sbin.")
@option("--user", "is_user", is_flag=True, help="For you, in ~/.local.")
@option("--remove", is_flag=True, help="Remove the links instead.")
def setup_command(*, is_system: bool, is_user: bool, remove: bool) -> None:
    """Link what the system looks for outside of this installation.

    These are links to the command, its man pages, completions for bash, zsh and fish, units of systemd, and with
    --system the helper of mount(8). Run it again after an upgrade, and with --remove before you
    delete the installation. For --user, zsh needs ~/.local/share/zsh/site-functions in fpath.
    """
    if is_system == is_user:
        raise UsageError("Give one of --system and --user.")
    root = Path("/") if is_system else Path.home()
    links = links_of_installation(root, is_system=is_system)
    for link in links:
        if os.path.lexists(link) and not link.is_symlink() and not remove:
            raise GompfsError(f"{link}: the file exists and is no link; nothing was changed")
    removed = list(_remove_links({link.parent for link in links}, _prefix()))
    if remove:
        sys.stdout.write(f"removed {len(removed)} links\n")
        return
    for link, target in links.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    sys.stdout.write(f"made {len(links)} links to {_prefix()}\n")


def links_of_installation(root: Path, *, is_system: bool) -> dict[Path, Path]:
    """Returns the links, by path, and the files that they are to point to. `root` is / or a home directory."""
    prefix = _prefix()
    links = {}
    for target in _files():
        if not target.is_relative_to(prefix):
            continue
        path = str(target.relative_to(prefix))
        if path == f"bin/{_HELPER}" and is_system:
            links[root / "sbin" / _HELPER] = target
        elif path == "bin/gompfs" or path.startswith(_FOLDERS if is_system else _FOLDERS[:-1]):
            links[root / ("usr/local" if is_system else ".local") / path] = target
    return {link: target for link, target in links.items() if link != target}


def _files() -> Iterator[Path]:
    """Yields the paths of all files that pip has installed for gompfs."""
    for file in metadata.files("gompfs") or []:
        yield Path(os.path.normpath(file.locate()))


def _prefix() -> Path:
    """Returns the folder that has bin/gompfs: of a virtual environment, or of the system."""
    found = next((path for path in _files() if path.parts[-2:] == ("bin", "gompfs")), None)
    if found is None:
        raise GompfsError("gompfs was not installed by pip, so it does not know its files")
    return found.parents[1]


def _remove_links(folders: set[Path], prefix: Path) -> Iterator[Path]:
    """Removes the links to files below `prefix`, also those of older versions, and yields them."""
    for folder in folders:
        for path in folder.glob("*gompfs*"):
            if path.is_symlink() and path.readlink().is_relative_to(prefix):
                path.unlink()
                yield path
