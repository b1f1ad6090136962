"""Makes a large sparse matrix as text, in the format Matrix Market, for benchmarks.

    python tools/matrix_corpus.py FILE|- --columns 2000000 [--seed S]

The matrix is the lower half of a symmetric one, like `hollywood-2009`, in which actors of one film are connected with
each other: some columns in a row belong to a film, and have entries for each other and for the same other rows.
2,000,000 columns take about 1 GB. The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

_MOST_NEW = 24  # actors of a film that were in no film before it
_MOST_KNOWN = 80


class _Film(NamedTuple):
    """A film's first column, the number of its columns, and of the other rows that all of them have."""

    first: int
    num_new: int
    num_known: int

    @property
    def num_entries(self) -> int:
        return self.num_new * self.num_known + self.num_new * (self.num_new - 1) // 2


def write_matrix(file: BinaryIO, num_columns: int, *, seed: int = 0) -> None:
    """Write a matrix of `num_columns` columns, and as many rows."""
    films = list(_films(num_columns, random.Random(f"{seed} films")))
    num_entries = sum(film.num_entries for film in films)
    file.write(b"%%MatrixMarket matrix coordinate pattern symmetric\n")
    file.write(b"%d %d %d\n" % (num_columns, num_columns, num_entries))
    rng = random.Random(f"{seed} entries")
    for film in films:
        end = film.first + film.num_new
        known = sorted(rng.sample(range(end, num_columns + 1), film.num_known))
        rows = [b"%d" % row for row in (*range(film.first, end), *known)]
        for number in range(film.num_new):
            below = rows[number + 1 :]
            if below:
                line_end = b" %d\n" % (film.first + number)
                file.write(line_end.join(below) + line_end)


def _films(num_columns: int, rng: random.Random) -> Iterator[_Film]:
    """Yields films whose columns are 1 to `num_columns`; most films are small."""
    first = 1
    while first <= num_columns:
        num_new = min(1 + int(rng.random() ** 2 * _MOST_NEW), num_columns + 1 - first)
        num_above = num_columns + 1 - first - num_new
        yield _Film(first, num_new, min(int(rng.random() ** 2 * _MOST_KNOWN), num_above))
        first += num_new


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line that the head of this file describes."""
    parser = argparse.ArgumentParser(description="Make a sparse matrix in the format Matrix Market.")
    parser.add_argument("file", help="where to write, - for standard output")
    parser.add_argument("--columns", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.file == "-":
        write_matrix(sys.stdout.buffer, options.columns, seed=options.seed)
    else:
        with open(options.file, "wb") as file:
            write_matrix(file, options.columns, seed=options.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
