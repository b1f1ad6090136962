"""Texts that a compressor of words finds hard: long tokens and lines, no words, only words, odd encodings.

Everything is drawn from a random.Random, and knows nothing of how gompfs stores text.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Callable

# Sizes that the documents of the format name: of words, separators, expansions, numbers of words, blocks and heads.
LIMITS = (255, 256, 4_096, 8_192, 16_384, 32_768, 65_534, 65_535, 65_536, 131_072)
_PROSE = (
    b"the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which "
    b"one you were her all she there would their we him been has when who will more no if out so said what up its about"
).split()
_SPACES = b" \t\n\v\f\r"
_HAN = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏\uff0c。「」のはをがアイウ한글"
_ODD = (
    [chr(point) for point in range(0x300, 0x340)]  # combining marks
    + ["\u00a0", "\u0085", "\u2028", "\u2029", "\u3000", "\u200d", "\ufeff", "\u00ad"]  # spaces beyond ASCII, no width
    + ["\u0130", "\u0131", "\u017f", "\u212a", "\u1e9e", "\ufb01", "\u2019", "\u02bc"]  # odd cases, apostrophes
    + ["\U0001f469", "\U0001f3fd", "\U000e0041", "\U0010ffff", "\U00010000", "\ud7ff", "\ue000", "\uffff"]
)
_INVALID = (b"\xff", b"\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe5\xa4", b"\x80", b"\xf0\x9f")
Token = Callable[[random.Random, int], bytes]
Text = Callable[[random.Random, int, list[bytes]], bytes]


def near_a_limit(rng: random.Random, largest: int) -> int:
    """Returns a size that is at, next to, or somewhat above one of the limits up to `largest`; at least 1."""
    limit = rng.choice([limit for limit in LIMITS if limit <= largest])
    if limit > 60_000 and rng.random() < 0.3:
        return limit + rng.choice((4_464, 10_000, limit))
    return max(1, limit + rng.randint(-2, 2))


def _of(letters: bytes) -> Token:
    return lambda rng, size: bytes(rng.choices(letters, k=size))


def _one_byte(rng: random.Random, size: int) -> bytes:
    return bytes([rng.choice(b"=-#_*.aA0'\"/\\\x01\x7f\x80\xff")]) * size


def _spaces(rng: random.Random, size: int) -> bytes:
    return bytes([rng.choice(b" \t \v\f\r")]) * size


def _line_ends(rng: random.Random, size: int) -> bytes:
    return (rng.choice((b"\n", b"\r\n", b"\n\r", b" \n")) * size)[:size]


def _mixed_separators(rng: random.Random, size: int) -> bytes:
    return bytes(rng.choices(b' \t\n.,;:!?()[]{}<>/|&^%$#@~`+=-*\\"', k=size))


def _repeated(rng: random.Random, size: int) -> bytes:
    """A period of few bytes, as long runs of a pattern have."""
    period = bytes(rng.choices(b"ab01=_-", k=rng.randint(2, 9)))
    return (period * (size // len(period) + 1))[:size]


def _encoded(characters: str) -> Token:
    def make(rng: random.Random, size: int) -> bytes:
        """As many whole characters as there is room for, then letters."""
        made = "".join(rng.choices(characters, k=size // 2 + 1)).encode()[:size]
        made = made.decode("utf-8", "ignore").encode()
        return made + b"x" * (size - len(made))

    return make


def _all_planes(rng: random.Random, size: int) -> bytes:
    points = (rng.choice((0x7F, 0x7FF, 0xD7FF, 0x10FFFF)) for _ in range(size // 2 + 1))
    characters = "".join(chr(point) for point in (rng.randint(0x21, point) for point in points) if point >> 11 != 27)
    return _encoded(characters)(rng, size)


def _invalid(rng: random.Random, size: int) -> bytes:
    return (b"".join(rng.choices((*_INVALID, b"a", "é".encode()), k=size // 2 + 1)) + b"\xff" * size)[:size]


def _high_bytes(rng: random.Random, size: int) -> bytes:
    return bytes(rng.choices(range(0x80, 0x100), k=size))


def _base64(rng: random.Random, size: int) -> bytes:
    return base64.b64encode(rng.randbytes(size))[:size]


TOKENS: dict[str, Token] = {
    "one byte": _one_byte,
    "spaces": _spaces,
    "line ends": _line_ends,
    "mixed separators": _mixed_separators,
    "letters": _of(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "digits": _of(b"0123456789"),
    "hex": _of(b"0123456789abcdef"),
    "sequence": _of(b"ACGT"),
    "base64": _base64,
    "apostrophes": _of(b"ab'"),
    "repeated": _repeated,
    "han": _encoded(_HAN),
    "odd characters": _encoded("".join(_ODD)),
    "all planes": _all_planes,
    "invalid": _invalid,
    "high bytes": _high_bytes,
}


def _prose(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    words = rng.choices(_PROSE, k=size // 4 + 1)
    ends = rng.choices((b" ", b" ", b" ", b" ", b", ", b".\n", b"\n\n"), k=len(words))
    return b"".join(itertools.chain.from_iterable(zip(words, ends, strict=True)))[:size]


def _tokens_in_prose(rng: random.Random, size: int, tokens: list[bytes]) -> bytes:
    """Tokens between words, so that each stands for itself under all rules of words."""
    pieces = [_prose(rng, size // 4, []) for _ in range(rng.randint(1, 4))]
    for _ in range(rng.randint(1, 3)):
        pieces.append(rng.choice(tokens))
        pieces.append(rng.choice((b" x ", b"\n", b"=", b"a", b". ", b"")))
    rng.shuffle(pieces)
    return b"".join(pieces)


def _token_lines(rng: random.Random, _size: int, tokens: list[bytes]) -> bytes:
    token = rng.choice(tokens)
    count = min(rng.randint(2, 20), 200_000 // len(token) + 2)
    return b"".join(b"%s %s%s" % (rng.choice(_PROSE), token, rng.choice((b"\n", b" ok\n"))) for _ in range(count))


def _token_alone(rng: random.Random, _size: int, tokens: list[bytes]) -> bytes:
    return rng.choice(tokens)


def _token_cut(rng: random.Random, _size: int, tokens: list[bytes]) -> bytes:
    """The beginning of a token, one byte more or less, or with another byte in it."""
    token = rng.choice(tokens)
    return rng.choice((token[:-1], token[1:], token + token[-1:], token + b"x" + token[:1], b"x " + token[:-1] + b" y"))


def _alternating(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    """Words and separators of one byte or more."""
    word, separator = rng.choice((b"a", b"0", b"ab", b"\xff")), rng.choice((b".", b" ", b"\n", b"--", b"\t"))
    if rng.random() < 0.5:
        return ((word + separator) * (size // 2 + 1))[:size]
    return b"".join(rng.choices((word, separator, word + separator), k=size // 2))


def _all_different(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    width, end = rng.randint(1, 8), rng.choice((b" ", b"\n", b", "))
    return b"".join(b"%0*x" % (width, number) + end for number in range(size // (width + 2) + 1))[:size]


def _words_of_one_byte(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    return bytes(itertools.chain.from_iterable((rng.randint(0x21, 0xFF), 0x20) for _ in range(size // 2)))


def _nested(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    """Repetitions of repetitions: rules of many levels, and expansions of all sizes."""
    before, text = rng.choice(((b"a ", b"b "), (b"x", b"x y\n"), (b"0 1 ", b"1 0 ")))
    while len(text) < size:
        before, text = text, rng.choice((text + before, text + text, text + b"z" + text))
    return text[:size]


def _chain(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    """Prefixes of a row of words: each rule has one word more than another rule."""
    words = [b"w%d" % number for number in range(rng.randint(20, 80))]
    lines = itertools.chain.from_iterable((b" ".join(words[:end]),) * 2 for end in range(2, len(words) + 1))
    return b"\n".join(lines)[: 2 * size]


def _long_expansion(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    """A passage twice, of about the largest size of an expansion."""
    passage = _all_different(rng, max(2, min(size, 65_535) + rng.randint(-2, 2)), [])
    return passage + rng.choice((b"", b"\n", b" end ")) + passage


def _script(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    names = [b"%c%d" % (rng.randint(97, 122), number) for number in range(30)]
    forms = (
        b"function %s(%s){return %s};",
        b"var %s=%s,%s;",
        b"%s&&(%s=!%s);",
        b'%s["%s"]||%s++,',
        b"for(;%s<%s;)%s--;",
    )
    count = size // 18 + 1
    return b"".join(rng.choice(forms) % tuple(rng.choices(names, k=3)) for _ in range(count))[:size]


def _wrapped_sequence(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    letters, width = bytes(rng.choices(b"ACGTN", k=size)), rng.choice((60, 70, 80, size + 1))
    lines = (letters[start : start + width] for start in range(0, size, width))
    return b">chr1\n" + b"\n".join(lines) + b"\n"


def _wrapped_base64(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    return b"-----BEGIN-----\n" + base64.encodebytes(rng.randbytes(size * 3 // 4)) + b"-----END-----\n"


def _wide(rng: random.Random, size: int, tokens: list[bytes]) -> bytes:
    """UTF-16 or UTF-32, with and without a byte order mark."""
    text = _prose(rng, size // 2, tokens).decode() + "".join(rng.choices(_HAN, k=20))
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32")), "surrogatepass")


def _marked(rng: random.Random, size: int, tokens: list[bytes]) -> bytes:
    return b"\xef\xbb\xbf" + _tokens_in_prose(rng, size, tokens)


def _log(rng: random.Random, size: int, tokens: list[bytes]) -> bytes:
    """Lines of a log, some of them huge."""
    lines, total = [], 0
    while total < size:
        line = b"2026-11-%02d %s [%d] %s\n" % (
            rng.randint(1, 30),
            rng.choice((b"INFO", b"WARN", b"ERROR")),
            rng.randrange(10**6),
            rng.choice(tokens)[:200_000] if rng.random() < 0.05 else _prose(rng, rng.randint(5, 80), []).strip(),
        )
        lines.append(line)
        total += len(line)
    return b"".join(lines)


def _numbers(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    end = rng.choice((b"\n", b"\r\n", b";"))
    rows = (
        b",".join(b"%.*f" % (rng.randint(0, 6), rng.uniform(-1e6, 1e6)) for _ in range(8)) for _ in range(size // 80)
    )
    return end.join(rows)


def _json_lines(rng: random.Random, size: int, tokens: list[bytes]) -> bytes:
    token = rng.choice(tokens)[:70_000].decode("utf-8", "replace")
    lines = [{"id": number, "text": _prose(rng, 40, []).decode()} for number in range(size // 70)]
    text = "\n".join(json.dumps(line) for line in [*lines, {"data": token}])
    return text.encode() if rng.random() < 0.5 else text.replace("\n", ",").encode()


def _with_nul(rng: random.Random, size: int, tokens: list[bytes]) -> bytes:
    """A NUL about where a file stops being text: in the first 8,192 bytes."""
    text = bytearray(_prose(rng, max(size, 9_000), []) + rng.choice(tokens)[:1_000])
    text[rng.choice((0, 8_190, 8_191, 8_192, 8_193, len(text) - 1))] = 0
    return bytes(text)


def _nuls_late(rng: random.Random, size: int, tokens: list[bytes]) -> bytes:
    return _prose(rng, 8_192, []) + rng.choice(tokens) + bytes(rng.choice((1, size))) + _prose(rng, size // 2, [])


def _noise(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    return rng.randbytes(size).replace(b"\0", b"\1")


def _blanks(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    return bytes(rng.choices(_SPACES, k=size))


def _control(rng: random.Random, size: int, _: list[bytes]) -> bytes:
    return bytes(rng.choices(range(1, 33), k=size))


TEXTS: dict[str, Text] = {
    "prose": _prose,
    "tokens in prose": _tokens_in_prose,
    "lines of a token": _token_lines,
    "a token alone": _token_alone,
    "a token that is cut": _token_cut,
    "alternating": _alternating,
    "all different": _all_different,
    "words of a byte": _words_of_one_byte,
    "nested": _nested,
    "chain": _chain,
    "long expansion": _long_expansion,
    "script": _script,
    "wrapped sequence": _wrapped_sequence,
    "wrapped base64": _wrapped_base64,
    "wide characters": _wide,
    "marked UTF-8": _marked,
    "log": _log,
    "numbers": _numbers,
    "JSON": _json_lines,
    "NUL at the border": _with_nul,
    "NULs late": _nuls_late,
    "noise": _noise,
    "blanks": _blanks,
    "control characters": _control,
}
