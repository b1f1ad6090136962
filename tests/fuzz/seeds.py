"""The archives that are mutated: small ones of all codecs, block sizes, grammars, word rules and kinds of entries.

They are packed from tars made in memory, so that one release makes the same bytes everywhere. The golden archives are
seeds too.
"""

from __future__ import annotations

import functools
import io
import random
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from gompfs.codec import Codec
from gompfs.engine import select_engine
from gompfs.options import PackOptions
from gompfs.pack import add_to_archive, open_source, pack_archive, remove_from_archive

_TESTS = Path(__file__).parents[1]
_TEXT = (_TESTS.parent / "examples" / "corpus" / "carroll" / "alice29.txt").read_bytes()
_TIME = 1_500_000_000
_LETTERS = "It\u2019s \u201cna\u00efve\u201d, isn't it? \u03a3 x\u00b2 \u65e5\u672c 42.\n".encode() + b"\xff'd don't "
Files = dict[str, bytes]


def _texts(seed: int) -> Files:
    rng = random.Random(seed)
    start = rng.randrange(100_000)
    pieces = [_TEXT[start + 300 * n : start + 300 * (n + 1)] for n in range(12)]
    return {
        "text/one": _TEXT[start : start + 7000],
        "text/repeated": b"".join(rng.choices(pieces, k=100)),
        "text/short": b"to be or not to be",
        "noise": rng.randbytes(3000) + b"\0",
        "empty": b"",
        "runs": bytes(20_000) + b"a" * 700 + bytes(range(256)),
    }


def _odd_names() -> Files:
    names = [
        "x" * 255,
        "new\nline",
        "tab\there",
        "back\\slash",
        "-rf",
        " ",
        "a/b/c/d/e/f/g/h/leaf",
        "stats",
        "z/stats/wordcount",
    ]
    return {name: f"the words of file {number}\n".encode() * (number + 1) for number, name in enumerate(names)}


def _many_files() -> Files:
    return {f"d{n % 7}/e{n % 3}/f{n:03}": b"%d words of a file of many " % n * (n % 9) for n in range(200)}


def _tar(target: Path, files: Files, *, with_all_kinds: bool = False) -> Path:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        made: set[str] = set()
        for name, content in files.items():
            for parent in reversed(Path(name).parents[:-1]):
                if str(parent) not in made:
                    tar.addfile(_member(str(parent), tarfile.DIRTYPE, mode=0o755))
                    made.add(str(parent))
            member = _member(name)
            member.size = len(content)
            if with_all_kinds:
                member.pax_headers = {"SCHILY.xattr.user.comment": f"of {len(content)} bytes"}
            tar.addfile(member, io.BytesIO(content))
        if with_all_kinds:
            for name, kind, link in (
                ("link", tarfile.SYMTYPE, "text/one"),
                ("broken", tarfile.SYMTYPE, "nowhere"),
                ("to-dir", tarfile.SYMTYPE, "text"),
                ("loop", tarfile.SYMTYPE, "loop"),
                ("hard", tarfile.LNKTYPE, "text/one"),
                ("fifo", tarfile.FIFOTYPE, ""),
                ("device", tarfile.CHRTYPE, ""),
                ("disk", tarfile.BLKTYPE, ""),
                ("folder", tarfile.DIRTYPE, ""),
            ):
                member = _member(name, kind, mode=0o4750 if name == "folder" else 0o640)
                member.linkname, member.devmajor, member.devminor, member.uid = link, 1, 3, 1000
                tar.addfile(member)
    return target


def _member(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o644) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime = kind, mode, _TIME
    return member


def _pack(target: Path, files: Files, *, with_all_kinds: bool = False, **options: object) -> None:
    tar = _tar(target.with_suffix(".tar"), files, with_all_kinds=with_all_kinds)
    pack_archive([open_source(tar)], target, _options(options), engine=select_engine("cpu", 1))


def _add(target: Path, files: Files, **options: object) -> None:
    tar = _tar(target.with_suffix(".more.tar"), files)
    add_to_archive(target, [open_source(tar)], _options(options), engine=select_engine("cpu", 1))


def _options(options: dict[str, object]) -> PackOptions:
    return PackOptions(**{"words": "whitespace", **options})  # type: ignore[arg-type]


