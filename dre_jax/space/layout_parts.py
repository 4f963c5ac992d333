"""Coordinates of the unit cube: one hyperparameter each, by its values, its columns, and the conditions that it has.

The functions take arrays of NumPy or JAX; for single values, numbers of Python, too.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from dre_jax.data.scale import Scale
from dre_jax.runtime.arrays import namespace

_SAME = 1e-6
"""Relative distance of real numbers that count as equal: numbers in float32 do."""
_ROUNDING = 8.0
"""Number of rounding errors of a dtype that a value may have after it was a coordinate."""


class Between(NamedTuple):
    """The numbers strictly between two bounds."""

    low: float
    high: float


Values = tuple[float, ...] | Between
"""Levels or numbers of a hyperparameter."""
Conditions = tuple[tuple[int, Values], ...]
"""Positions of other hyperparameters, with the levels or numbers for which a hyperparameter is active."""


def _parents(alternatives: tuple[Conditions, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(i for conditions in alternatives for i, _ in conditions))


def meets(x: Any, values: Values) -> Any:
    """Returns the mask bool[...] of levels or numbers f[...] for which a condition holds."""
    if isinstance(values, Between):
        return (x > values.low) & (x < values.high)
    return reduce(or_, (x == value for value in values))


@dataclass(frozen=True)
class Number:
    """A numeric hyperparameter: how it is searched, and its columns."""

    search: Scale
    """Range of the coordinate. On a log scale of whole numbers, it extends half a step beyond the bounds, so that both
    ends get their share."""
    low: float
    """The least value."""
    step: float
    """Distance of the values; 0 for real numbers."""
    levels: int
    """Number of values; 0 for real numbers."""
    column: int
    """Position of its column."""
    encoding: Scale
    """From the value to its column."""
    empty: float = 0.0
    """Its column where it is not set."""
    missing: int | None = None
    """Position of the flag that it is not set."""
    unset: float | None = None
    """A value that the columns show as not set."""
    alternatives: tuple[Conditions, ...] = ()
    """Alternative conditions, one of which must hold for the number to be active; empty if it always is."""

    def values(self, u: Any) -> Any:
        """Returns the values at coordinates f[...]."""
        if not self.levels:
            return self.search.from_unit(u).clip(self.search.low, self.search.high)
        return self.low + self._steps(u) * self.step

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value."""
        return (
            (self.low, self.low + (self.levels - 1) * self.step) if self.levels else (self.search.low, self.search.high)
        )

    def neighbour(self, x: Any, sign: float, *, or_equal: bool) -> Any:
        """Returns the values next to numbers f[...], on the side of the sign; real numbers are their own if equal."""
        if not self.levels:
            return x if or_equal else x + sign * self.rounding(x)
        xp, (low, high) = namespace(x), self.ends
        steps = sign * (xp.clip(x, low - self.step, high + self.step) - low) / self.step
        nearest = xp.round(steps)
        steps = xp.where(xp.abs(steps - nearest) < 1e-6, nearest + float(not or_equal), xp.ceil(steps))
        return low + sign * steps * self.step

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Positions of the hyperparameters in the conditions."""
        return _parents(self.alternatives)

    def is_same(self, x: Any, y: Any) -> Any:
        """Returns the mask bool[...] of numbers f[...] that stand for the value ``y``, if it is one."""
        if self.levels:
            return abs(x - y) < self.step / 2
        return abs(x - y) <= _SAME * abs(y) + self.rounding(x)

    def rounding(self, x: Any) -> Any:
        """Returns the rounding errors that numbers f[...] may have after they were coordinates of their dtype."""
        epsilon = float(np.finfo(x.dtype).eps) if hasattr(x, "dtype") else sys.float_info.epsilon
        return _ROUNDING * epsilon * self._size * (abs(x) if self.search.log else 1.0)

    @cached_property
    def _size(self) -> float:
        """Size of the numbers that a coordinate is converted through: logarithms, whose errors are relative."""
        return max(1.0, *(abs(math.log(end)) for end in self.ends)) if self.search.log else max(map(abs, self.ends))

    def all_values(self) -> np.ndarray:
        """Returns all values, in increasing order; none of a real number."""
        return self.low + np.arange(self.levels) * self.step

    def _steps(self, u: Any) -> Any:
        """Returns the number of steps between the least value and the values at coordinates f[...]."""
        xp = namespace(u)
        # As floats: there may be more levels than a whole number of 32 bits holds.
        if self.search.log:
            return xp.clip(xp.round((self.search.from_unit(u) - self.low) / self.step), 0.0, float(self.levels - 1))
        return xp.clip(xp.floor(u * float(self.levels)), 0.0, float(self.levels - 1))

    def middle(self, u: Any) -> Any:
        """Returns the coordinates of the values at coordinates f[...]: equal where the values are."""
        if not self.levels:
            return u
        if self.search.log:
            return self.coordinates(self.values(u))
        return (self._steps(u) + 0.5) / float(self.levels)

    def coordinates(self, x: Any) -> Any:
        """Returns the coordinates of values, the middle of their part."""
        if not self.levels or self.search.log:
            return self.search.to_unit(x)
        return (namespace(x).round((x - self.low) / self.step) + 0.5) / float(self.levels)

    def encode(self, u: Any, active: Any) -> dict[int, Any]:
        """Returns the columns at coordinates f[...]; where inactive, as not set."""
        xp = namespace(u)
        if not self.levels and self.search == self.encoding:
            value = u  # through the value, float32 would lose numbers that are large beside their range
        elif self.levels > 1 and self.encoding == Scale(self.low, self.low + (self.levels - 1) * self.step):
            value = self._steps(u) / float(self.levels - 1)
        else:
            value = xp.clip(self.encoding.to_unit(self.values(u)), 0.0, 1.0)
        if self.unset is not None:
            active = active & (xp.abs(self.values(u) - self.unset) > 1e-6 * max(1.0, abs(self.unset)))
        columns = {self.column: xp.where(active, value, self.empty)}
        if self.missing is not None:
            columns[self.missing] = xp.where(active, 0.0, 1.0)
        return columns

    def decode(self, row: np.ndarray, *, or_inactive: bool) -> float | None:
        """Returns the number in columns f64[D], which may be between the values; None if it is inactive and may be."""
        if self.missing is not None and row[self.missing] >= 0.5 and (or_inactive or self.unset is not None):
            return self.unset
        return float(self.encoding.from_unit(row[self.column].clip(0.0, 1.0)))


class Discrete:
    """A hyperparameter whose levels have equal parts of the coordinate."""

    levels: int
    """Number of levels."""
    alternatives: tuple[Conditions, ...]
    """Alternative conditions, one of which must hold for the hyperparameter to be active; empty if it always is."""

    def values(self, u: Any) -> Any:
        """Returns the levels at coordinates f[...], as whole numbers."""
        xp = namespace(u)
        return xp.clip(xp.floor(u * self.levels), 0, self.levels - 1)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Positions of the hyperparameters in the conditions."""
        return _parents(self.alternatives)

    def is_same(self, level: Any, other: Any) -> Any:
        """Returns the mask bool[...] of levels f[...] that equal others."""
        return abs(level - other) < 0.5

    def all_values(self) -> np.ndarray:
        """Returns all levels."""
        return np.arange(self.levels)

    def coordinates(self, level: Any) -> Any:
        """Returns the coordinates of levels, the middle of their part."""
        return (level + 0.5) / self.levels

    def middle(self, u: Any) -> Any:
        """Returns the coordinates of the levels at coordinates f[...]: equal where the levels are."""
        return self.coordinates(self.values(u))


