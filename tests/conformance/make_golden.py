"""Makes golden archives of format version 1: `PYTHONPATH=tests python tests/conformance/make_golden.py`, as root.

Makes only those archives, with manifests, that tests/data/golden/v1 lacks. The files there are never made again:
releases have written them, and every later release must read them. A further archive, from a later writer or with
content that the others lack, gets its own function and name here.

The manifest lists what was packed. It comes from a listing of the directories, or from the contents of a hand-made
archive. Only the lines about blocks and sections are read from the archive.
"""

from __future__ import annotations

import hashlib
import os
import random
import stat
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from archive_builder import BLOCK_SIZE, ArchiveBuilder, grammar_part, grammar_section
from manifests import GOLDEN, entry_lines, frame_lines
from payload_builder import build_bit, build_byte
from payloads import CORPUS, breaks_of_dependency_elimination
from tree_helpers import Seen, list_directory

from gompfs.archive import Archive
from gompfs.codec import Codec, build_block
from gompfs.codec.sequences import DecodedPayload, Sequence
from gompfs.engine import select_engine
from gompfs.grammar.collector import is_text
from gompfs.grammar.reference import split_words
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive

TIME_NS = 1_600_000_000_123_456_789
HOLE = 64 << 10
ALICE = (CORPUS / "carroll" / "alice29.txt").read_bytes()


def make_missing(makers: Mapping[str, Callable[[Path, Path], None]], target: Path) -> None:
    """Makes the archives that a directory lacks."""
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, make in makers.items():
            archive = target / f"{name}.gomp"
            if not archive.exists():
                make(archive, Path(scratch, name))


def write_manifest(archive: Path, seen: dict[bytes, Seen], title: str, suffix: str = "") -> None:
    """Writes the manifest of an archive, or of its state after the add named by `suffix`."""
    content = archive.read_bytes()
    with Archive(archive, engine=select_engine("cpu")) as opened:
        lines = [
            f"# {title}",
            f"archive size={len(content)} sha256={hashlib.sha256(content).hexdigest()}",
            *frame_lines(opened),
            *entry_lines(seen),
        ]
    archive.with_name(f"{archive.stem}{suffix}.manifest").write_text("\n".join(lines) + "\n")


def write_words(archive: Path, seen: dict[bytes, Seen], word_rule: str, left_out: tuple[bytes, ...] = ()) -> None:
    """Writes the word counts.

    Each text file is counted once: hard links are one file. Files with holes are not text.
    """
    counts: Counter[bytes] = Counter()
    for path, item in seen.items():
        if item.content is not None and item.inode == path and is_text(item.content) and path not in left_out:
            counts.update(split_words(item.content, word_rule))
    lines = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    archive.with_suffix(".wordcount").write_bytes(b"".join(b"%s\t%d\n" % line for line in lines))


# Archives made by the packer


def make_tree(archive: Path, root: Path) -> None:
    """Packs all kinds of entries with the default options."""
    rng = random.Random("golden tree")
    write_contents(root / "contents", rng)
    write_names(root / "names")
    write_links(root / "links")
    write_sparse(root / "sparse", rng)
    write_attributes(root / "attributes")
    (root / "empty-directory").mkdir()
    settle_times(root)
    options = PackOptions(dependency_elimination=True, words="whitespace", version=1)
    pack_archive([open_source(root)], archive, options, engine=select_engine("cpu"))
    seen = list_directory(root)
    write_manifest(archive, seen, "Blocks of 64 KiB, gompresso-bit level 6, repair, words between whitespace.")
    sparse = tuple(path for path in seen if path.startswith(b"sparse/"))
    write_words(archive, seen, "whitespace", left_out=sparse)


