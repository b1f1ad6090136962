"""Patterns that would take too much time or memory end with an error, or are searched for in a short time."""

from __future__ import annotations

from pathlib import Path

import pytest
from tree_helpers import pack

from gompfs.cli.application import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("limits")
    (root / "tree").mkdir()
    (root / "tree" / "short").write_text("a" * 40 + "\n")
    (root / "tree" / "long").write_text("a" * 1_000_000 + "\n" + "x" * 300_000 + "\n")
    target = root / "tree.gomp"
    pack(target, root / "tree", stats=True)
    return target


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(x+x+)+y", "x*y", "[ab]*[cd]", r"\w*[!,]", "a.*b.*c", "(?i)a*[bc]$", "(?:a?){60}b{60}"]
)
def test_slow_patterns_without_a_match(archive: Path, pattern: str) -> None:
    assert run(["grep", "-e", pattern, str(archive)]) == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a{65535}{65535}", "too large"),
        ("a" * (1 << 20) + "a", "more than 1 MiB"),
        ("a" * 1_000_000, "too large"),
        ("(" * 300 + ")" * 300, "nested too deeply"),
        ("[" * 300, "nested too deeply"),
        ("a" + "+" * 300, "too many repetition operators"),
        ("(a|aa)+$", "too many steps"),
    ],
    ids=lambda value: value[:20],
)
def test_patterns_that_are_refused(capfd: Capture, tmp_path: Path, archive: Path, pattern: str, message: str) -> None:
    file = tmp_path / "pattern"
    file.write_text(pattern)
    assert run(["grep", "-f", str(file), str(archive)]) == 2
    errors = capfd.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def test_errors(capfd: Capture, tmp_path: Path, archive: Path) -> None:
    name = str(archive)
    for arguments in (["x", str(tmp_path / "none")], ["x", name, "none"], ["x"], [], ["-g", "[", "x", name]):
        assert run(["grep", *arguments]) == 2
        assert capfd.readouterr().err.count("\n") == 1
    assert run(["grep", "-t", "nope", "x", str(archive)]) == 2
