"""Makes golden archives: `python -m tests.format.make_golden`, as root.

Makes only those archives, with manifests, that tests/data/golden lacks. A change of the format makes the archives that
it concerns anew: remove them, and run this.

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
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    import tests.rooms  # noqa: F401

from archive_builder import BLOCK_SIZE, ArchiveBuilder, StoredPart
from manifests import GOLDEN, entry_lines, frame_lines
from oracle.block import build_block
from oracle.grammar import split_words
from oracle.sequences import DecodedPayload, Sequence
from payload_builder import build_bit, build_byte
from payloads import CORPUS, breaks_of_dependency_elimination
from tree_helpers import Seen, list_directory

from gompfs.archive import Archive
from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.model import PartKind
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive, remove_from_archive
from gompfs.text import is_text

TIME_NS = 1_600_000_000_123_456_789
HOLE = 64 << 10
ALICE = (CORPUS / "carroll" / "alice29.txt").read_bytes()
# Words of several byte lengths, and separators of one byte, several bytes, and none.
_WORDS = [b"head", b"of", b"a", b"part_1", "\u03bb\u00e9".encode(), b"x" * 300, b"don", b"t", b"return"]
_SEPARATORS = [b" ", b" ", b" ", b", ", b"->", b"\n", b"\n\n    ", b"'", b"=" * 70]


def make_missing() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        for name, make in MAKERS.items():
            archive = GOLDEN / f"{name}.gomp"
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
    settle_times(root)
    pack_archive([open_source(root)], archive, PackOptions(), engine=select_engine("cpu"))
    seen = list_directory(root)
    write_manifest(archive, seen, "Blocks of 64 KiB, gompresso-tadoc, words are identifiers.")
    sparse = tuple(path for path in seen if path.startswith(b"sparse/"))
    write_words(archive, seen, "identifiers", left_out=sparse)


def make_parts(archive: Path, root: Path) -> None:
    """Packs text in many small parts, so that words are local and global, files span parts, and parts lack heads."""
    rng = random.Random("golden parts")
    root.mkdir()
    for number, size in enumerate((40_000, 1, 9000, 300, 25_000)):
        (root / f"text-{number}").write_bytes(_text(rng, size))
    (root / "rare").write_bytes(" ".join(f"only{rng.getrandbits(40):x}" for _ in range(1500)).encode())
    (root / "short").write_bytes(b"no grammar pays here")
    (root / "noise").write_bytes(b"\0" + rng.randbytes(20_000))
    settle_times(root)
    options = PackOptions(level=8, block_size=16 << 10, words="whitespace", part_size=20_000)
    pack_archive([open_source(root)], archive, options, engine=select_engine("cpu"))
    seen = list_directory(root)
    write_manifest(archive, seen, "Parts of 20,000 bytes, blocks of 16 KiB, words between whitespace.")
    write_words(archive, seen, "whitespace")


def _pack_generation(archive: Path, folder: Path, number: int, options: PackOptions) -> dict[bytes, Seen]:
    """Packs a folder as the generation `number` of the archive, from 1, and returns what is in the folder."""
    settle_times(folder, TIME_NS + number)
    sources, engine = [open_source(folder)], select_engine("cpu")
    if number == 1:
        pack_archive(sources, archive, options, engine=engine)
    else:
        add_to_archive(archive, sources, options, engine=engine)
    return list_directory(folder)


def make_generations(archive: Path, root: Path) -> None:
    """Packs text as grammars, then adds generations of other codecs, which replace files."""
    rng = random.Random("golden generations")
    for number in range(1, 5):
        (root / f"{number}").mkdir(parents=True)
    (root / "1/kept").write_bytes(_text(rng, 5000))
    (root / "1/replaced").write_bytes(_text(rng, 5000))
    os.link(root / "1/replaced", root / "1/replaced-too")
    (root / "2/replaced").write_bytes(_text(rng, 4000))
    (root / "3/replaced").write_bytes(b"It\xe2\x80\x99s the third text.\n" * 200)
    (root / "4/noise").write_bytes(rng.randbytes(3000))
    each = (
        PackOptions(words="letters", block_size=16 << 10),
        PackOptions(Codec.GOMPRESSO_BYTE, level=8, dependency_elimination=True),
        PackOptions(Codec.GOMPRESSO_BIT, dependency_elimination=True),
        PackOptions(Codec.STORED),
    )
    seen = {}
    for number, options in enumerate(each, 1):
        seen.update(_pack_generation(archive, root / f"{number}", number, options))
        if number > 1 and b"replaced-too" in seen:
            seen[b"replaced-too"] = seen[b"replaced-too"]._replace(inode=b"replaced-too")
        suffix = "" if number == len(each) else f"-{number}"
        write_manifest(archive, seen, f"Generation {number} of {len(each)}.", suffix=suffix)
    write_words(archive, seen, "letters")


def make_history(archive: Path, root: Path) -> None:
    """Packs a tree, then adds and removes little, so that indexes of changes follow a whole one; with comments."""
    rng = random.Random("golden history")
    for number in range(1, 4):
        (root / f"{number}").mkdir(parents=True)
    (root / "1/gone/below").mkdir(parents=True)
    for number in range(60):
        (root / f"1/{rng.randbytes(9).hex()}").write_bytes(rng.randbytes(number))
        (root / f"1/gone/below/{number}").touch()
    (root / "1/replaced").write_bytes(_text(rng, 3000))
    os.setxattr(root / "1/replaced", b"user.kept", b"no")
    os.symlink("replaced", root / "1/link")
    (root / "2/replaced").write_bytes(_text(rng, 2000))
    (root / "3/new").write_bytes(b"new words")
    seen = _pack_generation(archive, root / "1", 1, PackOptions(block_size=16 << 10))
    seen.update(_pack_generation(archive, root / "2", 2, PackOptions(comment="\u00e9 is\nUTF-8 \x1b[0m")))
    remove_from_archive(archive, ["gone", "link"], comment="x" * 300)
    seen = {path: item for path, item in seen.items() if path != b"link" and path.split(b"/")[0] != b"gone"}
    seen.update(_pack_generation(archive, root / "3", 4, PackOptions()))
    write_manifest(archive, seen, "Three indexes of changes, one of which removes entries.")
    write_words(archive, seen, "identifiers")


def make_composed(archive: Path, root: Path) -> None:
    """Packs text and binary data, then adds two changed versions of them."""
    rng = random.Random("golden composed")
    contents = {"text": _text(rng, 20_000), "short": _text(rng, 2000), "noise": b"\0" + rng.randbytes(3000)}
    seen = {}
    for number in range(1, 4):
        folder = root / f"{number}"
        folder.mkdir(parents=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        seen.update(_pack_generation(archive, folder, number, PackOptions(block_size=16 << 10)))
        contents = {
            "text": contents["text"][:4001] + b"new" + contents["text"][4001:9000] + contents["text"][9500:],
            "short": contents["short"][500:],
            "noise": contents["noise"][:700] + b"new" + contents["noise"][700:],
        }
    write_manifest(archive, seen, "Files that two adds compose of older ones.")
    write_words(archive, seen, "identifiers")


def make_large_blocks(archive: Path, root: Path) -> None:
    """Uses the largest blocks, with and without grammars, and a part of several blocks."""
    root.mkdir()
    rng = random.Random("golden large blocks")
    (root / "zeros").write_bytes(bytes((1 << 20) - 1000))
    (root / "text").write_bytes(_text(rng, 1000) * 1400)
    settle_times(root)
    options = PackOptions(level=1, block_size=1 << 20, part_size=1 << 22)
    pack_archive([open_source(root)], archive, options, engine=select_engine("cpu"))
    seen = list_directory(root)
    write_manifest(archive, seen, "Blocks of 1 MiB, one part of text.")
    write_words(archive, seen, "identifiers")


def make_long_word(archive: Path, root: Path) -> None:
    """Packs a word that is too long for a grammar."""
    root.mkdir()
    (root / "text").write_bytes(b"ab" * 40_000 + b" and a short one")
    settle_times(root)
    pack_archive([open_source(root)], archive, PackOptions(), engine=select_engine("cpu"))
    seen = list_directory(root)
    write_manifest(archive, seen, "A part of text without a head.")
    write_words(archive, seen, "identifiers")


def make_nothing(archive: Path, root: Path) -> None:
    """Packs an empty directory."""
    root.mkdir()
    settle_times(root)
    pack_archive([open_source(root)], archive, PackOptions(), engine=select_engine("cpu"))
    write_manifest(archive, list_directory(root), "An empty directory.")


def make_dictionary(archive: Path, root: Path) -> None:
    """Packs files with a dictionary of several blocks, then adds files, which use it, and text, which does not."""
    rng = random.Random("golden dictionary")
    for number in range(1, 4):
        (root / f"{number}").mkdir(parents=True)
    phrases = [rng.randbytes(rng.randint(5, 40)).hex().encode() for _ in range(800)]

    def write(path: str, size: int) -> None:
        content = b" ".join(b"%s %06x\n" % (rng.choice(phrases), rng.getrandbits(24)) for _ in range(size // 40))
        (root / path).write_bytes(content[:size])

    for number, size in enumerate((70_000, 1, 20_000, 40_000)):
        write(f"1/text-{number}", size)
    (root / "1/zeros").write_bytes(bytes(50_000))
    write("2/text-2", 30_000)
    (root / "2/noise").write_bytes(rng.randbytes(20_000))
    write("3/text", 30_000)
    (root / "3/data").write_bytes(b"\0" + (root / "3/text").read_bytes())
    each = (
        PackOptions(Codec.GOMPRESSO_BIT, block_size=16 << 10, dictionary_size=40_000, part_size=65_536),
        PackOptions(Codec.GOMPRESSO_BIT, level=8, dependency_elimination=True),
        PackOptions(),
    )
    seen = {}
    for number, options in enumerate(each, 1):
        seen.update(_pack_generation(archive, root / f"{number}", number, options))
    write_manifest(archive, seen, "A dictionary of two blocks, which parts of three segments use.")
    write_words(archive, seen, "identifiers")


def _text(rng: random.Random, size: int) -> bytes:
    pairs = [word + separator for word in _WORDS for separator in _SEPARATORS]
    lines = [b"".join(rng.choices(pairs, k=rng.randint(1, 20))) for _ in range(60)]
    text = b""
    while len(text) < size:
        text += rng.choice(lines)
    return text[:size]


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
    blocks: list[bytes] = []
    contents: dict[bytes, bytes] = {}
    for codec in (Codec.GOMPRESSO_BYTE, Codec.GOMPRESSO_BIT):
        for group_size_log2 in (2, 3, 4, 5):
            for elimination in (True, False):
                decoded = make_sequences(codec, group_size_log2, elimination, rng)
                content = decoded.expand(BLOCK_SIZE)
                payload = build_byte(decoded) if codec is Codec.GOMPRESSO_BYTE else build_bit(decoded, rng)
                name = f"{codec.label}-{1 << group_size_log2}{'' if elimination else '-dependent'}".encode()
                builder.add_file(name, len(content), len(blocks) * BLOCK_SIZE)
                blocks.append(build_block(codec, payload, content).data)
                contents[name] = content
    one_symbol = b"a" * BLOCK_SIZE
    payload = build_bit(DecodedPayload(True, 2, one_symbol_sequences(), b"a"), rng)
    builder.add_file(b"one-symbol", BLOCK_SIZE, len(blocks) * BLOCK_SIZE)
    blocks.append(build_block(Codec.GOMPRESSO_BIT, payload, one_symbol).data)
    contents[b"one-symbol"] = one_symbol
    text = b"to be or not to be\n"
    ino = builder.add_file(b"text", len(text), len(blocks) * BLOCK_SIZE)
    builder.add_file(b"part-of-text", 5, len(blocks) * BLOCK_SIZE + 3)
    blocks.append(build_block(Codec.STORED, text, text).data)
    size = (len(blocks) - 1) * BLOCK_SIZE + len(text)
    builder.parts.append(StoredPart(size, blocks, kind=PartKind.DATA))
    contents |= {b"text": text, b"part-of-text": text[3:8]}
    builder.add_entry(b"socket", stat.S_IFSOCK | 0o600)
    builder.sections["unknown"] = [(build_block(Codec.STORED, b"ignored", b"ignored").data, 7)]
    binary = " UNION ".join(f"SELECT {number}" for number in range(2, ino))
    builder.statements.append(f"INSERT INTO binary_file {binary} UNION SELECT {ino + 1}")
    archive.write_bytes(builder.build())
    title = "Written by hand: all groups, random codes, an unknown section and an unknown fact."
    write_manifest(archive, foreign_entries(contents), title)
    archive.with_suffix(".wordcount").write_bytes(b"be\t2\nto\t2\nnot\t1\nor\t1\n")


def foreign_entries(contents: dict[bytes, bytes]) -> dict[bytes, Seen]:
    """Returns the listing that `contents` should have. Inode numbers, and thus times, ascend in their order."""
    time_ns = 1_500_000_000_000_000_000
    names = [*contents, b"socket"]
    seen = {b"": Seen(stat.S_IFDIR | 0o755, 0, 0, time_ns, 0, None, None, (), b"")}
    for ino, name in enumerate(names, 2):
        mode = stat.S_IFSOCK | 0o600 if name == b"socket" else stat.S_IFREG | 0o644
        seen[name] = Seen(mode, 0, 0, time_ns + ino, 0, None, contents.get(name), (), name)
    return seen


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


MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "tree": make_tree,
    "parts": make_parts,
    "generations": make_generations,
    "history": make_history,
    "composed": make_composed,
    "large-blocks": make_large_blocks,
    "long-word": make_long_word,
    "nothing": make_nothing,
    "dictionary": make_dictionary,
    "foreign": make_foreign,
}

if __name__ == "__main__":
    make_missing()
