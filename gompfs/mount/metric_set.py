"""A set of metrics in two forms: the text format of Prometheus, version 0.0.4, and JSON.

The text has lines `name{label="text"} value`, with HELP and TYPE comments. The JSON maps each name to its samples; each
sample is a list of labels and value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gompfs.light_types import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

Labels = Mapping[str, str]
Samples = dict[str, list[tuple[dict[str, str], float]]]

_MAX_VALUE = 1e30  # so that sums of values, and the values in other units, are finite
_LIMIT = "le"
_NO_LIMIT = "+Inf"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


class MetricSet:
    """Collects metrics."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._samples: Samples = {}

    def describe(self, name: str, kind: str, meaning: str) -> None:
        """Add the HELP and TYPE of a metric, before its first sample. `kind` is counter, gauge or histogram."""
        self._lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]

    def sample(self, name: str, labels: Labels, value: float) -> None:
        """Add one sample."""
        inside = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
        self._lines.append(f"{name}{{{inside}}} {value}" if inside else f"{name} {value}")
        self._samples.setdefault(name, []).append((dict(labels), value))

    def single(self, name: str, kind: str, meaning: str, value: float) -> None:
        """Add a metric of one sample without labels, with its HELP and TYPE."""
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
            self.sample(f"{name}_bucket", {**labels, _LIMIT: f"{limit:.9g}".replace("inf", _NO_LIMIT)}, below)
        self.sample(f"{name}_sum", labels, total)
        self.sample(f"{name}_count", labels, below)

    def as_text(self) -> bytes:
        """Returns all metrics in the format of Prometheus."""
        return ("\n".join(self._lines) + "\n").encode()

    def as_json(self) -> bytes:
        """Returns all samples as JSON."""
        import json  # here, since a mount starts faster without it

        return json.dumps(self._samples).encode()


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(char, char) for char in text)


def samples_of(text: bytes) -> Samples:
    """Returns the samples that as_json() has written. Raises ValueError for anything else.

    The text may come from a mount of another user.
    """
    import json

    try:
        found = json.loads(text, parse_int=float)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("not an object of samples")
    return {name: [_checked(sample) for sample in _list(samples)] for name, samples in found.items()}


def _checked(sample: Any) -> tuple[dict[str, str], float]:
    match sample:
        case [dict(labels), float(value)] if 0 <= value < _MAX_VALUE and all(
            isinstance(text, str) for text in labels.values()
        ):
            limit = labels.get(_LIMIT, _NO_LIMIT)
            if limit == _NO_LIMIT or 0 <= float(limit) < _MAX_VALUE:
                return labels, value
    raise ValueError("not a sample of a metric")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("not a list of samples")
    return value
