"""Tables, and the machine and the versions on which they were measured."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

import gompfs

from .programs import version_of

NOT_INSTALLED = "not installed"
_PACKAGES = ("numpy", "torch", "lz4", "zstandard", "deflate", "isal", "zlib-ng", "ratarmount")

Cell = float | str | None


@dataclass(frozen=True)
class Plot:
    """A plot of some columns of a table.

    Bars and lines: rows along the x axis, and a set of bars or a line for each column. Points: a point for each row,
    with its values in two columns as x and y; the y axis is logarithmic.
    """

    name: str
    kind: Literal["bars", "lines", "points"]
    columns: tuple[str, ...]
    x_label: str
    y_label: str


@dataclass
class Report:
    """One table. A row is a name and a cell for each column: a number, a text, or None for an empty cell."""

    title: str
    columns: list[str]
    rows: list[tuple[str, list[Cell]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)

    def add(self, name: str, *values: Cell) -> None:
        """Append a row."""
        self.rows.append((name, list(values)))

    def add_missing(self, name: str, programs: Sequence[str]) -> None:
        """Append the row of a peer that cannot run, and a note that names the missing programs."""
        self.add(name, NOT_INSTALLED, *[None] * (len(self.columns) - 1))
        self.notes.append(f"{name}: not installed: {', '.join(programs)}.")

    def as_json(self) -> dict[str, Any]:
        """Returns the table as plain values."""
        rows = {name: dict(zip(self.columns, values, strict=True)) for name, values in self.rows}
        plots = [asdict(plot) for plot in self.plots]
        return {"title": self.title, "rows": rows, "notes": self.notes, "plots": plots}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Report:
        """Returns the table for the values of as_json, without its notes."""
        columns = list(next(iter(values["rows"].values()), {}))
        rows = [(name, list(row.values())) for name, row in values["rows"].items()]
        plots = [Plot(**plot | {"columns": tuple(plot["columns"])}) for plot in values["plots"]]
        return cls(values["title"], columns, rows, plots=plots)

    def as_table(self) -> Table:
        """Returns the table for a terminal."""
        table = Table()
        table.add_column("")
        for column in self.columns:
            table.add_column(Text(column), justify="right")
        for name, values in self.rows:
            table.add_row(*(Text(cell) for cell in (name, *map(_cell, values))))
        return table


def print_reports(reports: Sequence[Report], facts: dict[str, str]) -> None:
    """Write each table, its notes and its origin to standard output."""
    console = Console(width=None if os.isatty(1) else 180, highlight=False)
    for report in reports:
        console.print(report.title, style="bold", markup=False, soft_wrap=True)
        console.print(report.as_table())
        for line in [*report.notes, ", ".join(f"{name}: {value}" for name, value in facts.items())]:
            console.print(line, markup=False, soft_wrap=True)


def divide(a: Cell, b: Cell) -> float | None:
    """Returns a / b if both are numbers, otherwise None."""
    return a / b if isinstance(a, int | float) and isinstance(b, int | float) else None


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 1000 else f"{value:,.0f}"


def origin(programs: Sequence[str] = ()) -> dict[str, str]:
    """Returns what the figures depend on besides the data: machine, versions, commit, date."""
    facts = {
        "cpu": f"{_cpu_model()} x {len(os.sched_getaffinity(0))}",
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / (1 << 30):.1f} GiB",
        "load when done": f"{os.getloadavg()[0]:.1f}",
        "kernel": platform.release(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _commit(),
        "python": platform.python_version(),
        "gompfs": f"{gompfs.__version__} in {Path(gompfs.__file__).parent}",
    }
    for package in _PACKAGES:
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = NOT_INSTALLED
    facts |= {"zlib library": zlib.ZLIB_RUNTIME_VERSION} | _library_versions()
    facts |= {f"{program} program": version_of(program) for program in programs}
    return facts


def _library_versions() -> dict[str, str]:
    """Returns the versions of the C libraries inside the installed packages, if the packages report them."""
    versions = {}
    try:
        versions["lz4 library"] = str(import_module("lz4").library_version_string())
    except ImportError:
        pass
    try:
        versions["zstd library"] = ".".join(map(str, import_module("zstandard").ZSTD_VERSION))
    except ImportError:
        pass
    return versions


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if "model name" in line), platform.machine())


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
