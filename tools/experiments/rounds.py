"""The counts of a strategy's rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tools.bench.report import Plot, Report


@dataclass(frozen=True)
class Rounds:
    """The number of rows (of up to 32 sequences), of rounds of all rows, and the match bytes copied by each round.

    For pointer jumping, the number of blocks and of their rounds.
    """

    num_rows: int
    num_rounds: int
    bytes_of_round: list[int]

    @property
    def average(self) -> float:
        """The average number of rounds per row, or per block."""
        return self.num_rounds / self.num_rows

    @property
    def percentages(self) -> list[float]:
        """The percentage of match bytes that each round copied, up to the last round that copied any."""
        total = sum(self.bytes_of_round)
        last = max((number for number, count in enumerate(self.bytes_of_round) if count), default=-1)
        return [100 * count / total for count in self.bytes_of_round[: last + 1]]


def tabulate_rounds(name: str, counted: Mapping[str, Rounds]) -> Report:
    """Returns a table of the percentages: a row for each round, a column for each payload."""
    report = Report(f"{name}: percentage of match bytes that each round of MRR copies", list(counted))
    columns = [rounds.percentages for rounds in counted.values()]
    for number in range(max(map(len, columns), default=0)):
        report.add(str(number + 1), *(column[number] if number < len(column) else 0.0 for column in columns))
    report.plots.append(
        Plot(f"rounds-{name}", "lines", tuple(counted), "round of multi-round resolution", "match bytes, %")
    )
    return report
