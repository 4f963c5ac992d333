"""The numbers of a page, read from its own tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dre_jax.errors import DataError

Series = tuple[float, ...]


class Table(NamedTuple):
    """A Markdown table."""

    section: str
    """The heading above it."""
    heads: list[str]
    rows: list[list[str]]

    def column(self, head: str) -> list[str]:
        """The cells of a column, without the marks of code."""
        if head not in self.heads:
            raise DataError(f"the table of {self.section!r} needs a column {head!r}, but has {', '.join(self.heads)}")
        return [row[self.heads.index(head)].strip("`") for row in self.rows]

    def numbers(self, head: str) -> list[tuple[float, float]]:
        """The cells of a column such as "0.02 ± 0.01": values and errors, 0 without one, NaN where there is none."""
        return [number(cell) for cell in self.column(head)]

    def series(self, quantity: str) -> tuple[list[int], list[tuple[Series, Series]]]:
        """Returns the trials N of the columns "QUANTITY at N", and each row's values and errors there."""
        heads = [head for head in self.heads if head.startswith(f"{quantity} at ")]
        by_row = zip(*(self.numbers(head) for head in heads), strict=True)
        rows = [(tuple(value for value, _ in row), tuple(error for _, error in row)) for row in by_row]
        return [int(head.rpartition(" ")[2]) for head in heads], rows


def number(cell: str) -> tuple[float, float]:
    """A value and its error.

    >>> number("0.02 ± 0.01"), number("32.0")
    ((0.02, 0.01), (32.0, 0.0))
    """
    value, _, error = cell.partition("±")
    try:
        return float(value), float(error or 0)
    except ValueError:
        return float("nan"), 0.0


def tables(text: str) -> list[Table]:
    """All tables of a page, in its order."""
    found, section, block = [], "", list[str]()
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append(line)
            continue
        if len(block) > 1 and set(block[1]) <= set("|-: "):
            found.append(Table(section, _cells(block[0]), [_cells(row) for row in block[2:]]))
        block = []
        section = line.lstrip("# ") if line.startswith("#") else section
    return found


def with_columns(text: str, heads: Sequence[str]) -> Table:
    """The first table that has these columns. Raises `DataError` where there is none."""
    for table in tables(text):
        if set(heads) <= set(table.heads):
            return table
    raise DataError(f"the page needs a table with the columns {', '.join(heads)}, but has none")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