_BYTE = {"codec": Codec.GOMPRESSO_BYTE, "level": 8, "dependency_elimination": True}
_BIT = {"codec": Codec.GOMPRESSO_BIT, "level": 8, "dependency_elimination": True}
_QUICK = {"codec": Codec.GOMPRESSO_BIT, "level": 1}
_STORED = {"codec": Codec.STORED}
_SMALL, _MIDDLE = 16 << 10, 64 << 10
_TADOC = {"words": "identifiers", "codec": Codec.GOMPRESSO_TADOC, "block_size": _SMALL}


def _generations(target: Path) -> None:
    _pack(target, _texts(3), block_size=_SMALL, **_BYTE)
    _add(target, {"text/one": b"another one", "text/more": _TEXT[:3000], "noise": b"now text"}, **_BIT)
    _add(target, {"text/more": b"and more of it " * 40, "new/file": _TEXT[9000:12000]}, **_STORED)


def _parts_of_generations(target: Path) -> None:
    _pack(target, _texts(9), block_size=_SMALL, **_BIT, part_size=9000, with_all_kinds=True)
    _add(target, {"text/one": b"another one", "text/more": _TEXT[:30_000]}, **_BYTE, part_size=_SMALL)
    _add(target, {"noise": b"now text", "new/file": _TEXT[9000:12000]}, **_STORED)


def _text_parts_of_generations(target: Path) -> None:
    _pack(target, _many_files(), **_TADOC, part_size=2000)
    _add(target, _texts(13), **_TADOC)


def _dictionary_of_generations(target: Path) -> None:
    _pack(target, _texts(15), block_size=_SMALL, **_QUICK, part_size=9000, dictionary_size=10_000)
    _add(target, {"text/one": b"another one", "text/more": _TEXT[:30_000]}, **_TADOC)


def _small_adds(target: Path) -> None:
    """Indexes of changes, one of which removes entries."""
    _pack(target, _many_files(), **_TADOC)
    _add(target, {"d1/e1/f001": b"other words", "new/file": b"more words " * 30}, **_TADOC)
    remove_from_archive(target, ["d2/e0", "d3/e1/f010"], comment="less")
    _add(target, {"d2/e0/f000": b"back again"}, **_TADOC)


def _packed(files: Callable[[], Files], **options: object) -> Callable[[Path], None]:
    return lambda target: _pack(target, files(), **options)  # type: ignore[arg-type]


_MAKERS: dict[str, Callable[[Path], None]] = {
    "bit": _packed(lambda: _texts(1), **_BIT, block_size=_SMALL, with_all_kinds=True),
    "byte": _packed(lambda: _texts(2), **_BYTE, block_size=_SMALL),
    "bit-64k": _packed(lambda: _texts(5), **_QUICK, block_size=_MIDDLE),
    "letters": _packed(lambda: {**_texts(6), "l": _LETTERS * 90}, **_BIT, block_size=_SMALL, words="letters"),
    "stored": _packed(lambda: _texts(7), **_STORED, block_size=_SMALL),
    "names": _packed(_odd_names, **_BYTE, block_size=_SMALL, with_all_kinds=False),
    "many": _packed(_many_files, **_BIT, block_size=_SMALL),
    "generations": _generations,
    "parts": _packed(lambda: _texts(10), **_BIT, block_size=_SMALL, part_size=_SMALL + 77),
    "parts-of-generations": _parts_of_generations,
    "one-part": _packed(lambda: _texts(11), **_BYTE, block_size=_MIDDLE, words="letters"),
    "text-parts": _packed(lambda: _texts(12), **_TADOC, part_size=9000),
    "text-parts-of-generations": _text_parts_of_generations,
    "dictionary": _packed(lambda: _texts(14), **_BIT, block_size=_SMALL, dictionary_size=4096),
    "dictionary-of-generations": _dictionary_of_generations,
    "small-adds": _small_adds,
    "nothing": _packed(dict, block_size=_SMALL),
}
_GOLDEN = ("tree", "parts", "generations", "history", "foreign")
SEEDS = (*_MAKERS, *(f"golden/{name}" for name in _GOLDEN))


@functools.cache
def read_seed(name: str) -> bytes:
    """Returns the bytes of a seed archive."""
    if name.startswith("golden/"):
        return (_TESTS / "data" / f"{name}.gomp").read_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, f"{name}.gomp")
        _MAKERS[name](target)
        return target.read_bytes()
