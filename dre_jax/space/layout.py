"""Configurations as points of the unit cube, and as the columns that methods read.

A *point* has one coordinate in [0, 1] for every hyperparameter, whatever its kind: where a number lies between its
bounds (on a log scale, if it has one), or which of several levels or orders is taken, each with an equal part of
[0, 1]. Every point is a valid configuration, so points can be drawn, moved and cut off as numbers. `columns` encodes
them: levels one-hot, permutations by the order of each pair of items, inactive hyperparameters by their flag.

Points are arrays of NumPy or JAX: float64 on the host, float32 or float64 inside a compiled program.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any

import numpy as np

from dre_jax.data.scale import Scale
from dre_jax.runtime.arrays import namespace
from dre_jax.space.layout_counts import Cardinality
from dre_jax.space.layout_formulas import Predicate
from dre_jax.space.layout_orders import Order
from dre_jax.space.layout_parts import Level, Number, meets
from dre_jax.space.layout_rules import Combination, Linear, Table

LayoutRule = Combination | Linear | Table | Cardinality | Predicate
Values = Mapping[int, Any] | Sequence[Any]
"""Levels and numbers f[...] of hyperparameters, by position."""
Masks = Mapping[int, Any] | Sequence[Any]
"""Masks bool[...] of hyperparameters, by position."""


@dataclass(frozen=True)
class SpaceLayout:
    """The hyperparameters of a search space, parents first."""

    parts: tuple[Number | Level | Order, ...]
    n_columns: int
    """D"""
    rules: tuple[LayoutRule, ...] = ()

    @cached_property
    def n_parts(self) -> int:
        """P, the number of coordinates."""
        return len(self.parts)

    @property
    def is_thin(self) -> bool:
        """Whether a step from an allowed point rarely leads to another one: with sums, tables and counts."""
        is_sum = (getattr(rule, "is_order", None) is False for rule in self.rules)
        return any(is_sum) or any(isinstance(rule, (Table, Cardinality)) for rule in self.rules)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each hyperparameter, at most the rows of its tables; 0 for real numbers."""
        rows = {i: len(rule.rows) for rule in self.rules if isinstance(rule, Table) for i in rule.positions}
        return tuple(part.levels or rows.get(i, 0) for i, part in enumerate(self.parts))

    @property
    def is_unordered(self) -> tuple[bool, ...]:
        """Mask of the hyperparameters whose levels have no order."""
        return tuple(isinstance(part, (Level, Order)) and not part.ordered for part in self.parts)

    def active(self, points: Any) -> list[Any]:
        """Returns masks of the hyperparameters that are active at points f[..., P]: P arrays bool[...]."""
        parents = {parent for part in self.parts for parent in part.parents}
        values = {i: self.parts[i].values(points[..., i]) for i in parents}
        everywhere, masks = namespace(points).ones(points.shape[:-1], bool), list[Any]()
        for i, part in enumerate(self.parts):
            masks.append(self.conditions_hold(i, values, masks) if part.alternatives else everywhere)
        return masks

    def conditions_hold(self, i: int, values: Values, active: Masks, ignored: Collection[int] = ()) -> Any:
        """Returns the mask bool[...] of configurations for which the conditions of a hyperparameter hold.

        Args:
          i: position of the hyperparameter.
          values: levels and numbers f[...], by the positions of its parents.
          active: masks bool[...] of the active ones of these.
          ignored: positions of hyperparameters whose conditions count as fulfilled.
        """
        holds: list[Any] = []
        for conditions in self.parts[i].alternatives:
            masks = [active[j] & meets(values[j], condition) for j, condition in conditions if j not in ignored]
            if not masks:
                return True
            holds.append(reduce(and_, masks))
        return reduce(or_, holds) if holds else True

    def is_allowed(self, points: Any) -> Any:
        """Returns the mask bool[...] of points f[..., P] that satisfy all rules."""
        if not self.rules:
            return namespace(points).ones(points.shape[:-1], bool)
        active, values = self.active(points), self.values(points)
        return reduce(and_, (rule.allows(self.parts, values, active) for rule in self.rules))

    def values(self, points: Any) -> list[Any]:
        """Returns the values at points f[..., P], by hyperparameter f[...]."""
        return [part.values(points[..., i]) for i, part in enumerate(self.parts)]

    def middles(self, points: Any) -> list[Any]:
        """Returns the coordinates of the values at points f[..., P], by hyperparameter f[...]."""
        return [part.middle(points[..., i]) for i, part in enumerate(self.parts)]

    def round_to_values(self, points: Any) -> Any:
        """Returns the points f[..., P] of the configurations at points: those of their values, 0.5 where inactive."""
        parts = zip(self.parts, self.values(points), self.active(points), strict=True)
        xp = namespace(points)
        coordinates = [xp.where(active, part.coordinates(values), 0.5) for part, values, active in parts]
        return xp.clip(xp.stack(coordinates, axis=-1), 0.0, 1.0)

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

    def columns(self, points: Any, active: Sequence[Any] | None = None) -> Any:
        """Returns the columns f[..., D] of points f[..., P]; by default, `active` decides which are active."""
        columns = dict[int, Any]()
        for i, (part, mask) in enumerate(zip(self.parts, active or self.active(points), strict=True)):
            columns |= part.encode(points[..., i], mask)
        in_order = [columns[i] for i in range(self.n_columns)]
        return namespace(points).stack(in_order, axis=-1)


def unit_cube(n_columns: int) -> SpaceLayout:
    """Returns the layout of D numbers in [0, 1], which are their own columns."""
    unit = Scale(0.0, 1.0)
    return SpaceLayout(tuple(Number(unit, 0.0, 0.0, 0, i, unit) for i in range(n_columns)), n_columns)
