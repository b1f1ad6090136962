"""Makes golden archives of format version 2: `PYTHONPATH=tests python tests/conformance/make_golden_2.py`, as root.

Makes only those archives, with manifests, that tests/data/golden/v2 lacks: see make_golden.py.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import make_golden as version_1
from manifests import GOLDEN
from tree_helpers import list_directory

from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive

# Words of several byte lengths, and separators of one byte, several bytes, and none.
_WORDS = [b"head", b"of", b"a", b"part_1", "\u03bb\u00e9".encode(), b"x" * 300, b"don", b"t", b"return"]
_SEPARATORS = [b" ", b" ", b" ", b", ", b"->", b"\n", b"\n\n    ", b"'", b"=" * 70]


def make_tree(archive: Path, root: Path) -> None:
    """Packs all kinds of entries with the default options."""
    rng = random.Random("golden tree")
    version_1.write_contents(root / "contents", rng)
    version_1.write_names(root / "names")
    version_1.write_links(root / "links")
    version_1.write_sparse(root / "sparse", rng)
    version_1.write_attributes(root / "attributes")
    version_1.settle_times(root)
    pack_archive([open_source(root)], archive, PackOptions(), engine=select_engine("cpu"))
    seen = list_directory(root)
    version_1.write_manifest(archive, seen, "Blocks of 64 KiB, gompresso-tadoc, words are identifiers.")
    sparse = tuple(path for path in seen if path.startswith(b"sparse/"))
    version_1.write_words(archive, seen, "identifiers", left_out=sparse)


def make_parts(archive: Path, root: Path) -> None:
    """Packs text in many small parts, so that words are local and global, files span parts, and parts lack heads."""
    rng = random.Random("golden parts")
    root.mkdir()
    for number, size in enumerate((40_000, 1, 9000, 300, 25_000)):
        (root / f"text-{number}").write_bytes(_text(rng, size))
    (root / "rare").write_bytes(" ".join(f"only{rng.getrandbits(40):x}" for _ in range(1500)).encode())
    (root / "short").write_bytes(b"no grammar pays here")
    (root / "noise").write_bytes(b"\0" + rng.randbytes(20_000))
    version_1.settle_times(root)
    options = PackOptions(level=9, block_size=16 << 10, words="whitespace", part_size=20_000)
    pack_archive([open_source(root)], archive, options, engine=select_engine("cpu"))
    seen = list_directory(root)
    version_1.write_manifest(archive, seen, "Parts of 20,000 bytes, blocks of 16 KiB, words between whitespace.")
    version_1.write_words(archive, seen, "whitespace")


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
        PackOptions(Codec.GOMPRESSO_BYTE, level=9, dependency_elimination=True, grammar_builder="sequitur"),
        PackOptions(Codec.GOMPRESSO_BIT, dependency_elimination=True),
        PackOptions(Codec.STORED, stats=False),
    )
    engine = select_engine("cpu")
    seen = {}
    for number, options in enumerate(each, 1):
        folder = root / f"{number}"
        version_1.settle_times(folder, version_1.TIME_NS + number)
        if number == 1:
            pack_archive([open_source(folder)], archive, options, engine=engine)
        else:
            add_to_archive(archive, [open_source(folder)], options, engine=engine)
        seen.update(list_directory(folder))
        if number > 1 and b"replaced-too" in seen:
            seen[b"replaced-too"] = seen[b"replaced-too"]._replace(inode=b"replaced-too")
        suffix = "" if number == len(each) else f"-{number}"
        version_1.write_manifest(archive, seen, f"Generation {number} of {len(each)}.", suffix=suffix)
    version_1.write_words(archive, seen, "letters")


def make_large_blocks(archive: Path, root: Path) -> None:
    """Uses the largest blocks, with and without grammars, and a part of several blocks."""
    root.mkdir()
    rng = random.Random("golden large blocks")
    (root / "zeros").write_bytes(bytes((1 << 20) - 1000))
    (root / "text").write_bytes(_text(rng, 1000) * 1400)
    version_1.settle_times(root)
    options = PackOptions(level=1, block_size=1 << 20, part_size=1 << 22)
    pack_archive([open_source(root)], archive, options, engine=select_engine("cpu"))
    seen = list_directory(root)
    version_1.write_manifest(archive, seen, "Blocks of 1 MiB, one part of text.")
    version_1.write_words(archive, seen, "identifiers")


def make_long_word(archive: Path, root: Path) -> None:
    """Packs a word that is too long for a grammar."""
    root.mkdir()
    (root / "text").write_bytes(b"ab" * 40_000 + b" and a short one")
    version_1.settle_times(root)
    pack_archive([open_source(root)], archive, PackOptions(), engine=select_engine("cpu"))
    seen = list_directory(root)
    version_1.write_manifest(archive, seen, "A part of text without a head.")
    version_1.write_words(archive, seen, "identifiers")


def make_nothing(archive: Path, root: Path) -> None:
    """Packs an empty directory."""
    root.mkdir()
    version_1.settle_times(root)
    pack_archive([open_source(root)], archive, PackOptions(), engine=select_engine("cpu"))
    version_1.write_manifest(archive, list_directory(root), "An empty directory.")


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
        PackOptions(stats=False, block_size=16 << 10, dictionary_size=40_000, part_size=65_536),
        PackOptions(stats=False, level=9, dependency_elimination=True),
        PackOptions(),
    )
    engine = select_engine("cpu")
    seen = {}
    for number, options in enumerate(each, 1):
        folder = root / f"{number}"
        version_1.settle_times(folder, version_1.TIME_NS + number)
        if number == 1:
            pack_archive([open_source(folder)], archive, options, engine=engine)
        else:
            add_to_archive(archive, [open_source(folder)], options, engine=engine)
        seen.update(list_directory(folder))
    version_1.write_manifest(archive, seen, "A dictionary of two blocks, which parts of three segments use.")
    version_1.write_words(archive, seen, "identifiers")


def _text(rng: random.Random, size: int) -> bytes:
    pairs = [word + separator for word in _WORDS for separator in _SEPARATORS]
    lines = [b"".join(rng.choices(pairs, k=rng.randint(1, 20))) for _ in range(60)]
    text = b""
    while len(text) < size:
        text += rng.choice(lines)
    return text[:size]


MAKERS: dict[str, Callable[[Path, Path], None]] = {
    "tree": make_tree,
    "parts": make_parts,
    "generations": make_generations,
    "large-blocks": make_large_blocks,
    "long-word": make_long_word,
    "nothing": make_nothing,
    "dictionary": make_dictionary,
}

if __name__ == "__main__":
    version_1.make_missing(MAKERS, GOLDEN / "v2")
