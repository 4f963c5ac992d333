"""A line of the benchmark: ours, both peers, and the floor."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
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
    """Of repeats that do so many units each.

    Args:
      seconds: of each repeat.
      units: that a repeat does.
      first: seconds of the call before them, which compiled.
      note: see `Timing`.
    """
    median = statistics.median(seconds)
    compiled = None if first is None else max(0.0, first - median)
    return Timing(
        median=median / units, low=min(seconds) / units, high=max(seconds) / units, compile_s=compiled, note=note
    )


def at_epochs(base: Timing, part: Timing, done: int, wanted: int) -> Timing:
    """Time of ``wanted`` epochs from that of none and that of ``done``, on a straight line."""

    def stretch(none: float, some: float) -> float:
        return none + (some - none) * wanted / done

    note = part.note if done == wanted else f"{part.note}; {done} epochs timed, {wanted} by a straight line".strip("; ")
    return Timing(
        median=stretch(base.median, part.median),
        low=max(0.0, stretch(base.high, part.low)),
        high=stretch(base.low, part.high),
        compile_s=part.compile_s,
        note=note,
    )


@dataclass(frozen=True, kw_only=True)
class Row:
    """What is told of one thing that is timed."""

    name: str
    unit: str
    """What the seconds are of."""
    ours: Timing | None = None
    eager: Timing | None = None
    best: Timing | None = None
    floor_s: float | None = None
    """Least seconds that the operations and bytes take at this machine's measured rates."""
    notes: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    """Further keys."""

    def as_json(self) -> dict[str, Any]:
        """The row in the file; null where a peer does not apply."""

        def median(found: Timing | None) -> float | None:
            return None if found is None else found.median

        ours, eager, best = median(self.ours), median(self.eager), median(self.best)
        notes = [*self.notes]
        notes += [f"{name}: {t.note}" for name, t in self._timings() if t.note]
        return {
            "name": self.name,
            "unit": self.unit,
            "ours_s": ours,
            "eager_s": eager,
            "best_s": best,
            "ratio_eager": eager / ours if ours and eager else None,
            "ratio_best": best / ours if ours and best else None,
            "compile_s": self.ours.compile_s if self.ours else None,
            "best_compile_s": self.best.compile_s if self.best else None,
            "floor_s": self.floor_s,
            "fraction": self.floor_s / ours if self.floor_s and ours else None,
            "spread": [self.ours.low, self.ours.high] if self.ours else None,
            "spread_eager": [self.eager.low, self.eager.high] if self.eager else None,
            "spread_best": [self.best.low, self.best.high] if self.best else None,
            "note": "; ".join(notes),
            **self.extra,
        }

    def _timings(self) -> list[tuple[str, Timing]]:
        named = (("ours", self.ours), ("eager", self.eager), ("best", self.best))
        return [(name, found) for name, found in named if found is not None]
