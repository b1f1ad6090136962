"""`gompfs info`: facts about an archive and a breakdown of its size."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime

from gompfs.cli.command_line import UsageError, command, option
from gompfs.cli.output import human_size, print_json, print_line, ratio
from gompfs.cli.parameters import archive_argument, json_option, opened
from gompfs.errors import GompfsError, display_path, display_text
from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from gompfs.archive import Archive
    from gompfs.model import BlockTable


@command("info")
@archive_argument
@json_option
@option("--index", "database", metavar="FILE", help="Write the index to FILE instead, as a SQLite database.")
@option("-f", "--force", is_flag=True, help="With --index: replace FILE if it exists.")
def info_command(archive: str, *, as_json: bool, database: str | None, force: bool) -> None:
    """Show sizes, codecs, generations and sections of ARCHIVE."""
    if database is not None and as_json:
        raise UsageError("--index prints no JSON")
    if database is None and force:
        raise UsageError("--force needs --index")
    with opened(archive) as opened_archive:
        if database is not None:
            _write_index(opened_archive, database, force=force)
            return
        facts = collect_facts(opened_archive)
    if as_json:
        print_json(facts)
        return
    for line in _lines(facts):
        print_line(line.encode())


def _write_index(archive: Archive, target: str, *, force: bool) -> None:
    """Write the index as a SQLite database. Raises GompfsError if the file exists, unless `force` is set."""
    try:
        with open(target, "wb" if force else "xb") as file:
            file.writelines(archive.index_image())
    except FileExistsError:
        raise GompfsError("the file exists; use --force to replace it", path=target) from None


def collect_facts(archive: Archive) -> dict[str, Any]:
    """The facts that `info` prints, by JSON key; sizes in bytes."""
    from gompfs.format import FORMAT_VERSION, NUM_COPIES

    num_inodes, content_size = archive.index.totals()
    segments = [
        {
            "segment": segment.number,
            "first_block": segment.first_block,
            "num_parts": len(segment.parts),
            "heads_size": sum(segment.parts.head_sizes),
            **_sizes(segment.blocks),
        }
        for segment in archive.segments
    ]
    sections = [
        {"segment": section.segment, "kind": section.kind, **_sizes(section.blocks)} for section in archive.sections
    ]
    return {
        "archive": os.fspath(archive.path),
        "uuid": archive.superblock.uuid_text,
        "format_version": FORMAT_VERSION,
        "generation": archive.footer.generation,
        "num_inodes": num_inodes,
        "num_binary_files": archive.index.num_binary_files(),
        "content_size": content_size,
        "stream_size": sum(segment["uncompressed_size"] for segment in segments),
        "archive_size": archive.size,
        "index_size": sum(footer.index_size for footer in archive.index_footers),
        "index_copies": NUM_COPIES,
        "index_columns_size": sum(footer.columns_size for footer in archive.index_footers),
        "index_changes": archive.footer.num_changes,
        "ratio": round(ratio(content_size, archive.size), 4),
        "block_size": archive.block_size,
        "num_blocks": archive.num_blocks,
        "meta": archive.meta,
        "codecs": _codec_mix(archive),
        "generations": [
            {**note._asdict(), "size": size}
            for note, size in zip(archive.index.generations(), archive.generation_sizes(), strict=False)
        ],
        "segments": segments,
        "sections": sections,
        "warnings": archive.warnings,
    }


def _sizes(table: BlockTable) -> dict[str, int]:
    return {
        "num_blocks": len(table),
        "compressed_size": table.compressed_size,
        "uncompressed_size": table.uncompressed_size,
    }


def _codec_mix(archive: Archive) -> dict[str, dict[str, int]]:
    """The number of blocks of the stream and their compressed size in bytes, for each codec."""
    from gompfs.codec import Codec

    num_blocks: Counter[int] = Counter()
    compressed_sizes: Counter[int] = Counter()
    for segment in archive.segments:
        num_blocks.update(segment.codecs)
        for codec, size in zip(segment.codecs, segment.blocks.compressed_sizes, strict=True):
            compressed_sizes[codec] += size
    return {
        codec.label: {"num_blocks": num_blocks[codec], "compressed_size": compressed_sizes[codec]}
        for codec in Codec
        if codec in num_blocks
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    words = facts["meta"].get("words", "whitespace")
    rows = [
        ("archive", display_path(facts["archive"])),
        ("uuid", facts["uuid"]),
        ("format", f"version {facts['format_version']}, generation {facts['generation']}"),
        (
            "entries",
            f"{facts['num_inodes']:,} inodes, {facts['num_binary_files']:,} binary files, words: {words}",
        ),
        *([("packed for", facts["meta"]["for"])] if "for" in facts["meta"] else []),
        ("content", _exact(facts["content_size"])),
        ("stream", f"{_exact(facts['stream_size'])}, duplicate files counted once, holes not counted"),
        ("archive size", f"{_exact(facts['archive_size'])}, ratio {facts['ratio']:.2f}"),
        (
            "index",
            f"{_exact(facts['index_size'])}, stored twice; {human_size(facts['index_columns_size'])} as columns"
            + (f"; a whole one and {facts['index_changes']} with changes" if facts["index_changes"] else ""),
        ),
        ("blocks", f"{facts['num_blocks']:,} of {facts['block_size'] // 1024} KiB"),
    ]
    rows += [
        (f"codec {label}", f"{codec['num_blocks']:,} blocks, {human_size(codec['compressed_size'])}")
        for label, codec in facts["codecs"].items()
    ]
    rows += [(f"generation {note['number']}", _generation(note)) for note in facts["generations"]]
    rows += [(f"segment {part['segment']}", _part(part)) for part in facts["segments"]]
    rows += [(f"section {part['kind']}, segment {part['segment']}", _part(part)) for part in facts["sections"]]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {value}" for name, value in rows]


def _generation(note: dict[str, Any]) -> str:
    entries = f"{note['num_added']:,} entries" + (f", {note['num_removed']:,} removed" if note["num_removed"] else "")
    comment = f": {display_text(note['comment'])}" if note["comment"] else ""
    return f"{_date(note['time'])}, {display_text(note['command'])}, {entries}, {human_size(note['size'])}{comment}"


def _date(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a time that no program writes
        return f"@{seconds}"


def _part(part: dict[str, Any]) -> str:
    sizes = f"{human_size(part['uncompressed_size'])} -> {human_size(part['compressed_size'])}"
    parts = f" in {part['num_parts']:,} parts" if part.get("num_parts", 1) > 1 else ""
    heads = f", and {human_size(part['heads_size'])} of heads" if part.get("heads_size") else ""
    return f"{part['num_blocks']:,} blocks{parts}, {sizes}{heads}"


def _exact(size: int) -> str:
    return f"{human_size(size)} ({size:,} bytes)" if size >= 1000 else human_size(size)
