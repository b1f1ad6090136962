"""Named tuples and frozen data classes behave as those of typing and dataclasses."""

from __future__ import annotations

import pickle

import pytest

from gompfs.light_types import NamedTuple, frozen, replaced


class Point(NamedTuple):
    """A point."""

    x: int
    y: int = 2

    @property
    def total(self) -> int:
        return self.x + self.y


@frozen
class Limits:
    """Limits."""

    least: int
    most: int = 9

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError("no numbers")


def test_named_tuples() -> None:
    point = Point(1)
    assert point == (1, 2) == Point._make([1, 2])
    assert point.total == 3
    assert repr(point) == "Point(x=1, y=2)"
    assert Point._fields == ("x", "y")
    assert point._replace(y=5) == (1, 5)
    assert type(pickle.loads(pickle.dumps(point))) is Point
    assert Point.__module__ == __name__
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]


def test_frozen_data_classes() -> None:
    limits = Limits(1)
    assert limits == Limits(1, 9) == Limits(most=9, least=1) == pickle.loads(pickle.dumps(limits))
    assert hash(limits) == hash(Limits(1, 9))
    assert limits != Limits(1, 8) != (1, 8)
    assert repr(limits) == "Limits{'least': 1, 'most': 9}"
    assert replaced(limits, most=7) == Limits(1, 7)
    assert vars(limits) == {"least": 1, "most": 9}
    with pytest.raises(ValueError, match="no numbers"):
        replaced(limits, most=0)
    with pytest.raises(AttributeError):
        limits.most = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del limits.most


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"least": 2}), ((1,), {"other": 2})])
def test_wrong_fields_of_data_classes(values: tuple[int, ...], named: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="Limits"):
        Limits(*values, **named)
