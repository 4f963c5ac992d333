"""Configurations as points of the unit cube, and as the columns that methods read.

A *point* has one coordinate in [0, 1] for every hyperparameter, whatever its kind: where a number lies between its
bounds (on a log scale, if it has one), or which of several levels is taken, each with an equal part of [0, 1]. Every
point is a valid configuration, so points can be drawn, moved and cut off as numbers. `columns` encodes them: levels
one-hot, inactive hyperparameters by their flag.

The functions take NumPy or JAX as `xp`: float64 on the host, float32 inside a compiled program.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, NamedTuple

import numpy as np

from dre_jax.data.scale import Scale
from dre_jax.space.layout_rules import Combination, Linear, Table


class Between(NamedTuple):
    """The numbers strictly between two bounds."""

    low: float
    high: float


Conditions = tuple[tuple[int, tuple[int, ...] | Between], ...]
"""Positions of other hyperparameters, with the levels or numbers for which a hyperparameter is active."""


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

    def values(self, u: Any, xp: Any = np) -> Any:
        """Returns the values at coordinates f[...]."""
        if not self.levels:
            x = self.search.from_unit(u, xp)
            return xp.clip(x, self.search.low, self.search.high)
        return self.low + self._steps(u, xp) * self.step

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value."""
        return (
            (self.low, self.low + (self.levels - 1) * self.step) if self.levels else (self.search.low, self.search.high)
        )

    def neighbour(self, x: Any, sign: float, xp: Any = np, *, or_equal: bool) -> Any:
        """Returns the values next to numbers f[...], on the side of the sign; real numbers are their own."""
        if not self.levels:
            return x
        low, high = self.ends
        steps = sign * (xp.clip(x, low - self.step, high + self.step) - low) / self.step
        nearest = xp.round(steps)
        steps = xp.where(xp.abs(steps - nearest) < 1e-6, nearest + float(not or_equal), xp.ceil(steps))
        return low + sign * steps * self.step

    def all_values(self) -> np.ndarray:
        """Returns all values, in increasing order; none of a real number."""
        return self.low + np.arange(self.levels) * self.step

    def _steps(self, u: Any, xp: Any) -> Any:
        """Returns the number of steps between the least value and the values at coordinates f[...]."""
        # As floats: there may be more levels than a whole number of 32 bits holds.
        if self.search.log:
            return xp.clip(xp.round((self.search.from_unit(u, xp) - self.low) / self.step), 0.0, float(self.levels - 1))
        return xp.clip(xp.floor(u * float(self.levels)), 0.0, float(self.levels - 1))

    def middle(self, u: Any, xp: Any = np) -> Any:
        """Returns the coordinates of the values at coordinates f[...]: equal where the values are."""
        if not self.levels:
            return u
        if self.search.log:
            return self.coordinates(self.values(u, xp), xp)
        return (self._steps(u, xp) + 0.5) / float(self.levels)

    def coordinates(self, x: Any, xp: Any = np) -> Any:
        """Returns the coordinates of values, the middle of their part."""
        if not self.levels or self.search.log:
            return self.search.to_unit(x, xp)
        return (xp.round((x - self.low) / self.step) + 0.5) / float(self.levels)

    def encode(self, u: Any, active: Any, xp: Any = np) -> dict[int, Any]:
        """Returns the columns at coordinates f[...]; where inactive, as not set."""
        if not self.levels and self.search == self.encoding:
            value = u  # through the value, float32 would lose numbers that are large beside their range
        elif self.levels > 1 and self.encoding == Scale(self.low, self.low + (self.levels - 1) * self.step):
            value = self._steps(u, xp) / float(self.levels - 1)
        else:
            value = xp.clip(self.encoding.to_unit(self.values(u, xp), xp), 0.0, 1.0)
        if self.unset is not None:
            active = active & (xp.abs(self.values(u, xp) - self.unset) > 1e-6 * max(1.0, abs(self.unset)))
        columns = {self.column: xp.where(active, value, self.empty)}
        if self.missing is not None:
            columns[self.missing] = xp.where(active, 0.0, 1.0)
        return columns

    def decode(self, row: np.ndarray, *, or_inactive: bool) -> float | None:
        """Returns the number in columns f64[D], which may be between the values; None if it is inactive and may be."""
        if self.missing is not None and row[self.missing] >= 0.5 and (or_inactive or self.unset is not None):
            return self.unset
        return float(self.encoding.from_unit(row[self.column].clip(0.0, 1.0)))


