"""What is said to a user who types a command or an option of another program, or forgets an argument."""

from __future__ import annotations

import tarfile

import pytest


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *(("pakc", "pack"), ("unmount", "umount"), ("list", "ls"), ("x", "extract"), ("create", "pack")),
        *(("verfy", "verify"), ("unsquashfs", "extract"), ("rg", "grep"), ("stat", "stats"), ("fsck", "verify")),
        *(("rm", "remove"), ("delete", "remove")),
    ],
)
def test_commands_that_do_not_exist(gompfs, name, meant):
    result = gompfs(name, "a.gomp")
    assert (result.status, result.output) == (2, b"")
    assert result.error_line == f"No such command {name!r}. Did you mean {meant!r}? See: gompfs --help"


@pytest.mark.parametrize(("name", "words"), [("mv", "under its new name"), ("diff", "diff -r")])
def test_what_gompfs_has_no_command_for(gompfs, name, words):
    result = gompfs(name, "a.gomp")
    assert result.status == 2
    assert result.error_line.startswith(f"No such command {name!r}: ")
    assert words in result.error_line
    assert "Did you mean" not in result.error_line


def test_a_command_that_is_like_no_other(gompfs):
    assert gompfs("xyzzy").error_line == "No such command 'xyzzy'. See: gompfs --help"


def test_help_of_a_command(gompfs):
    assert gompfs("help", "pack").output == gompfs("pack", "--help").output
    assert gompfs("help").output == gompfs("--help").output
    assert gompfs("help", "unmount").error_line.startswith("No such command 'unmount'. Did you mean 'umount'?")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mount", "--json", "a", "b"), "No such option '--json'. See: gompfs mount --help"),
        (("ls", "--recursiv", "a"), "No such option '--recursiv'. Did you mean '--recursive'? See: gompfs ls --help"),
        (("extract", "--dir", "x", "a"), "No such option '--dir'. See: gompfs extract --help"),
        (
            ("pack", "--levle", "1", "a", "b"),
            "No such option '--levle'. Did you mean '--level'? See: gompfs pack --help",
        ),
        (("grep", "--word-regex", "x", "a"), "Did you mean '--word-regexp'"),
        (("ls", "-z", "a"), "No such option '-z'. See: gompfs ls --help"),
    ],
)
def test_options_that_do_not_exist(gompfs, arguments, message):
    """mount --json suggested --union."""
    result = gompfs(*arguments)
    assert result.status == 2
    assert message in result.error_line


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (("pack", "tree"), "ARCHIVE"),
        (("pack", "-q", "--level", "3", "tree"), "ARCHIVE"),
        (("add", "tree"), "ARCHIVE"),
        (("mount", "a.gomp"), "MOUNTPOINT"),
        (("pack",), "SOURCE..."),
        (("mount",), "ARCHIVE..."),
        (("cat",), "ARCHIVE"),
        (("cat", "a.gomp"), "PATH..."),
    ],
)
def test_the_argument_that_is_missing(gompfs, arguments, missing):
    """`pack tree` said that SOURCE is missing."""
    result = gompfs(*arguments)
    assert result.status == 2
    assert result.error_line == f"Missing argument '{missing}'. See: gompfs {arguments[0]} --help"


@pytest.mark.parametrize("command", ["ls", "mount", "grep"])
def test_a_tar_is_no_archive_but_can_be_packed(gompfs, tree, tmp_path, command):
    (tmp_path / "a b.tar.gz").unlink(missing_ok=True)
    with tarfile.open(tmp_path / "a b.tar.gz", "w:gz") as tar:
        tar.add(tree, "tree")
    arguments = {"mount": ["a b.tar.gz", "mnt"], "grep": ["x", "a b.tar.gz"]}.get(command, ["a b.tar.gz"])
    result = gompfs(command, *arguments)
    assert result.status == (2 if command == "grep" else 1)
    path = str(tmp_path / "a b.tar.gz") if command == "mount" else "a b.tar.gz"
    assert result.error_line == f"{path}: not a gompfs archive; pack it first: gompfs pack '{path}' 'a b.gomp'"
    assert gompfs("pack", "-q", "a b.tar.gz", "a b.gomp").status == 0
    (tmp_path / "noise").write_bytes(b"noise" * 99)
    assert gompfs("ls", "noise").error_line == "noise: not a gompfs archive"


def test_replace_of_grep(gompfs, archive, monkeypatch, capfd):
    """-rn is the habit of grep, and means "replace by n" in rg and here."""
    assert "-r TEXT replaces matches" in gompfs("grep", "-nr", "last", archive).error_line
    assert gompfs("grep", "-rn", "last", archive).errors == ""  # rg says nothing
    import sys

    from gompfs.cli.application import run

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    note = "gompfs: note: matches were replaced by 'n'; -r TEXT replaces matches, as in rg; "
    for options, printed in (("-rn", note), ("-r$0!", ""), ("-n", "")):
        assert run(["grep", options, "last", str(archive)]) == 0
        assert capfd.readouterr().err.rpartition("\r\x1b[K")[2].startswith(printed)
        assert (printed != "") == (options == "-rn")


def test_statistics_of_several_archives_need_dask(gompfs, archive, words_archive):
    """It said that the second archive is an unknown statistic."""
    result = gompfs("stats", archive, words_archive, "wordcount")
    assert result.status == 2
    message = "stats reads one archive; with a Dask cluster, several: --dask ADDRESS ARCHIVE... NAME"
    assert result.error_line == message
