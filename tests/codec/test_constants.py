"""The constants of C++ and Python are the same."""

import re
from enum import Enum, IntEnum
from pathlib import Path

import pytest
from oracle import constants as all_constants

from gompfs._native import codec as native
from gompfs.codec import BlockStatus, Codec, constants

HEADER = Path(__file__).parents[2] / "kernels" / "shared" / "format_constants.h"
DEFINITION = re.compile(r"constexpr [a-z ]+ k(\w+)(\[\w+\])? =\s+([^;]+);")


def to_snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def definitions() -> dict[str, int | tuple[int, ...]]:
    text = re.sub(r"//.*", "", HEADER.read_text())
    values: dict[str, int | tuple[int, ...]] = {}
    for name, brackets, expression in DEFINITION.findall(text):
        for known, value in values.items():
            expression = re.sub(rf"\bk{known}\b", str(value), expression)
        # arithmetic on integer literals only
        parsed = eval(" ".join(expression.split()).replace("{", "(").replace("}", ")"))
        values[name] = tuple(parsed) if brackets else parsed
    return {to_snake(name): value for name, value in values.items()}


def test_the_header_is_parsed() -> None:
    assert len(definitions()) == HEADER.read_text().count("constexpr ")


@pytest.mark.parametrize(("name", "value"), definitions().items())
def test_python_has_the_same_value(name: str, value: object) -> None:
    assert getattr(all_constants, name) == value == getattr(constants, name, value)


@pytest.mark.parametrize(("core", "python"), [(native.Codec, Codec), (native.BlockStatus, BlockStatus)])
def test_the_enums_of_the_core_are_those_of_python(core: type[Enum], python: type[IntEnum]) -> None:
    of_python = [(member.name, int(member)) for member in python if member is not BlockStatus.UNREADABLE]
    assert [(member.name, member.value) for member in core] == of_python


def test_an_unknown_codec_is_refused() -> None:
    assert native.decode_payload(Codec.STORED, b"abc", bytearray(3))
    with pytest.raises(TypeError):
        native.decode_payload(max(Codec) + 1, b"abc", bytearray(3))


def test_python_has_no_other_constants() -> None:
    names, all_names = ({name for name in vars(each) if name.isupper()} for each in (constants, all_constants))
    assert names < all_names == set(definitions())
