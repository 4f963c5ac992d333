"""Tables in Markdown, and figures as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Columns = Mapping[str, Callable[[Any], str]]
"""Heads, and the text of a row's cell."""


def seconds(value: float | None) -> str:
    """Returns three digits and a unit.

    Example:
      >>> seconds(0.01234), seconds(75.0), seconds(4e-6), seconds(None)
      ('12.3 ms', '75.0 s', '4.00 us', '-')
    """
    if value is None:
        return "-"
    unit, scale = ("s", 1.0) if value >= 1.0 else ("ms", 1e-3) if value >= 1e-3 else ("us", 1e-6)
    number = value / scale
    return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f} {unit}"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def key(name: str, format_value: Callable[[Any], str] = str) -> Callable[[Mapping[str, Any]], str]:
    """Returns the function that formats a row's value of a key."""
    return lambda row: format_value(row[name])


ROW: Columns = {
    "row": key("name"),
    "ours": key("ours_s", seconds),
    "spread": key("spread", lambda spread: " to ".join(map(seconds, spread or [None]))),
    "eager": key("eager_s", seconds),
    "best": key("best_s", seconds),
    "x eager": key("ratio_eager", ratio),
    "x best": key("ratio_best", ratio),
    "floor": key("floor_s", seconds),
    "reached": key("fraction", percent),
    "compile": key("compile_s", seconds),
}
"""Of the rows of ``python -m benchmarks``."""


def markdown(rows: Iterable[Any], columns: Columns) -> str:
    """Returns a table whose columns but the first are numbers."""
    lines = [list(columns), ["---", *["---:"] * (len(columns) - 1)]]
    lines += [[cell(row) for cell in columns.values()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
