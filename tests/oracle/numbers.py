"""Numbers of gompresso-tadoc: a class, coded with a canonical code, and extra bits.

Class c has c div 2 extra bits, so it covers 2 ** (c div 2) numbers. Class 0 begins at 0, and each other class begins
after the last number of the class before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from oracle.constants import CLASS_LENGTH_BITS, MAX_CLASS_BITS, NUM_CLASS_LENGTHS_BITS, NUM_CLASSES
from oracle.sequences import PayloadError
from oracle.streams import BitReader, CanonicalCode


def class_base(number_class: int) -> int:
    """Returns the lowest number of a class."""
    return ((2 + number_class % 2) << num_extra_bits(number_class)) - 2


def num_extra_bits(number_class: int) -> int:
    """Returns how many bits a number of this class has after its codeword."""
    return number_class // 2


def class_of(number: int) -> int:
    """Returns the class of a number."""
    octave = (number + 2).bit_length() - 1
    return 2 * (octave - 1) + (number + 2 >> octave - 1) % 2


class ClassCode:
    """A canonical code of classes."""

    def __init__(self, lengths: Sequence[int]) -> None:
        """Raises PayloadError if a length is above MAX_CLASS_BITS, or if the code is not complete."""
        self._code = CanonicalCode(lengths, MAX_CLASS_BITS)

    def read_class(self, bits: BitReader) -> int:
        """Returns the next class. Raises PayloadError if the code is empty or the bits end."""
        return self._code.read(bits)

    def read_number(self, bits: BitReader) -> int:
        """Returns the next number: a class, and its extra bits."""
        number_class = self._code.read(bits)
        return class_base(number_class) + bits.take(num_extra_bits(number_class))


def read_class_code(bits: BitReader) -> ClassCode:
    """Returns a class code that is stored as a number of lengths, and the lengths."""
    num_lengths = bits.take(NUM_CLASS_LENGTHS_BITS)
    if num_lengths > NUM_CLASSES:
        raise PayloadError("a class code has too many lengths")
    return ClassCode([bits.take(CLASS_LENGTH_BITS) for _ in range(num_lengths)])


def rank_symbols(classes: Sequence[int]) -> list[int]:
    """Returns the symbols of a part in the order of their ranks, given the class of each symbol.

    The rank of a symbol is the base of its class plus the number of symbols of the same class with lower numbers.
    Raises PayloadError unless the ranks are 0, 1, 2, ..., each once.
    """
    ranked = sorted(range(len(classes)), key=lambda symbol: (classes[symbol], symbol))
    if any(classes[symbol] != class_of(rank) for rank, symbol in enumerate(ranked)):
        raise PayloadError("a class has more or fewer symbols than it has ranks")
    return ranked


def symbol_of_rank(symbols_by_rank: Sequence[int], rank: int) -> int:
    """Returns the symbol of a rank. Raises PayloadError if there is none."""
    if rank >= len(symbols_by_rank):
        raise PayloadError("no symbol has this rank")
    return symbols_by_rank[rank]