@dataclass(frozen=True)
class Level(Discrete):
    """A hyperparameter of a few levels, and its columns."""

    levels: int
    columns: tuple[int, ...]
    """Positions of its columns."""
    rows: tuple[tuple[float, ...], ...]
    """Their values for each level, and in the last row for the inactive hyperparameter."""
    ordered: bool = False
    """True if neighbouring levels are alike."""
    alternatives: tuple[Conditions, ...] = ()

    def encode(self, u: Any, active: Any) -> dict[int, Any]:
        """Returns the columns at coordinates f[...]; where inactive, the last row's."""
        level, xp = self.values(u), namespace(u)
        row = xp.where(active, level, self.levels).astype(xp.int32)
        table = xp.asarray(self.rows, u.dtype)[row]
        return {column: table[..., i] for i, column in enumerate(self.columns)}

    def decode(self, row: np.ndarray, *, or_inactive: bool) -> int | None:
        """Returns the level with the nearest columns to those of f64[D]; None if it is inactive and may be."""
        rows = np.array(self.rows if or_inactive and any(self.rows[-1]) else self.rows[:-1])
        distances = rows - row[list(self.columns)].clip(-1e6, 1e6)  # so that no square overflows
        level = int(np.argmin((distances**2).sum(axis=1)))
        return level if level < self.levels else None
