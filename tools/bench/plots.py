"""Draws plots of tables as PNG files. Needs matplotlib, which comes with the extra `bench`."""

from __future__ import annotations

import math
import re
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from .report import Cell, Plot, Report

_INCHES = (8.0, 5.0)
_DOTS_PER_INCH = 150
_CHARACTERS_OF_A_LINE = 105
_MARKERS = "os^vD*Xp<>Ph"
_WIDER_INCHES = (10.0, 5.0)  # with room for the legend beside the plot
_MOST_INSIDE = 4  # series whose legend is in the plot; that of more is beside it
_ROOM_FOR_BARS = 0.8  # fraction of the distance between two rows


def require_matplotlib() -> None:
    """Raises a click error if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise click.ClickException("--plots needs matplotlib: pip install '.[bench]'")


def caption_of(facts: dict[str, str]) -> str:
    """Returns the origin of the figures, short enough for a plot."""
    devices = [facts[name] for name in ("gpu", "cpu") if name in facts]
    return ", ".join([*devices, f"commit {facts['commit']}", facts["date"]])


def save_plots(report: Report, folder: Path, caption: str) -> list[Path]:
    """Draws all plots of a table into a folder, which is created if necessary; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_save(report, plot, folder, caption) for plot in report.plots]


def _save(report: Report, plot: Plot, folder: Path, caption: str) -> Path:
    from matplotlib.figure import Figure  # may not be installed

    is_wider = plot.kind == "points" or len(plot.columns) > _MOST_INSIDE
    figure = Figure(figsize=_WIDER_INCHES if is_wider else _INCHES, layout="constrained")
    axes = figure.add_subplot()
    series = {column: [_number(values[report.columns.index(column)]) for _, values in report.rows]
              for column in plot.columns}  # fmt: skip
    names = [name for name, _ in report.rows]
    if plot.kind == "points":
        _draw_points(axes, names, *series.values())
    else:
        _draw_rows(axes, names, series, bars=plot.kind == "bars")
    if is_wider:
        figure.legend(loc="outside right upper", fontsize=8)
    elif len(series) > 1:
        axes.legend(fontsize=8)
    axes.set_xlabel(plot.x_label)
    axes.set_ylabel(plot.y_label)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.set_title(textwrap.fill(report.title, _CHARACTERS_OF_A_LINE * 4 // 5), fontsize=10)
    figure.supxlabel(textwrap.fill(caption, _CHARACTERS_OF_A_LINE), fontsize=7, color="dimgray")
    path = folder / (re.sub(r"[^\w.-]+", "-", plot.name) + ".png")
    figure.savefig(path, dpi=_DOTS_PER_INCH)
    return path


def _draw_rows(axes: Any, names: list[str], series: dict[str, list[float]], *, bars: bool) -> None:
    """Draws rows along the x axis."""
    (_draw_bars if bars else _draw_lines)(axes, series)
    long_names = sum(map(len, names)) > _CHARACTERS_OF_A_LINE * 3 // 4
    axes.set_xticks(range(len(names)), names, rotation=30 if long_names else 0, ha="right" if long_names else "center")
    axes.set_ylim(bottom=0)


def _draw_points(axes: Any, names: list[str], xs: list[float], ys: list[float]) -> None:
    """Draws a point for each row that has both numbers."""
    axes.set_yscale("log")
    for number, (name, x, y) in enumerate(zip(names, xs, ys, strict=True)):
        if not math.isnan(x + y):
            axes.plot([x], [y], linestyle="none", marker=_MARKERS[number % len(_MARKERS)], markersize=7, label=name)
    axes.set_xlim(left=0)


def _draw_bars(axes: Any, series: dict[str, list[float]]) -> None:
    width = _ROOM_FOR_BARS / len(series)
    for number, (column, values) in enumerate(series.items()):
        shift = (number - (len(series) - 1) / 2) * width
        axes.bar([row + shift for row in range(len(values))], values, width, label=column)


def _draw_lines(axes: Any, series: dict[str, list[float]]) -> None:
    for column, values in series.items():
        axes.plot(range(len(values)), values, marker="o", markersize=4, label=column)


def _number(cell: Cell) -> float:
    """Returns the number in a cell, or NaN, which is not drawn, for text and empty cells."""
    return float(cell) if isinstance(cell, int | float) else math.nan
