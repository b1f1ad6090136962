"""`gompfs verify`: checks an archive against its checksums and the rules of the format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gompfs.cli.application import EXIT_FAILURE
from gompfs.cli.command_line import command, option
from gompfs.cli.output import human_size, print_json, print_line
from gompfs.cli.parameters import archive_argument, engine_option, jobs_option, json_option, opened
from gompfs.cli.progress import progress_bar
from gompfs.errors import display_path

if TYPE_CHECKING:
    from gompfs.model import Problem
    from gompfs.verify import Damage, VerifyReport


@command("verify")
@archive_argument
@option("-q", "--quiet", is_flag=True, help="Print only damage and problems.")
@jobs_option
@engine_option
@json_option
def verify_command(archive: str, *, quiet: bool, jobs: int, engine: str, as_json: bool) -> int:
    """Check all blocks of ARCHIVE and every rule of the format.

    Decodes all blocks and compares them with their checksums. Prints a line for each block that is damaged, or that
    the disk cannot read, with the files that it belongs to, then a line for each problem of the index, of the grammars,
    or of the bytes after the last generation. If there is any line, the exit status is 1.
    """
    from gompfs.verify import verify_archive

    with opened(archive, engine=engine, num_threads=jobs, with_warnings=False) as opened_archive:

        def total_size() -> int | None:
            segments = sum(segment.blocks.uncompressed_size for segment in opened_archive.segments)
            return segments + sum(section.blocks.uncompressed_size for section in opened_archive.sections)

        with progress_bar(Path(archive).name, total_size, quiet=quiet) as bar:
            report = verify_archive(opened_archive, bar.advance if bar else None)
    if as_json:
        print_json(_as_json(archive, report))
    else:
        _print_report(archive, report, quiet)
    return 0 if report.is_sound else EXIT_FAILURE


def _as_json(archive: str, report: VerifyReport) -> dict[str, Any]:
    return {
        "archive": archive,
        "num_blocks": report.num_blocks,
        "compressed_size": report.compressed_size,
        "uncompressed_size": report.uncompressed_size,
        "damages": [
            {
                "block": damage.block,
                "section": damage.section,
                "reason": damage.status.reason,
                "paths": [os.fsdecode(path) for path in damage.paths],
            }
            for damage in report.damages
        ],
        "problems": [
            {
                "inode": problem.ino,
                "path": os.fsdecode(report.paths[problem.ino]) if problem.ino in report.paths else None,
                "reason": problem.reason,
            }
            for problem in report.problems
        ],
    }


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _print_report(archive: str, report: VerifyReport, quiet: bool) -> None:
    name = display_path(archive)
    for damage in report.damages:
        print_line(f"{name}: {_describe(damage)}".encode())
    for problem in report.problems:
        print_line(f"{name}: {_describe_problem(problem, report.paths)}".encode())
    summary = []
    if report.damages:
        files = {path for damage in report.damages for path in damage.paths}
        summary.append(f"{_counted(len(report.damages), 'damaged block')}, {_counted(len(files), 'file')} affected")
    if report.problems:
        summary.append(_counted(len(report.problems), "problem"))
    if summary:
        print_line(f"{name}: {', '.join(summary)}".encode())
    elif not quiet:
        checked = f"{report.num_blocks:,} blocks, {human_size(report.uncompressed_size)}"
        print_line(f"{name}: {checked}: no damage found".encode())


def _describe(damage: Damage) -> str:
    if damage.section is not None:
        return f"section {damage.section}: block {damage.block}: {damage.status.reason}"
    files = ", ".join(display_path(path) for path in damage.paths) or "no file"
    return f"block {damage.block}: {damage.status.reason}: affects {files}"


def _describe_problem(problem: Problem, paths: dict[int, bytes]) -> str:
    if problem.ino is None:
        return problem.reason
    path = f" ({display_path(b'/' + paths[problem.ino])})" if problem.ino in paths else ""
    return f"inode {problem.ino}{path}: {problem.reason}"
