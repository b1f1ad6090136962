"""The option --colors of `gompfs grep`: colors and styles as escape sequences of terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gompfs.errors import OptionError

if TYPE_CHECKING:
    from gompfs.search import Colors

_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_KINDS = ("path", "line", "column", "match")
_MAX_BYTE = 255
_DEFAULTS = ("path:fg:magenta", "line:fg:green", "match:fg:red", "match:style:bold")


@dataclass
class _Style:
    """How one kind of text is shown."""

    fg: str = ""
    bg: str = ""
    bold: bool = False
    underline: bool = False
    intense: bool = False

    def sequence(self) -> bytes:
        """Returns the escape sequence; it is empty if nothing is set."""
        codes = ["1"] * self.bold + ["4"] * self.underline
        codes += [self._code(3, self.fg)] * bool(self.fg) + [self._code(4, self.bg)] * bool(self.bg)
        return b"".join(f"\x1b[{code}m".encode() for code in codes)

    def _code(self, ground: int, color: str) -> str:
        if color not in _COLORS:
            return f"{ground}8;{color}"
        number = _COLORS.index(color)
        return f"{ground}8;5;{8 + number}" if self.intense else f"{ground}{number}"


def colors_of(specifications: Iterable[str]) -> Colors:
    """Returns the colors that --colors asks for, on top of the default ones. Raises OptionError."""
    from gompfs.search import Colors

    styles = {kind: _Style() for kind in _KINDS}
    for specification in (*_DEFAULTS, *specifications):
        _apply(styles, specification)
    path, line, column, match = (style.sequence() for style in styles.values())
    reset = b"\x1b[0m"
    return Colors(reset + path, reset + line, reset + column, reset + match if match else b"")


def _apply(styles: dict[str, _Style], specification: str) -> None:
    kind, _, rest = specification.lower().partition(":")
    attribute, _, value = rest.partition(":")
    style = styles.get(kind)
    if style is not None and rest == "none":
        styles[kind] = _Style()
    elif style is not None and attribute in ("fg", "bg") and _color_of(value):
        setattr(style, attribute, _color_of(value))
    elif style is not None and attribute == "style" and value.removeprefix("no") in ("bold", "intense", "underline"):
        setattr(style, value.removeprefix("no"), not value.startswith("no"))
    else:
        raise OptionError(
            f"--colors: {specification!r} is not path, line, column or match, then :fg:COLOR, :bg:COLOR, :style:bold, "
            ":style:intense, :style:underline or :none"
        )


def _color_of(value: str) -> str:
    """Returns a color's name, or its numbers in an escape sequence; nothing if it is none."""
    if value in _COLORS:
        return value
    if not re.fullmatch(r"(0x[0-9a-f]+|[0-9]+)(,(0x[0-9a-f]+|[0-9]+)){0,2}", value):
        return ""
    numbers = [int(number, 16 if number.startswith("0x") else 10) for number in value.split(",")]
    kinds = {1: "5", 3: "2"}
    if len(numbers) not in kinds or max(numbers) > _MAX_BYTE:
        return ""
    return ";".join([kinds[len(numbers)], *map(str, numbers)])
