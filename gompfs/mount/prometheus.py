"""The text format of Prometheus, version 0.0.4: lines `name{label="text"} value`, with HELP and TYPE comments."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

Labels = Mapping[str, str]
Samples = dict[str, list[tuple[dict[str, str], float]]]

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}
_UNESCAPES = {escaped: char for char, escaped in _ESCAPES.items()}
_VALUE = r"[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[-+]?[0-9]{1,2})?"
_SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (' + _VALUE + ")", re.ASCII)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class MetricsText:
    """Builds the text of a set of metrics, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def describe(self, name: str, kind: str, meaning: str) -> None:
        """Add the HELP and TYPE lines of a metric, before its first sample. `kind` is counter, gauge or histogram."""
        self.lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]

    def sample(self, name: str, labels: Labels, value: float) -> None:
        """Add one sample."""
        inside = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
        self.lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")

    def single(self, name: str, kind: str, meaning: str, value: float) -> None:
        """Add a metric of one sample without labels, with its HELP and TYPE lines."""
        self.describe(name, kind, meaning)
        self.sample(name, {}, value)

    def histogram(
        self, name: str, labels: Labels, limits: Sequence[float], counts: Sequence[int], total: float
    ) -> None:
        """Add a histogram: the number of values in each bucket, and `total`, the sum of the values.

        `limits` holds the upper bound of each bucket but the last, which has none.
        """
        below = 0
        for limit, count in zip([*limits, math.inf], counts, strict=True):
            below += count
            self.sample(f"{name}_bucket", {**labels, "le": f"{limit:.9g}".replace("inf", "+Inf")}, below)
        self.sample(f"{name}_sum", labels, total)
        self.sample(f"{name}_count", labels, below)


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in text)


def parse_metrics(text: str) -> Samples:
    """Returns the samples by name, each with its labels.

    Lines that are not samples, and infinite values, are skipped.
    """
    samples: Samples = {}
    for line in text.split("\n"):
        match = _SAMPLE.fullmatch(line)
        if match is not None:
            name, inside, value = match.groups()
            labels = {label: _unescape(escaped) for label, escaped in _LABEL.findall(inside or "")}
            samples.setdefault(name, []).append((labels, float(value)))
    return samples


def _unescape(text: str) -> str:
    return re.sub(r"\\.", lambda match: _UNESCAPES.get(match.group(), match.group()), text)
