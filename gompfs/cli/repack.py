"""`gompfs repack`: packs an archive again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gompfs.cli.application import leave_on_sigterm
from gompfs.cli.command_line import PATH, Choice, argument, command, option
from gompfs.cli.packing import (
    CHECK_OPTIONS,
    CODEC_OPTIONS,
    COMMENT_OPTIONS,
    DICTIONARY_OPTIONS,
    QUIET_OPTIONS,
    WORDS_HELP,
    codec_options,
    run_packing,
    with_options,
)
from gompfs.cli.parameters import archive_argument, engine_option, jobs_option, json_option, opened, parse_size_option
from gompfs.model import WORD_RULES


@command("repack")
@archive_argument
@argument("target", type=PATH)
@option("-f", "--force", is_flag=True, help="Replace TARGET if it exists and is an archive.")
@option(
    "-b",
    "--block-size",
    metavar="SIZE",
    parse=parse_size_option,
    help="Size of the units that decompress independently: a power of two from 16K to 1M. Default: as in ARCHIVE.",
)
@with_options([*CODEC_OPTIONS, *DICTIONARY_OPTIONS, jobs_option])
@option("--words", type=Choice(WORD_RULES), help=f"{WORDS_HELP} Default: as in ARCHIVE.")
@with_options([*CHECK_OPTIONS, *COMMENT_OPTIONS, *QUIET_OPTIONS])
@engine_option
@json_option
def repack_command(
    archive: str,
    target: str,
    *,
    force: bool,
    block_size: int | None,
    words: str | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Pack the content of ARCHIVE again, into a new archive TARGET.

    All entries keep their metadata, holes and hard links. Content that later generations of ARCHIVE have replaced is
    left out. ARCHIVE is not changed.

    If a file of ARCHIVE is damaged, nothing is written. With --force, TARGET may be ARCHIVE: it is replaced once the
    new archive is complete.
    """
    from gompfs.pack import check_target
    from gompfs.repack import repack_archive

    leave_on_sigterm()
    check_target([], Path(target))
    with opened(archive, engine=values["engine"], num_threads=values["jobs"], verify=True) as source:
        run_packing(
            Path(target),
            lambda: source.index.totals()[1],
            lambda progress: repack_archive(
                source,
                Path(target),
                block_size=block_size,
                words=words,
                jobs=values["jobs"],
                force=force,
                check=not values["no_check"],
                comment=values["comment"],
                progress=progress,
                **codec_options(values),
            ),
            quiet=values["quiet"],
            as_json=as_json,
        )