def make_generations(archive: Path, root: Path) -> None:
    """Packs a directory, then adds another that replaces files of the first and changes attributes."""
    engine = select_engine("cpu")
    first, second = root / "1", root / "2"
    (first / "inner").mkdir(parents=True)
    (first / "inner/kept").write_bytes(ALICE[6000:12000])
    (first / "inner/replaced").write_bytes(b"Words of the first, that don't count any more.\n" * 30)
    line = "It\u2019s \u201cna\u00efve\u201d, isn't it? \u03a3 x\u00b2 \u65e5\u672c 42.\n"
    (first / "text").write_bytes(line.encode() * 500 + b"\xff'd ")
    os.link(first / "text", first / "text-too")
    (first / "becomes-a-link").write_bytes(b"gone, but for its words in the grammar\n")
    (second / "inner").mkdir(parents=True)
    os.chmod(second / "inner", 0o700)
    (second / "inner/replaced").write_bytes(b"Second words, that do count.\n")
    (second / "text").write_bytes(b"Only text-too has the older text.\n")
    (second / "becomes-a-link").symlink_to("inner/kept")
    settle_times(first)
    settle_times(second, TIME_NS + 1)
    options = PackOptions(
        Codec.GOMPRESSO_BYTE,
        level=9,
        dependency_elimination=True,
        block_size=16 << 10,
        grammar_builder="sequitur",
        words="letters",
        version=1,
    )
    pack_archive([open_source(first)], archive, options, engine=engine)
    before = list_directory(first)
    title = "Generation 1 of 2: blocks of 16 KiB, gompresso-byte level 9, sequitur, words of letters."
    write_manifest(archive, before, title, suffix="-1")
    add_to_archive(archive, [open_source(second)], PackOptions(Codec.STORED), engine=engine)
    seen = {**before, **list_directory(second)}
    seen[b"text-too"] = seen[b"text-too"]._replace(inode=b"text-too")  # the other name has another inode now
    write_manifest(archive, seen, "Generation 2 of 2: stored, repair; replaces files, one of which was a hard link.")
    write_words(archive, seen, "letters")


def make_large_blocks(archive: Path, root: Path) -> None:
    """Uses the largest blocks, without dependency elimination and without statistics."""
    root.mkdir()
    rng = random.Random("golden large blocks")
    paragraphs = [ALICE[start : start + 400] for start in range(0, 4000, 400)]
    (root / "zeros").write_bytes(bytes((1 << 20) - 1000))
    (root / "paragraphs").write_bytes(b"".join(rng.choices(paragraphs, k=500)))
    settle_times(root)
    options = PackOptions(level=1, block_size=1 << 20, stats=False, words="whitespace", version=1)
    pack_archive([open_source(root)], archive, options, engine=select_engine("cpu"))
    title = "Blocks of 1 MiB, gompresso-bit level 1 without dependency elimination, no statistics."
    write_manifest(archive, list_directory(root), title)


def write_contents(root: Path, rng: random.Random) -> None:
    root.mkdir(parents=True)
    paragraphs = [ALICE[start : start + 350] for start in range(0, 3500, 350)]
    contents = {
        "empty": b"",
        "one-byte": b"x",
        "text": ALICE[:6000],
        "same-text": ALICE[:6000],
        "over-blocks": b"".join(rng.choices(paragraphs, k=400)),
        "noise": rng.randbytes(500),
        "late-nul": b"a text of more than 8 KiB before its NUL " * 210 + b"\0 and behind",
        "spaces": b" \t\n\v\f\r",
        "no-utf-8": b"\xff\xfe \xc3\x28 words\xa0",
    }
    for name, content in contents.items():
        (root / name).write_bytes(content)


def write_names(root: Path) -> None:
    root.mkdir()
    names = [b"new\nline", b" ", b"-rf", b"back\\slash", b"\xff\xfe", b"latin-\xe4", "日本語".encode(), b"n" * 255]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(root), name))).write_bytes(b"named\n")


def write_links(root: Path) -> None:
    (root / "other").mkdir(parents=True)
    (root / "first").write_bytes(b"one file of three names\n")
    os.link(root / "first", root / "another")
    os.link(root / "first", root / "other/third")
    targets = {"to-first": b"first", "dangling": b"../no/where", "bytes": b"\xff\n", "long": b"t/" * 150}
    for name, target in targets.items():
        os.symlink(target, os.fsencode(root / name))
    os.link(root / "to-first", root / "to-first-too", follow_symlinks=False)


def write_sparse(root: Path, rng: random.Random) -> None:
    root.mkdir()
    for name, places in {"front": [3], "middle": [0, 5], "end": [0], "hole": []}.items():
        with open(root / name, "wb") as file:
            for place in places:
                file.seek(place * HOLE)
                file.write(bytes(rng.choices(b"sparse\0", k=4096)))
            if name != "front":
                file.truncate(6 * HOLE + 5)