@dataclass(frozen=True)
class Level:
    """A hyperparameter of a few levels, and its columns."""

    levels: int
    columns: tuple[int, ...]
    """Positions of its columns."""
    rows: tuple[tuple[float, ...], ...]
    """Their values for each level, and in the last row for the inactive hyperparameter."""
    ordered: bool = False
    """True if neighbouring levels are alike."""
    alternatives: tuple[Conditions, ...] = ()

    def values(self, u: Any, xp: Any = np) -> Any:
        """Returns the levels at coordinates f[...], as whole numbers."""
        return xp.clip(xp.floor(u * self.levels), 0, self.levels - 1)

    def all_values(self) -> np.ndarray:
        """Returns all levels."""
        return np.arange(self.levels)

    def coordinates(self, level: Any, xp: Any = np) -> Any:
        """Returns the coordinates of levels, the middle of their part."""
        return (level + 0.5) / self.levels

    def middle(self, u: Any, xp: Any = np) -> Any:
        """Returns the coordinates of the levels at coordinates f[...]: equal where the levels are."""
        return self.coordinates(self.values(u, xp), xp)

    def encode(self, u: Any, active: Any, xp: Any = np) -> dict[int, Any]:
        """Returns the columns at coordinates f[...]; where inactive, the last row's."""
        row = xp.where(active, self.values(u, xp), self.levels).astype(xp.int32)
        table = xp.asarray(self.rows, u.dtype)[row]
        return {column: table[..., i] for i, column in enumerate(self.columns)}

    def decode(self, row: np.ndarray, *, or_inactive: bool) -> int | None:
        """Returns the level with the nearest columns to those of f64[D]; None if it is inactive and may be."""
        rows = np.array(self.rows if or_inactive and any(self.rows[-1]) else self.rows[:-1])
        distances = rows - row[list(self.columns)].clip(-1e6, 1e6)  # so that no square overflows
        level = int(np.argmin((distances**2).sum(axis=1)))
        return level if level < self.levels else None


