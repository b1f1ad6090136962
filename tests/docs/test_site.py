"""mkdocs builds the documentation without a warning, and the site is complete by itself."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documentation import refreshed
from documents import ROOT

import gompfs
from gompfs.cli.application import COMMAND_MODULES
from gompfs.options import MOUNT_OPTIONS
from gompfs.statistics.tasks import TASKS

SOURCES = ("gompfs", "native", "kernels", "tools", "tests", "systemd", "examples", "docs", "man")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. --strict makes every warning an error, such as a dead link or a page outside the navigation."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", target]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def text(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def test_the_reference_has_every_command_option_and_mount_option(site: Path) -> None:
    commands = text(site / "reference/commands.html")
    for command in COMMAND_MODULES:
        assert f"gompfs {command} [OPTIONS]" in commands
    assert "--no-dependency-elimination" in commands
    assert "Compression level: 1 is fastest, 8 is smallest.  [default: 6; 1<=x<=8]" in commands
    options = text(site / "reference/mount-options.html")
    assert len(MOUNT_OPTIONS) > 15
    for option in MOUNT_OPTIONS:
        assert option.usage in options
        assert option.help in options


def test_the_reference_has_everything_that_the_package_exports(site: Path) -> None:
    reference = text(site / "reference/python.html") + text(site / "reference/errors.html")
    for name in gompfs.__all__:
        assert name in reference or name == "__version__", name
    for method in ("listdir", "readlink", "walk", "stats"):
        assert method in reference


def test_release_notes_and_contributing_are_those_of_the_repository(site: Path) -> None:
    assert "0.1.0" in text(site / "releases.html")
    assert "Add a statistic" in text(site / "contributing.html")


def test_lists_in_lists_are_nested(site: Path) -> None:
    page = (site / "format.html").read_text()
    assert re.search(r"<li>[^<]*(?:<(?!ul|/li)[^<]*)*<ul>\s*<li><code>mode</code> is as in", page)


def test_every_decision_is_listed(site: Path) -> None:
    listed = text(site / "decisions/index.html")
    decisions = sorted((ROOT / "docs/decisions").glob("0*.md"))
    assert decisions
    for decision in decisions:
        assert decision.read_text().partition("\n")[0].removeprefix("# ") in listed


def test_short_generated_parts_are_up_to_date() -> None:
    pages = {page: page.read_text() for page in sorted((ROOT / "docs").rglob("*.md"))}
    for task in TASKS.values():
        assert f"`{task.form}`" in pages[ROOT / "docs/reference/statistics.md"]
    assert pages == {page: refreshed(text) for page, text in pages.items()}, "run: python tools/documentation.py"


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert not re.findall(r"<(?:script|img|iframe)[^>]*src=\"?https?:", page.read_text()), page
        assert not re.findall(r"<link[^>]*rel=\"?(?:stylesheet|preconnect)\"?[^>]*href=\"?https?:", page.read_text())


def test_files_that_pages_name_exist() -> None:
    name = re.compile(rf"`((?:{'|'.join(SOURCES)})/[\w./@-]*[\w/])`")
    missing = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
        for path in name.findall(page.read_text())
        if not (ROOT / path).exists()
    ]
    assert missing == []


def test_sources_that_pages_name_by_the_end_of_their_path_exist() -> None:
    sources = [f"/{path.relative_to(ROOT)}" for top in SOURCES for path in (ROOT / top).rglob("*.*")]
    foreign = {"linux/fuse.h", "pcre2.h", "xxhash.h"}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        named = set(re.findall(r"`([\w/.-]+\.(?:py|cpp|h|cu|cuh|sql))`", page.read_text()))
        for name in named - foreign:
            assert any(source.endswith(f"/{name}") for source in sources), f"{page}: {name}"