def write_attributes(root: Path) -> None:
    root.mkdir()
    for mode in (0o000, 0o4755, 0o2711, 0o1644):
        (root / f"mode-{mode:04o}").write_bytes(b"")
        os.chmod(root / f"mode-{mode:04o}", mode)
    (root / "sticky").mkdir()
    os.chmod(root / "sticky", 0o1777)
    (root / "owned").write_bytes(b"owned\n")
    os.chown(root / "owned", 1000, (1 << 32) - 2)
    os.mkfifo(root / "fifo", 0o640)
    os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(root / "loop", stat.S_IFBLK | 0o660, os.makedev(7, 300))
    (root / "xattrs").mkdir()
    (root / "xattrs/file").write_bytes(b"")
    for path in (root / "xattrs", root / "xattrs/file"):
        os.setxattr(path, b"user.bytes", bytes(range(0, 256, 5)))
        os.setxattr(path, b"user.empty", b"")
    for name in ("before-1970", "a-nanosecond-before-1970", "far"):
        (root / name).write_bytes(b"")


def settle_times(root: Path, start_ns: int = TIME_NS) -> None:
    """Gives each entry a time of its own, children before parents."""
    odd = {"before-1970": -86_399_999_999_999, "a-nanosecond-before-1970": -1, "far": 7_258_118_400_000_000_001}
    top = os.fsencode(root)
    number = 0
    for path, directories, files in os.walk(top, topdown=False):
        for name in [*sorted(files), *sorted(directories)]:
            number += 1
            time_ns = odd.get(os.fsdecode(name), start_ns + number * 1_000_000_007)
            os.utime(os.path.join(path, name), ns=(time_ns, time_ns), follow_symlinks=False)
    os.utime(top, ns=(start_ns, start_ns))


# An archive that the packer did not write


def make_foreign(archive: Path, _root: Path) -> None:
    """Makes what the format permits and the packer does not write. The lists below define the contents."""
    rng = random.Random("golden foreign")
    builder = ArchiveBuilder(meta={"words": "whitespace", "unknown": "ignored by readers"})
    contents: dict[bytes, bytes] = {}
    for codec in (Codec.GOMPRESSO_BYTE, Codec.GOMPRESSO_BIT):
        for group_size_log2 in (2, 3, 4, 5):
            for elimination in (True, False):
                decoded = make_sequences(codec, group_size_log2, elimination, rng)
                content = decoded.expand(BLOCK_SIZE)
                payload = build_byte(decoded) if codec is Codec.GOMPRESSO_BYTE else build_bit(decoded, rng)
                name = f"{codec.label}-{1 << group_size_log2}{'' if elimination else '-dependent'}".encode()
                builder.add_file(name, len(content), len(builder.blocks) * BLOCK_SIZE)
                builder.blocks.append((build_block(codec, payload, content).data, len(content)))
                contents[name] = content
    one_symbol = b"a" * BLOCK_SIZE
    payload = build_bit(DecodedPayload(True, 2, one_symbol_sequences(), b"a"), rng)
    builder.add_file(b"one-symbol", BLOCK_SIZE, len(builder.blocks) * BLOCK_SIZE)
    builder.blocks.append((build_block(Codec.GOMPRESSO_BIT, payload, one_symbol).data, BLOCK_SIZE))
    contents[b"one-symbol"] = one_symbol
    text = b"to be or not to be\n"
    ino = builder.add_file(b"text", len(text), len(builder.blocks) * BLOCK_SIZE)
    builder.add_file(b"part-of-text", 5, len(builder.blocks) * BLOCK_SIZE + 3)
    builder.blocks.append((build_block(Codec.STORED, text, text).data, len(text)))
    contents |= {b"text": text, b"part-of-text": text[3:8]}
    builder.add_entry(b"socket", stat.S_IFSOCK | 0o600)
    grammar = make_grammar(ino)
    builder.sections["grammar"] = [(build_block(Codec.STORED, grammar, grammar).data, len(grammar))]
    builder.sections["unknown"] = [(build_block(Codec.STORED, b"ignored", b"ignored").data, 7)]
    binary = " UNION ".join(f"SELECT {number}" for number in range(2, ino))
    builder.statements.append(f"INSERT INTO binary_file {binary} UNION SELECT {ino + 1}")
    archive.write_bytes(builder.build())
    title = "Written by hand: all groups, random codes, a grammar of two parts."
    write_manifest(archive, foreign_entries(contents), title)
    archive.with_suffix(".wordcount").write_bytes(b"be\t2\nto\t2\nnot\t1\nor\t1\n")


