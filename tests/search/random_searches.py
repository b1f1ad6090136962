"""Random trees of awkward files, and random command lines that search them, for a comparison with ripgrep.

What ripgrep 13 is known to do wrong is left out: anchors and word boundaries in some alternatives only; -U with
--replace, which prints text after the match; -U with --vimgrep, which leaves out some empty matches; and -c with -o and
-v, which prints zeros.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

_WORDS = ["foo", "Foo", "bar", "foobar", "x1", "été", "Straße", "кот", "a", "aa", "_x", " ", "\t", "  two", "b-c"]
_WORDS += ["(z)", "e\u0301", "\U0001f469\u200d\U0001f469\u200d\U0001f467"]  # of several characters each
_NAMES = [b"a.c", b"b.h", b"c.py", b"z z", b"new\nline.txt", "été.md".encode(), b"caf\xe9.c", b".hid", b"M.C", b"y.rs"]
_DIRECTORIES = [b"", b"d1", b"d1/d2", b"d1/d2/d3", b".h", b"s p", b"D1"]
_LITERALS = ["foo", "Foo", "bar", "foobar", "été", "o", "a", "x1", "two", "-", "é", "ß", "1", " "]
_CLASSES = [".", r"\w", r"\d", r"\s", r"\W", r"\S", "[a-f]", "[^a-z]", r"\p{Lu}"]
_PATTERNS = ["foo|bar", "fo*", "x*", "", "o", "$", "^", "(f)(o+)", r"(?P<k>\w+) (?P<v>\w+)", r"^\s*", r"\s+"]
_REPLACEMENTS = ["", "X", "[$0]", "$1", "<$1$2>", "${1}a", "$1a", "$$", "$", "${x", "$k-$v", "a\nb", "\\1", " y"]

# Options that may be added to any command line, each with a likelihood.
_OPTIONS: list[tuple[float, list[list[str]]]] = [
    (0.1, [["-i"], ["-S"]]),
    (0.07, [["-x"]]),
    (0.12, [["-v"], ["-v"], ["-U"]]),
    (0.1, [["-a"]]),
    (0.05, [["-F"]]),
    (0.4, [["-n"]]),
    (0.1, [["-N"]]),
    (0.1, [["-H"], ["-I"]]),
    (0.2, [["--column"]]),
    (0.2, [["-o"]]),
    (0.12, [["--vimgrep"]]),
    (0.15, [["--trim"]]),
    (0.1, [["--heading"]]),
    (0.08, [["-0"]]),
    (0.3, [["-A1"], ["-A2"], ["-B1"], ["-B2"], ["-C1"], ["-C3"]]),
    (0.12, [["-m1"], ["-m2"], ["-m3"]]),
    (0.2, [["-M5"], ["-M20"], ["-M60"], ["-M200"]]),
    (0.06, [["--max-depth", "1"], ["--max-depth", "3"]]),
    (0.2, [["--color=always"]]),
    (0.12, [["-g", "*.c"], ["-g", "!*.c"], ["-g", "d1/**"], ["-g", "!d1"], ["-g", "*.{c,h}"], ["-g", "**/d2/*"]]),
    (0.1, [["-t", "c"], ["-t", "py"], ["-T", "c"], ["-t", "all"]]),
    (0.06, [["-E", "none"]]),
]
_OUTPUTS = [["-c"], ["--count-matches"], ["-l"], ["--files-without-match"], ["-q"], ["--json"], ["--json"]]


def make_random_tree(root: Path, generator: random.Random) -> None:
    """Writes files, of which some are empty, not UTF-8, UTF-16, binary or have very long lines; and symlinks."""
    for directory in _DIRECTORIES:
        (root / os.fsdecode(directory)).mkdir(parents=True, exist_ok=True)
        for name in generator.sample(_NAMES, 5):
            (root / os.fsdecode(directory) / os.fsdecode(name)).write_bytes(_content(generator))
    (root / "link").symlink_to("a.c")
    (root / "dlink").symlink_to("d1")


def _content(generator: random.Random) -> bytes:
    def line() -> str:
        words = generator.choices(_WORDS, k=generator.randrange(7))
        return generator.choice(["", "  ", "\t", " \v"]) + generator.choice([" ", ",", "", "-"]).join(words)

    end = generator.choice(["\n", "\n", "\r\n"])
    text = "".join(line() + end for _ in range(generator.randrange(20))).encode()
    changes: list[Callable[[], bytes]] = [
        lambda: text[:-1],
        lambda: text.replace(b"a", b"\xff", 2) + b"\xc3\nfoo \xf0\x90 foo\n",
        lambda: b"",
        # ripgrep first reads 3 bytes, and searches a line in them.
        lambda: b"foo bar\n" + text + b"foo\0bar\nfoo\nbar foo\n",
        lambda: text + b"foo " * 500 + b"bar\n" + text,
        lambda: b"\xef\xbb\xbf" + text,
        lambda: ("\ufeff" + text.decode()).encode("utf-16-le"),
    ]
    return generator.choice(changes)() if generator.random() < 0.5 else text


def random_search(generator: random.Random) -> list[str]:
    """Returns the arguments of a search, without those that say where."""
    arguments = list(generator.choice(_OUTPUTS)) if generator.random() < 0.3 else []
    for likelihood, choices in _OPTIONS:
        if generator.random() < likelihood:
            arguments += generator.choice(choices)
    if "-U" not in arguments and generator.random() < 0.3:
        arguments += ["-r", generator.choice(_REPLACEMENTS)]
    for known, left_out in (({"-v", "-o", "-c"}, "-o"), ({"-U", "--vimgrep"}, "--vimgrep")):
        if known <= set(arguments):
            arguments.remove(left_out)
    if generator.random() < 0.04:
        return ["--files", *(argument for argument in arguments if argument != "--json")]
    if generator.random() < 0.1:
        return [*arguments, "-w", "-e", generator.choice(["foo", "bar", "é", "two", "x1", "Foo|bar"])]
    for _ in range(generator.choice([1, 1, 1, 2])):
        arguments += ["-e", random_pattern(generator)]
    return arguments


def random_pattern(generator: random.Random) -> str:
    """Returns a pattern in ripgrep's syntax."""
    if generator.random() < 0.5:
        return generator.choice(_LITERALS + _PATTERNS)
    alternatives = [_sequence(generator, 2) for _ in range(generator.choice([1, 1, 2]))]
    return generator.choice(["", "^"]) + alternatives[0] if len(alternatives) == 1 else "|".join(alternatives)


def _sequence(generator: random.Random, depth: int) -> str:
    return "".join(_atom(generator, depth) for _ in range(generator.choice([1, 2])))


def _atom(generator: random.Random, depth: int) -> str:
    kind = generator.random()
    if kind < 0.2:
        return generator.choice(_CLASSES)
    if kind < 0.6 or depth == 0:
        return generator.choice(_LITERALS)
    if kind < 0.8:
        opening = generator.choice(["(", "(", "(?:", "(?i:"])
        return opening + "|".join(_sequence(generator, depth - 1) for _ in range(generator.choice([1, 2]))) + ")"
    return f"(?:{generator.choice(_LITERALS)})" + generator.choice(["*", "+", "?", "*?", "{2}", "{1,3}"])
