"""The rows as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HEAD = ("row", "ours", "spread", "eager", "best", "x eager", "x best", "floor", "reached", "compile")


def seconds(value: float | None) -> str:
    """Three digits and a unit.

    Example:
      >>> seconds(0.01234), seconds(75.0), seconds(4e-6), seconds(None)
      ('12.3 ms', '75.0 s', '4.00 us', '-')
    """
    if value is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale or unit == "us":
            shown = value / scale
            digits = 0 if shown >= 100 else 1 if shown >= 10 else 2
            return f"{shown:.{digits}f} {unit}"
    raise AssertionError


def size(value: float | None) -> str:
    """Bytes in megabytes or gigabytes.

    Example:
      >>> size(1.5e9), size(2.5e7)
      ('1.50 GB', '25 MB')
    """
    if value is None:
        return "-"
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def ratio(value: float | None) -> str:
    """How many times as long."""
    return "-" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """A row's cells, in the order of `HEAD`."""
    if row["ours_s"] is None:
        sizes = [size(row.get(f"{name}_bytes")) for name in ("ours", "eager", "best")]
        return [row["name"], sizes[0], "-", *sizes[1:], *["-"] * 5]
    fraction = row["fraction"]
    return [
        row["name"],
        seconds(row["ours_s"]),
        " to ".join(seconds(value) for value in row["spread"]),
        seconds(row["eager_s"]),
        seconds(row["best_s"]),
        ratio(row["ratio_eager"]),
        ratio(row["ratio_best"]),
        seconds(row["floor_s"]),
        "-" if fraction is None else f"{fraction:.0%}",
        seconds(row["compile_s"]),
    ]


def plain(rows: Sequence[Mapping[str, Any]]) -> str:
    """In columns, for a terminal."""
    lines = [list(HEAD), *(cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs)).rstrip()
        for pairs in (list(zip(line, widths, strict=True)) for line in lines)
    )


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """As a table of a page."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    return "\n".join(lines + ["| " + " | ".join(cells(row)) + " |" for row in rows])
