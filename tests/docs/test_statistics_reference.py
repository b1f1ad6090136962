"""The reference of statistics has the tables that the table of tasks gives."""

from __future__ import annotations

import documents  # noqa: F401 - makes tools importable
from statistics_reference import PAGE, page_with_tables

from gompfs.statistics.tasks import TASKS


def test_the_tables_are_those_of_the_tasks() -> None:
    page = PAGE.read_text()
    assert page_with_tables(page) == page, "run: python tools/statistics_reference.py"
    for task in TASKS.values():
        assert f"`{task.form}`" in page