@dataclass(frozen=True)
class SpaceLayout:
    """The hyperparameters of a search space, parents first."""

    parts: tuple[Number | Level, ...]
    n_columns: int
    """D"""
    rules: tuple[Combination | Linear | Table, ...] = ()

    @property
    def n_parts(self) -> int:
        """P, the number of coordinates."""
        return len(self.parts)

    @property
    def is_thin(self) -> bool:
        """Whether a step from an allowed point rarely leads to another one: with sums and tables."""
        return any(isinstance(rule, Table) or getattr(rule, "is_order", None) is False for rule in self.rules)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each hyperparameter, at most the rows of its tables; 0 for real numbers."""
        rows = {i: len(rule.rows) for rule in self.rules if isinstance(rule, Table) for i in rule.positions}
        return tuple(part.levels or rows.get(i, 0) for i, part in enumerate(self.parts))

    @property
    def is_unordered(self) -> tuple[bool, ...]:
        """Mask of the hyperparameters whose levels have no order."""
        return tuple(isinstance(part, Level) and not part.ordered for part in self.parts)

    def active(self, points: Any, xp: Any = np) -> list[Any]:
        """Returns masks of the hyperparameters that are active at points f[..., P]: P arrays bool[...]."""
        masks: list[Any] = []
        for part in self.parts:
            alternatives = [self._hold(alternative, masks, points, xp) for alternative in part.alternatives]
            masks.append(reduce(or_, alternatives) if alternatives else xp.ones(points.shape[:-1], bool))
        return masks

    def _hold(self, conditions: Conditions, masks: Sequence[Any], points: Any, xp: Any) -> Any:
        """Returns the mask bool[...] of the points at which all conditions hold."""
        active = xp.ones(points.shape[:-1], bool)
        for parent, levels in conditions:
            value = self.parts[parent].values(points[..., parent], xp)
            if isinstance(levels, Between):
                active = active & masks[parent] & (value > levels.low) & (value < levels.high)
            else:
                active = active & masks[parent] & reduce(or_, (value == level for level in levels))
        return active

    def is_allowed(self, points: Any, xp: Any = np) -> Any:
        """Returns the mask bool[...] of points f[..., P] that satisfy all rules."""
        active, values, middles = self.active(points, xp), self.values(points, xp), self.middles(points, xp)
        masks = (
            rule.allows(self.parts, middles, active, xp) if isinstance(rule, Table) else rule.allows(values, active, xp)
            for rule in self.rules
        )
        return reduce(and_, masks, xp.ones(points.shape[:-1], bool))

    def values(self, points: Any, xp: Any = np) -> list[Any]:
        """Returns the values at points f[..., P], by hyperparameter f[...]."""
        return [part.values(points[..., i], xp) for i, part in enumerate(self.parts)]

    def middles(self, points: Any, xp: Any = np) -> list[Any]:
        """Returns the coordinates of the values at points f[..., P], by hyperparameter f[...]."""
        return [part.middle(points[..., i], xp) for i, part in enumerate(self.parts)]

    @property
    def axes(self) -> tuple[Table | int, ...]:
        """Tables of different hyperparameters, and the positions of the other ones."""
        axes: list[Table | int] = []
        covered = set[int]()
        for rule in self.rules:
            if isinstance(rule, Table) and covered.isdisjoint(rule.positions):
                axes.append(rule)
                covered.update(rule.positions)
        return *axes, *(i for i in range(self.n_parts) if i not in covered)

    @property
    def size(self) -> float:
        """Number of configurations, an upper bound with conditions and other rules; infinity with a real number."""
        sizes = (
            len(axis.rows) if isinstance(axis, Table) else self.parts[axis].levels or math.inf for axis in self.axes
        )
        return float(math.prod(map(float, sizes)))

    def all_points(self) -> np.ndarray:
        """Returns the points f64[n, P] of all configurations of a space without real numbers."""
        points = np.full((1, self.n_parts), 0.5)
        for axis in self.axes:
            if isinstance(axis, Table):
                positions, rows = list(axis.positions), axis.coordinates(self.parts)
            else:
                part = self.parts[axis]
                positions, rows = [axis], part.coordinates(part.all_values()).clip(0.0, 1.0)[:, None]
            n = len(points)
            points = np.repeat(points, len(rows), axis=0)
            points[:, positions] = np.where(np.isnan(rows), 0.5, rows)[np.tile(np.arange(len(rows)), n)]
        return points[self.is_allowed(points)]

    def columns(self, points: Any, xp: Any = np, active: Sequence[Any] | None = None) -> Any:
        """Returns the columns f[..., D] of points f[..., P]; by default, `active` decides which are active."""
        columns: dict[int, Any] = {}
        for i, (part, mask) in enumerate(zip(self.parts, active or self.active(points, xp), strict=True)):
            columns |= part.encode(points[..., i], mask, xp)
        return xp.stack([columns[i] for i in range(self.n_columns)], axis=-1)


def unit_cube(n_columns: int) -> SpaceLayout:
    """Returns the layout of D numbers in [0, 1], which are their own columns."""
    unit = Scale(0.0, 1.0)
    return SpaceLayout(tuple(Number(unit, 0.0, 0.0, 0, i, unit) for i in range(n_columns)), n_columns)
