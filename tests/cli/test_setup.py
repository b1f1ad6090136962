"""`gompfs setup`: links to files of the installation."""

from __future__ import annotations

from pathlib import Path

from gompfs.cli.setup import links_of_installation

FILES_OF_ALL = {
    "bin/gompfs",
    "share/man/man1/gompfs-pack.1",
    "share/man/man8/mount.gompfs.8",
    "share/bash-completion/completions/gompfs",
    "share/zsh/site-functions/_gompfs",
    "share/fish/vendor_completions.d/gompfs.fish",
    "share/systemd/user/gompfs@.service",
}


def tree(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*") if not path.is_dir() or path.is_symlink()}


def test_links_of_a_user(gompfs, tmp_path):
    """They are made, made again where one is old, and removed. What is not of this installation stays."""
    local = tmp_path / ".local"
    (local / "bin").mkdir(parents=True)
    (local / "bin" / "gompfs").symlink_to("/nowhere/bin/gompfs")
    (local / "bin" / "other-gompfs").symlink_to("/nowhere/bin/other")
    for _ in range(2):
        assert gompfs("setup", "--user", HOME=str(tmp_path)).status == 0
    made = tree(local) - {local / "bin" / "other-gompfs"}
    assert {str(path.relative_to(local)) for path in made} >= FILES_OF_ALL
    assert all(path.resolve(strict=True).is_file() for path in made)
    old = local / "share" / "man" / "man1" / "gompfs-of-an-old-version.1"
    old.symlink_to((local / "bin" / "gompfs").readlink().parents[1] / "share/man/man1" / old.name)
    assert gompfs("setup", "--user", "--remove", HOME=str(tmp_path)).status == 0
    assert tree(local) == {local / "bin" / "other-gompfs"}


def test_a_file_in_the_way_is_kept(gompfs, tmp_path):
    """No link is made then."""
    page = tmp_path / ".local/share/man/man1/gompfs.1"
    page.parent.mkdir(parents=True)
    page.write_text("mine")
    result = gompfs("setup", "--user", HOME=str(tmp_path))
    assert (result.status, result.error_line) == (1, f"{page}: the file exists and is no link; nothing was changed")
    assert tree(tmp_path) == {page}


def test_links_of_a_system():
    links = links_of_installation(Path("/"), is_system=True)
    units = {"lib/systemd/system/gompfs@.service", "lib/systemd/system/gompfs-verify@.timer"}
    assert links.keys() >= {Path("/usr/local") / path for path in FILES_OF_ALL | units} | {Path("/sbin/mount.gompfs")}
    assert all(target.is_file() for target in links.values())
