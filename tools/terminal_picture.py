"""Draws commands and their output as an SVG picture of a terminal, without fonts or scripts from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

_LINE, _MARGIN, _BAR = 19, 18, 34
_COLUMN = 8.2  # width of a character in the widest of the fonts
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_BACKGROUND, _BAR_COLOUR, _TEXT, _COMMAND, _PROMPT = "#1b1f27", "#2a303b", "#c5ccd8", "#ffffff", "#7bd88f"
_BUTTONS = ("#ff5f57", "#febc2e", "#28c840")


def terminal_picture(steps: Iterable[tuple[str, str]]) -> str:
    """Returns an SVG of a terminal that shows pairs of a command and its output."""
    lines: list[str] = []
    num_columns = 0
    for command, output in steps:
        shown = [line.expandtabs(8) for line in output.splitlines()]
        num_columns = max(num_columns, *map(len, [f"$ {command}", *shown]))
        lines.append(f'<tspan fill="{_PROMPT}">$ </tspan><tspan fill="{_COMMAND}">{escape(command)}</tspan>')
        lines += map(escape, shown)
    width = round(2 * _MARGIN + _COLUMN * num_columns)
    height = _BAR + _LINE * len(lines) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{_BACKGROUND}"/>',
        f'<path d="M0 26V8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v18z" fill="{_BAR_COLOUR}"/>',
    ]
    parts += [f'<circle cx="{18 + 20 * i}" cy="13" r="6" fill="{colour}"/>' for i, colour in enumerate(_BUTTONS)]
    parts.append(f'<g font-family="{_FONT}" font-size="13.5" fill="{_TEXT}" xml:space="preserve">')
    parts += [
        f'<text x="{_MARGIN}" y="{_BAR + _LINE * (number + 1) - 5}">{line}</text>' for number, line in enumerate(lines)
    ]
    return "\n".join([*parts, "</g>", "</svg>", ""])
