"""The table of tasks tells the truth: the values of each column, the options that each task takes, and the names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from coreutils_oracle import pack

import gompfs
from gompfs.cli.stats import stats_command
from gompfs.errors import OptionError
from gompfs.statistics.records import Column, Items
from gompfs.statistics.tasks import FIELD, FILE, NAMES, NAMES_OF_FILE, SEARCHES, TASKS, TOP, N, Task, task_of

JSON_TYPES: dict[str, type] = {"string": str, "[string, ...]": list, "integer": int, "number": float}
all_tasks = pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tasks") / "tree"
    tree.mkdir()
    (tree / "a").write_bytes(b"to be or not to be")
    (tree / "b").write_bytes(b"be or not")
    (tree / "tab\tb").write_bytes(b"to be")
    (tree / "binary").write_bytes(b"\0")
    return pack(tree.parent / "a.gomp", tree)


def name_of(task: Task) -> str:
    return f"{task.name}/be" if task.argument else task.name


def check(value: Any, column: Column) -> None:
    assert type(value) is JSON_TYPES[column.type.json_type]


@all_tasks
def test_columns_are_those_of_the_records(task: Task, archive: Path) -> None:
    with gompfs.open(archive) as files:
        records = list(files.stats(name_of(task), ngram_length=3, documents=[(b"d", b"to be or")]))
    assert records
    if not task.columns:
        assert len(records) == 1
        assert records[0]["entries"] == 5
        return
    for record in records:
        if len(task.columns) == 1:
            check(record, task.columns[0])  # type: ignore[arg-type]
            continue
        assert list(record) == [column.name for column in task.columns]
        for column in task.columns:
            value = record[column.name]
            if isinstance(column, Column):
                check(value, column)
                continue
            assert isinstance(column, Items)
            assert value
            for item in value:
                if column.weight is None:
                    check(item, column.value)
                else:
                    assert list(item) == [column.value.name, column.weight.name]
                    check(item[column.value.name], column.value)
                    check(item[column.weight.name], column.weight)


@all_tasks
def test_the_command_takes_the_options_of_the_task_only(
    task: Task, archive: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    for option, value in {FILE: "a", TOP: "1", N: "2", FIELD: "text"}.items():
        arguments = [str(archive), name_of(task), *([__file__] if task.takes_documents else []), option, value]
        if option in task.options:
            assert stats_command.run(arguments) == 0
            sys.stdout.flush()
            assert capfdbinary.readouterr().out
        else:
            with pytest.raises(OptionError):
                stats_command.run(arguments)


def test_names() -> None:
    assert set(TASKS) == {*NAMES, *SEARCHES, "overlap"}
    for name in NAMES:
        assert task_of(name) is TASKS[name]
    for name in NAMES_OF_FILE:
        assert task_of(f"files/dir/f/{name}") is TASKS[name]
    for name in SEARCHES:
        assert task_of(f"{name}//") is TASKS[name]  # searches for the word "/"
        with pytest.raises(OptionError, match="needs something to search for"):
            task_of(f"{name}/")
    with pytest.raises(OptionError, match="only in a mount"):
        task_of("metrics")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "wordcount/",
        "wordcount/a",
        "files",
        "files/",
        "files/a/inverted_index",
        "files/a/info",
        "tasks",
        "list",
    ],
)
def test_unknown_names(name: str) -> None:
    with pytest.raises(OptionError, match=r"unknown statistic .*; use one of binary-files, info, .*, overlap, all,"):
        task_of(name, "all")
