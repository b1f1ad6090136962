"""Draws commands and their output as an SVG picture of a terminal, without fonts or scripts from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape

_WIDTH, _LINE, _MARGIN, _BAR = 760, 19, 18, 34
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_BACKGROUND, _BAR_COLOUR, _TEXT, _COMMAND, _PROMPT = "#1b1f27", "#2a303b", "#c5ccd8", "#ffffff", "#7bd88f"
_BUTTONS = ("#ff5f57", "#febc2e", "#28c840")


def terminal_picture(steps: Iterable[tuple[str, str]]) -> str:
    """Returns an SVG of a terminal that shows pairs of a command and its output."""
    lines: list[str] = []
    for command, output in steps:
        lines.append(f'<tspan fill="{_PROMPT}">$ </tspan><tspan fill="{_COMMAND}">{escape(command)}</tspan>')
        lines += [escape(line.expandtabs(8)) for line in output.splitlines()]
    height = _BAR + _LINE * len(lines) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">',
        f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="{_BACKGROUND}"/>',
        f'<path d="M0 26V8a8 8 0 0 1 8-8h{_WIDTH - 16}a8 8 0 0 1 8 8v18z" fill="{_BAR_COLOUR}"/>',
    ]
    parts += [f'<circle cx="{18 + 20 * i}" cy="13" r="6" fill="{colour}"/>' for i, colour in enumerate(_BUTTONS)]
    parts.append(f'<g font-family="{_FONT}" font-size="13.5" fill="{_TEXT}" xml:space="preserve">')
    parts += [
        f'<text x="{_MARGIN}" y="{_BAR + _LINE * (number + 1) - 5}">{line}</text>' for number, line in enumerate(lines)
    ]
    return "\n".join([*parts, "</g>", "</svg>", ""])
