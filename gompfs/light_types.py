"""Named tuples, frozen data classes and interfaces for the modules that every command imports.

They are written as typing.NamedTuple, frozen dataclasses and typing.Protocol are, and type checkers take them for
these. The modules typing and dataclasses themselves take longer to import than opening an archive does: they import
inspect, ast and re.
"""

from __future__ import annotations

__all__ = ["TYPE_CHECKING", "NamedTuple", "Protocol", "frozen", "replaced"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple, Protocol, TypeVar, dataclass_transform

    _Class = TypeVar("_Class", bound=type)
    _Record = TypeVar("_Record")

    @dataclass_transform(frozen_default=True)
    def frozen(decorated: _Class) -> _Class:
        """Makes a frozen data class."""

    def replaced(record: _Record, **changes: Any) -> _Record:
        """Returns a copy of a frozen data class with other values of some fields."""

else:
    from collections import namedtuple

    class _TupleType(type):
        """Makes a named tuple of a class with annotations, the values of which are defaults."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = list(body.get("__annotations__", ()))
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                if key not in ("__annotations__", "__module__", "__qualname__"):
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_TupleType):
        """The base of named tuples."""

    class Protocol:
        """The base of interfaces."""

    def frozen(decorated):
        """Makes a frozen data class."""
        fields = tuple(decorated.__annotations__)

        def create(self, *values, **named):
            if len(values) > len(fields) or not named.keys() <= set(fields[len(values) :]):
                raise TypeError(f"{decorated.__name__} has the fields {', '.join(fields)}")
            given = dict(zip(fields, values, strict=False)) | named
            for field in fields:
                if field not in given and field not in vars(decorated):
                    raise TypeError(f"{decorated.__name__} needs a value for {field}")
                object.__setattr__(self, field, given[field] if field in given else getattr(decorated, field))
            if hasattr(self, "__post_init__"):
                self.__post_init__()

        def values_of(record):
            return tuple(getattr(record, field) for field in fields)

        def refuse(_self, name, _value=None):
            raise AttributeError(f"{decorated.__name__}.{name} cannot be changed")

        decorated.__init__ = create
        decorated.__setattr__ = decorated.__delattr__ = refuse
        decorated.__eq__ = lambda self, other: (
            values_of(self) == values_of(other) if type(other) is decorated else NotImplemented
        )
        decorated.__hash__ = lambda self: hash(values_of(self))
        decorated.__repr__ = lambda self: f"{decorated.__name__}{dict(zip(fields, values_of(self), strict=True))}"
        return decorated

    def replaced(record, **changes):
        """Returns a copy of a frozen data class with other values of some fields."""
        return type(record)(**{field: getattr(record, field) for field in type(record).__annotations__} | changes)
