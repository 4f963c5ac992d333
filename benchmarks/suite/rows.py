"""A line of the benchmark: ours, both peers, and the floor; and the table of all lines."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds of a unit of work: median and spread over repeats."""

    median: float
    low: float
    high: float
    compile_s: float | None = None
    """Seconds of the first call beyond a later one."""
    note: str = ""
    """How it was measured, where that is not obvious."""


def timing(seconds: Sequence[float], units: float = 1, first: float | None = None, note: str = "") -> Timing:
    """Returns the timing of repeats that do so many units each; ``first`` is the call before them, which compiled."""
    median, low, high = (statistic(seconds) for statistic in (statistics.median, min, max))
    compile_time = None if first is None else max(0.0, first - median)
    return Timing(median=median / units, low=low / units, high=high / units, compile_s=compile_time, note=note)


def at_epochs(base: Timing, part: Timing, part_epochs: int, epochs: int) -> Timing:
    """Returns the time of ``epochs`` from that of none and that of ``part_epochs``, on a straight line."""

    def stretch(none: float, some: float) -> float:
        return none + (some - none) * epochs / part_epochs

    note = part.note
    if part_epochs != epochs:
        note = f"{note}; {part_epochs} epochs timed, {epochs} by a straight line".strip("; ")
    return Timing(
        median=stretch(base.median, part.median),
        low=max(0.0, stretch(base.high, part.low)),
        high=stretch(base.low, part.high),
        compile_s=part.compile_s,
        note=note,
    )


@dataclass(frozen=True, kw_only=True)
class Row:
    name: str
    unit: str
    """The thing that the seconds measure."""
    ours: Timing | None = None
    eager: Timing | None = None
    best: Timing | None = None
    floor_s: float | None = None
    """Least seconds that the operations and bytes take at this machine's measured rates."""
    notes: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    """Further keys."""

    def as_json(self) -> dict[str, Any]:
        """Returns the row in the file; null where a peer does not apply."""
        timings = {"ours": self.ours, "eager": self.eager, "best": self.best}
        median = {name: t.median if t else None for name, t in timings.items()}
        spread = {name: [t.low, t.high] if t else None for name, t in timings.items()}

        def times_ours(seconds: float | None) -> float | None:
            return seconds / median["ours"] if median["ours"] and seconds else None

        return {
            "name": self.name,
            "unit": self.unit,
            **{f"{name}_s": seconds for name, seconds in median.items()},
            "ratio_eager": times_ours(median["eager"]),
            "ratio_best": times_ours(median["best"]),
            "compile_s": self.ours and self.ours.compile_s,
            "best_compile_s": self.best and self.best.compile_s,
            "floor_s": self.floor_s,
            "fraction": times_ours(self.floor_s),
            "spread": spread["ours"],
            "spread_eager": spread["eager"],
            "spread_best": spread["best"],
            "note": "; ".join([*self.notes, *(f"{name}: {t.note}" for name, t in timings.items() if t and t.note)]),
            **self.extra,
        }


def markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns the table of rows as the file has them."""
    cells = [_cells(row) for row in rows]
    heads = list(cells[0])
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *(list(cell.values()) for cell in cells)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    ratios = {name: row[f"ratio_{name}"] for name in ("eager", "best")}
    return {
        "row": row["name"],
        "ours": seconds(row["ours_s"]),
        "spread": " to ".join(map(seconds, row["spread"] or [None])),
        **{name: seconds(row[f"{name}_s"]) for name in ratios},
        **{f"x {name}": "-" if x is None else f"{x:.{int(x < 100)}f}" for name, x in ratios.items()},
        "floor": seconds(row["floor_s"]),
        "reached": "-" if row["fraction"] is None else f"{row['fraction']:.0%}",
        "compile": seconds(row["compile_s"]),
    }


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
