"""A tree of files that are hard to search, and command lines that search it."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

WORDS = ["return", "struct", "int", "suspend", "SUSPEND", "Foo", "foo", "bar", "foobar", "_x", "x1", "été", "Straße"]
WORDS += ["ΣΊΣΥΦΟΣ", "кот", "Kelvin", "\u212a", "\u017fun"]

_LARGE_SIZE = 17 << 20  # native/search/archive_search.cpp: above kLargeFile


def make_tree(root: Path) -> None:
    """Writes the files."""
    generator = random.Random(19)

    def line() -> str:
        words = generator.choices(WORDS, k=generator.randrange(9))
        return generator.choice(["", "  ", "\t"]) + generator.choice([" ", ", ", "(", "_", "-"]).join(words)

    def lines(count: int) -> str:
        return "".join(line() + "\n" for _ in range(count))

    for directory in ("src/deep/er", "docs", ".hidden", "src-2"):
        (root / directory).mkdir(parents=True)
    for number in range(60):
        place = root / generator.choice(["src", "src/deep", "src/deep/er", "docs", ".hidden", "src-2"])
        (place / f"f{number}.{generator.choice('ch')}").write_text(lines(generator.randrange(40)))
    ascii_words = [word for word in WORDS if word.isascii()]
    (root / "large.txt").write_text(
        "".join(f"line {n} {' '.join(generator.choices(ascii_words, k=6))}\n" for n in range(30_000))
    )
    (root / "ascii.c").write_text("int main(void)\n{\n\treturn 0;\n}\n\n" * 9)
    (root / "last").write_text("foo\nbar foo")
    (root / "empty").write_text("")
    (root / "newlines").write_text("\n\n\nfoo\n\n")
    (root / "one-newline").write_text("\n")
    (root / "crlf").write_bytes(b"foo\r\nbar\r\n\r\nfoo bar\r\n")
    (root / "invalid").write_bytes(b"foo\xff\xfefoo\n\x80\nbar\xc3\n\xf0\x90foo\n\xed\xa0\x80 foo\n caf\xe9 foo\n")
    (root / "nul-first").write_bytes(b"foo\0bar\nfoo\n")
    (root / "bom-8").write_bytes(b"\xef\xbb\xbffoo\nbar\n")
    (root / "bom-16-le").write_bytes("\ufefffoo été\nbar \U0001d4b3 foo\n".encode("utf-16-le"))
    (root / "bom-16-be").write_bytes("\ufefffoo été\nbar \U0001d4b3 foo\n".encode("utf-16-be") + b"\xd8")
    (root / "z-long-lines").write_text(("foo " * 30_000 + "\n") * 2 + "bar" * 50_000 + "foo\n")
    (root / "aaa").write_text("aaaaaaaaaaaa\naaab\nab\n" * 3)
    (root / "dates.log").write_text("".join(f"2024-0{n % 9 + 1}-1{n % 10} GET /x/{n}.html 200\n" for n in range(999)))
    (root / "spaces in name").write_text("foo\n")


def make_large_tree(root: Path) -> None:
    """Writes files that are searched in pieces, with few matches, and two small ones."""
    generator = random.Random(7)
    root.mkdir()
    chunk = "".join(f"{generator.randrange(10**9)} a line of text that is quiet\n" for _ in range(9000))
    needles = [f"needle {n} foo bar\nfoo after it\n" for n in range(60)]
    text = ""
    while len(text) < _LARGE_SIZE:
        text += chunk + (needles.pop() if needles else "foo\n")
    (root / "a-small").write_text("foo\n")
    (root / "lines").write_text(text)
    (root / "y-long-line").write_text(text[: 4 << 20] + "x" * (12 << 20) + " foo\n" + text[: 2 << 20])
    (root / "no-newline").write_text(text[:_LARGE_SIZE].rstrip("\n") + " foo")
    (root / "utf-16").write_bytes(("\ufeff" + text[: 9 << 20]).encode("utf-16-le"))
    (root / "z-small").write_text("foo\n")


def read_lines(name: str) -> list[str]:
    """Returns the lines of a file of this folder."""
    return Path(__file__).with_name(name).read_text().splitlines()


PATTERNS = read_lines("patterns.txt")
OPTIONS = [shlex.split(line) for line in read_lines("options.txt")]
