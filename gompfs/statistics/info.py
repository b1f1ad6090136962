"""The statistics `info`, facts about an archive and, in a mount, about the mount; and `binary-files`."""

from __future__ import annotations

from gompfs.errors import display_path
from gompfs.format import FORMAT_VERSION
from gompfs.light_types import TYPE_CHECKING, NamedTuple
from gompfs.statistics.grammar_cache import segments_with_grammars
from gompfs.statistics.paths import escape_path
from gompfs.statistics.report import FixedReport, Report

if TYPE_CHECKING:
    from gompfs.archive import Archive
    from gompfs.statistics.answering import Answering
    from gompfs.statistics.query import StatsQuery
    from gompfs.statistics.source import StatsSource


class MountFacts(NamedTuple):
    """The lines of `info` about a mount."""

    fuse_api: str
    """The FUSE interface by which the archive is mounted."""
    passthrough: str | None
    """The state of passthrough as text for users; None for a mount that cannot have passthrough."""
    directory: bytes
    """The path of the directory that the mount shows; empty for the root."""


def info(source: StatsSource, _query: StatsQuery) -> Report:
    """Returns `name<TAB>value` lines."""
    return FixedReport(_info_text(source.archive, source.mount, source.answering))


def binary_files(source: StatsSource, _query: StatsQuery) -> Report:
    """Returns a line for each binary file of the archive, with its path: statistics leave these files out."""
    numbers = source.archive.index.binary_files()
    paths = source.archive.paths() if numbers else {}
    found = sorted(paths[number] for number in numbers if number in paths)
    return FixedReport(b"".join(escape_path(path) + b"\n" for path in found))


def _info_text(archive: Archive, mount: MountFacts | None, answering: Answering | None) -> bytes:
    num_inodes, size = archive.index.totals()
    facts: dict[str, object] = {
        "archive": display_path(archive.path),
        "uuid": archive.superblock.uuid_text,
        "format_version": FORMAT_VERSION,
        "generation": archive.footer.generation,
        "segments": len(archive.segments),
        "entries": num_inodes,
        "uncompressed_size": size,
        "archive_size": archive.size,
        "blocks": archive.num_blocks,
        "block_size": archive.block_size,
        "blocks_compressed_size": sum(segment.blocks.compressed_size for segment in archive.segments),
        "grammar_compressed_size": _grammar_size(archive),
        "stats": _source_of_stats(archive),
        "binary_files": archive.index.num_binary_files(),
        "engine": archive.engine.name,
        "engine_reason": archive.engine.reason,
        "engine_threads": archive.engine.num_threads,
        "cache_hits": archive.blocks.hits,
        "cache_misses": archive.blocks.misses,
    }
    if answering is not None:
        facts["statistics_from"] = answering.reason
        facts["statistics_times"] = answering.describe_times()
    if mount is not None:
        facts["fuse_api"] = mount.fuse_api
        if mount.passthrough is not None:
            facts["passthrough"] = mount.passthrough
        if mount.directory:
            facts["directory"] = display_path(mount.directory)
    lines = [f"{name}\t{value}" for name, value in facts.items()]
    return ("\n".join(lines) + "\n").encode()


def _grammar_size(archive: Archive) -> int:
    """Returns the size of all grammars: of sections, and of the heads of parts."""
    heads = sum(sum(segment.parts.head_sizes) for segment in archive.segments)
    return heads + sum(section.blocks.compressed_size for section in archive.sections)


def _num_composed(archive: Archive) -> int:
    if len(archive.segments) < 2:
        return 0
    from gompfs.statistics.content import text_outside_parts

    return len(text_outside_parts(archive, archive.inode_numbers()).layout.inos)


def _source_of_stats(archive: Archive) -> str:
    num_segments = len(archive.segments)
    missing = num_segments - len(segments_with_grammars(archive))
    if missing == 0:
        num_composed = _num_composed(archive)
        return "computed from the grammar" + (
            f", and from the content of {num_composed} composed files" if num_composed else ""
        )
    if missing == num_segments:
        return "computed from the content, no grammar"
    return f"computed from the grammar, and from the content of {missing} of {num_segments} segments without grammar"
