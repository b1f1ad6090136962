"""tools/demo and the picture that README.md shows."""

from __future__ import annotations

import html
import re
import stat
import subprocess
import sys

import pytest
from documents import ROOT, comparable

PICTURE = ROOT / "docs/images/session.svg"


def text_of(picture: str) -> str:
    lines = re.findall(r"<text[^>]*>(.*?)</text>", picture)
    return comparable("\n".join(html.unescape(re.sub(r"<[^>]+>", "", line)) for line in lines))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """What the session prints, and the picture that it writes."""
    picture = tmp_path_factory.mktemp("session") / "picture.svg"
    command = [sys.executable, ROOT / "tools/session.py", "--picture", picture]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, picture.read_text()


def test_the_demo_runs_the_session() -> None:
    demo = (ROOT / "tools/demo").read_text()
    assert demo.endswith("tools/setup\nexec .venv/bin/python tools/session.py\n")


def test_the_archive_of_the_session_is_half_as_large_as_its_files(session: tuple[str, str]) -> None:
    ratio = re.search(r"ratio ([\d.]+)", session[0])
    assert ratio is not None
    assert float(ratio[1]) > 1.8
    assert "\nmnt/books/carroll/alice29.txt:297:It was the White Rabbit returning, splendidly" in session[0]
    assert session[0].rstrip().endswith("$ gompfs umount mnt")


def test_the_picture_shows_what_a_session_prints(session: tuple[str, str]) -> None:
    shown = text_of(PICTURE.read_text())
    assert "$ head -N mnt/stats/wordcount" in shown
    assert shown == text_of(session[1])


def test_scripts_are_executable() -> None:
    for path in ("tools/demo", "tools/test", "tools/setup", ".ci/run"):
        assert (ROOT / path).stat().st_mode & stat.S_IXUSR, path