def foreign_entries(contents: dict[bytes, bytes]) -> dict[bytes, Seen]:
    """Returns the listing that `contents` should have. Inode numbers, and thus times, ascend in their order."""
    time_ns = 1_500_000_000_000_000_000
    names = [*contents, b"socket"] if contents else []
    seen = {b"": Seen(stat.S_IFDIR | 0o755, 0, 0, time_ns, 0, None, None, (), b"")}
    for ino, name in enumerate(names, 2):
        mode = stat.S_IFSOCK | 0o600 if name == b"socket" else stat.S_IFREG | 0o644
        seen[name] = Seen(mode, 0, 0, time_ns + ino, 0, None, contents.get(name), (), name)
    return seen


def make_nothing(archive: Path, _root: Path) -> None:
    """Makes an archive with a root directory and no blocks."""
    archive.write_bytes(ArchiveBuilder().build())
    write_manifest(archive, foreign_entries({}), "Written by hand: an empty directory.")


def make_sequences(codec: Codec, group_size_log2: int, elimination: bool, rng: random.Random) -> DecodedPayload:
    """Returns sequences of BLOCK_SIZE bytes: 32 with literals, then some with matches to these or to any bytes."""
    longest = 289 if codec is Codec.GOMPRESSO_BYTE else 426
    shortest = 4 if codec is Codec.GOMPRESSO_BYTE else 3
    sequences = [Sequence(25, 0, 0)] * 32
    base = position = 32 * 25
    while position < BLOCK_SIZE - longest - 20:
        literal_length = rng.choice((0, 0, 1, 3, 6, 7, 8, 12))
        match_length = rng.choice((shortest, longest, longest, longest, rng.randint(shortest, longest)))
        position += literal_length
        start = rng.randint(0, base - match_length) if elimination else rng.randint(0, position - 1)
        offset = position - start if elimination or rng.random() < 0.7 else 1
        sequences.append(Sequence(literal_length, match_length, offset))
        position += match_length
    while position < BLOCK_SIZE:
        sequences.append(Sequence(min(255, BLOCK_SIZE - position), 0, 0))
        position += sequences[-1].literal_length
    literals = bytes(rng.choices(b"abcdefghijklmnop", k=sum(length for length, _, _ in sequences)))
    decoded = DecodedPayload(elimination, group_size_log2, sequences, literals)
    assert (breaks_of_dependency_elimination(decoded, BLOCK_SIZE) == 0) == elimination
    return decoded


def one_symbol_sequences() -> list[Sequence]:
    """A literal, then matches that overlap themselves. In gompresso-bit, they give codes of one symbol and of two."""
    sequences = [Sequence(1, 0, 0)] + [Sequence(0, 426, 1)] * (BLOCK_SIZE // 426)
    return [*sequences, Sequence(0, BLOCK_SIZE - 1 - 426 * (BLOCK_SIZE // 426), 1)]


def make_grammar(ino: int) -> bytes:
    """Returns `to be or not to be` as a file that continues in a second part. Numbers are longer than needed."""
    # Part 1: the root consists of rule 1, `or` and the splitter; rule 1 is `to be`. Part 2: `not to be`.
    first = grammar_part(ino, 3, [3, 0, 2], [[2, 5, 0], [1, 3]])
    second = grammar_part(ino, 3, [1, 3, 0], [[1, 3, 5, 0]], continues=True)
    return grammar_section([b"be", b"not", b"or", b"to"], [first, second])


MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "tree": make_tree,
    "generations": make_generations,
    "large-blocks": make_large_blocks,
    "foreign": make_foreign,
    "nothing": make_nothing,
}

if __name__ == "__main__":
    make_missing(MAKERS, GOLDEN / "v1")
