"""A hook of mkdocs: fills generated parts into the pages and the navigation, and adapts links that lead out of docs/.

`python tools/documentation.py` also writes the short generated parts into the pages, for readers of the repository.

    <!-- generated: NAME -->
    text for readers of the repository
    <!-- end -->

is replaced by what the code says, or the whole page by the file NAME of the repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from command_reference import commands_reference, mount_options_reference  # mkdocs searches beside its hook
from import_map import import_map
from statistics_reference import lines_table, records_table, tables_table

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
_DOCS = ROOT / "docs"
_PART = re.compile(r"^<!-- generated: ([\w.-]+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")
_NESTED_ITEM = re.compile(r"( {2,3})(?:-|\d+\.) ")
_PAGES = {"CHANGELOG.md": "releases.md", "CONTRIBUTING.md": "contributing.md", "README.md": "index.md"}


def on_config(config: MkDocsConfig) -> None:
    """Lists all decisions in the navigation, after their index."""
    _list_decisions(config.nav or [])


def _list_decisions(entries: list[Any]) -> None:
    if "decisions/index.md" in entries:
        entries += [f"decisions/{path.name}" for path in _decisions()]
    for entry in entries:
        for below in entry.values() if isinstance(entry, dict) else ():
            if isinstance(below, list):
                _list_decisions(below)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Returns the text of a page as the site shows it."""
    del config, files
    directory = (_DOCS / page.file.src_uri).parent
    text = markdown
    for part in _PART.finditer(markdown):
        name = part[1]
        if name in _PAGES:  # the file of the repository is the whole page
            return _with_nested_lists(_with_links((ROOT / name).read_text(), ROOT, directory))
        text = text.replace(part[0], _generated(name))
    return _with_nested_lists(_with_links(text, directory, directory))


def _decisions() -> list[Path]:
    return sorted((_DOCS / "decisions").glob("[0-9]*.md"))


def _decision_list() -> str:
    """Returns a table of all decisions with their titles."""
    rows = ["| | decision |", "|---|---|"]
    for path in _decisions():
        title = path.read_text().partition("\n")[0].removeprefix("# ")
        rows.append(f"| [{path.name[:4]}]({path.name}) | {title} |")
    return "\n".join(rows)


_COMMITTED: dict[str, Callable[[], str]] = {
    "mount-options": mount_options_reference,
    "statistics": lines_table,
    "statistics-json": records_table,
    "statistics-tables": tables_table,
}
_ONLY_ON_SITE: dict[str, Callable[[], str]] = {
    "commands": commands_reference,
    "decisions": _decision_list,
    "imports": import_map,
}


def _generated(name: str) -> str:
    return {**_COMMITTED, **_ONLY_ON_SITE}[name]().rstrip("\n")


def refreshed(markdown: str) -> str:
    """Returns the text of a page with its short generated parts as the code makes them now."""

    def part(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- generated: {name} -->\n{_generated(name)}\n<!-- end -->" if name in _COMMITTED else match[0]

    return _PART.sub(part, markdown)


def _with_nested_lists(text: str) -> str:
    """Returns text with nested lists indented by 4 columns. Python-Markdown does not take fewer, as GitHub does."""
    lines = []
    missing = 0
    is_code = False
    for line in text.split("\n"):
        is_code ^= line.startswith("```")
        if nested := _NESTED_ITEM.match(line):
            missing = 4 - len(nested[1])
        elif line.strip() and not line.startswith("    "):
            missing = 0
        lines.append(" " * missing + line if line.strip() and not is_code else line)
    return "\n".join(lines)


def _with_links(text: str, origin: Path, directory: Path) -> str:
    """Returns text of a file in `origin` with links for a page in `directory`.

    Links to files of the repository that are no page become the names of these files.
    """

    def link(match: re.Match[str]) -> str:
        label, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        path = Path(os.path.normpath(origin / target))
        if not path.exists():
            return match[0]  # mkdocs reports it
        if path.parent == ROOT and path.name in _PAGES:
            path = _DOCS / _PAGES[path.name]
        if path.is_relative_to(_DOCS):
            return f"[{label}]({os.path.relpath(path, directory)}{anchor})"
        name = str(path.relative_to(ROOT))
        return label if name in label else f"{label} (`{name}`)"

    return _LINK.sub(link, text)


if __name__ == "__main__":
    for page in sorted(_DOCS.rglob("*.md")):
        page.write_text(refreshed(page.read_text()))
