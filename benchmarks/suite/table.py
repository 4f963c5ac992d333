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
    unit, scale = ("s", 1.0) if value >= 1.0 else ("ms", 1e-3) if value >= 1e-3 else ("us", 1e-6)
    shown = value / scale
    return f"{shown:.{0 if shown >= 100 else 1 if shown >= 10 else 2}f} {unit}"


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
    return "-" if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def cells(row: Mapping[str, Any]) -> list[str]:
    if row["ours_s"] is None:
        sizes = [size(row.get(f"{name}_bytes")) for name in ("ours", "eager", "best")]
        return [row["name"], sizes[0], "-", *sizes[1:], *["-"] * 5]
    spread = " to ".join(seconds(value) for value in row["spread"])
    ratios = [ratio(row[f"ratio_{peer}"]) for peer in ("eager", "best")]
    ours, eager, best, floor, compiled = (
        seconds(row[key]) for key in ("ours_s", "eager_s", "best_s", "floor_s", "compile_s")
    )
    reached = "-" if row["fraction"] is None else f"{row['fraction']:.0%}"
    return [row["name"], ours, spread, eager, best, *ratios, floor, reached, compiled]


def plain(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [list(HEAD), *(cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
    )


def page(about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The printed table: the machine, then the rows."""
    facts = ", ".join(f"{key} {about[key]}" for key in ("device", "cores", "load_before", "took_s") if key in about)
    rates = about["matrix_flops_per_s"] / 1e9, about["copy_bytes_per_s"] / 1e9
    return "\n".join([facts, "matrix product {:.0f} GFLOP/s, copy {:.1f} GB/s".format(*rates), plain(rows)])


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table of a page, its heads first; all columns but the first are numbers."""
    rule = ["---", *["---:"] * (len(lines[0]) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))
