"""Prints measured tables, writes them as JSON, and draws plots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .plots import caption_of, save_plots
from .report import Report, origin, print_reports


def finish(reports: Sequence[Report], json_path: Path | None, programs: Sequence[str] = ()) -> None:
    """Print the tables, and write them to `json_path` if given."""
    facts = origin(programs)
    print_reports(reports, facts)
    write_json(reports, facts, json_path)


def finish_one_by_one(
    reports: Iterable[Report],
    json_path: Path | None,
    plots: Path | None = None,
    programs: Sequence[str] = (),
    more_facts: Mapping[str, str] | None = None,
) -> None:
    """Print each table as soon as it is measured, write all so far to `json_path`, and draw plots into `plots`."""
    measured: list[Report] = []
    for report in reports:
        measured.append(report)
        facts = origin(programs) | dict(more_facts or {})
        print_reports([report], facts)
        write_json(measured, facts, json_path)
        if plots is not None:
            save_plots(report, plots, caption_of(facts))


def write_json(reports: Sequence[Report], facts: dict[str, str], path: Path | None) -> None:
    """Write the tables and their origin to `path` if given."""
    if path is not None:
        result = {"origin": facts, "tables": [report.as_json() for report in reports]}
        path.write_text(json.dumps(result, indent=2) + "\n")
