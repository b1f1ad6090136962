"""Tables, and the machine and the versions that they come from."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

NOT_INSTALLED = "not installed"
_PACKAGES = ("gompfs", "numpy", "lz4", "zstandard", "deflate", "ratarmount")


@dataclass
class Report:
    """One table; a row is a name and a value for each column, a number or a word."""

    title: str
    columns: list[str]
    rows: list[tuple[str, list[float | str | None]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, *values: float | str | None) -> None:
        """Append a row."""
        self.rows.append((name, list(values)))

    def print(self) -> None:
        """Write the table with its origin to standard output."""
        console = Console(width=None if os.isatty(1) else 160)
        table = Table(title=self.title)
        table.add_column("")
        for column in self.columns:
            table.add_column(column, justify="right")
        for name, values in self.rows:
            table.add_row(name, *map(_cell, values))
        console.print(table)
        for line in [*self.notes, ", ".join(f"{name}: {value}" for name, value in origin().items())]:
            console.print(line, highlight=False)

    def as_json(self) -> dict[str, Any]:
        """The same as plain values."""
        rows = {name: dict(zip(self.columns, values, strict=True)) for name, values in self.rows}
        return {"title": self.title, "rows": rows, "notes": self.notes, "origin": origin()}


def _cell(value: float | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def origin() -> dict[str, str]:
    """What the figures depend on beside the data."""
    cpu = next(
        (line.partition(": ")[2] for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.machine(),
    )
    facts = {
        "cpu": f"{cpu} x {len(os.sched_getaffinity(0))}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "commit": _commit(),
    }
    for package in _PACKAGES:
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = NOT_INSTALLED
    return facts


def _commit() -> str:
    command = ["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
