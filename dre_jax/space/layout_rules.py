"""Rules that points of the unit cube must satisfy, in terms of positions of hyperparameters.

As in `dre_jax.space.layout`, the functions take NumPy or JAX as `xp`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any

import numpy as np

_SAME = 1e-6
"""Maximum distance of coordinates that count as equal."""


def _room(xp: Any) -> float:
    """Returns the rounding error that a sum may have, relative to its largest term: in JAX of float32."""
    return 1e-6 if xp is np else 1e-5


@dataclass(frozen=True)
class Combination:
    """Values that are forbidden together: positions of hyperparameters, and levels or numbers of each."""

    values: tuple[tuple[int, tuple[float, ...]], ...]

    def allows(self, values: Any, active: Any, xp: Any = np) -> Any:
        """Returns the mask bool[...] of values, by hyperparameter f[...], with masks of active ones."""
        matches = (
            active[i] & reduce(or_, (xp.abs(values[i] - x) < 1e-6 * max(1.0, abs(x)) for x in xs))
            for i, xs in self.values
        )
        return ~reduce(and_, matches)


@dataclass(frozen=True)
class Linear:
    """Bounds of a weighted sum of numbers: an order of two of them, or a sum of several."""

    weights: tuple[tuple[int, float], ...]
    """Positions and weights."""
    low: float
    high: float
    is_order: bool = False
    """Whether the rule orders two numbers that are both active, without room for rounding. In other rules, inactive
    numbers count as 0."""
    strict: bool = False
    """Whether the sum is below the upper bound."""
    scale: float = 0.0
    """Size of the terms and bounds; a share of it is room for rounding."""

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the numbers."""
        return tuple(i for i, _ in self.weights)

    @property
    def is_exact(self) -> bool:
        """Whether the sum has one value."""
        return self.low == self.high

    def applies(self, active: Any) -> Any:
        """Returns the mask bool[...] of points that the rule is about, for masks of active hyperparameters."""
        return reduce(and_ if self.is_order else or_, (active[i] for i in self.positions))

    def total(self, values: Any, active: Any, xp: Any = np) -> Any:
        """Returns the sums f[...] of values, by hyperparameter f[...], with masks of active ones."""
        return sum(xp.where(active[i], weight * values[i], 0.0) for i, weight in self.weights)

    def allows(self, values: Any, active: Any, xp: Any = np) -> Any:
        """Returns the mask bool[...] of values, by hyperparameter f[...], with masks of active ones."""
        total, room = self.total(values, active, xp), _room(xp) * self.scale
        below = total < self.high if self.strict else total <= self.high + room
        return (below & (total >= self.low - room)) | ~self.applies(active)

    def limits(self, i: int, part: Any, ends: Mapping[int, tuple[Any, Any]], active: Any, xp: Any = np) -> Any:
        """Returns the least and the greatest value f[...] of number ``i`` that leave room for the other numbers.

        ``ends`` are the bounds f[...] of all numbers of the rule, by position, and ``active`` the masks of active ones.
        """
        least: Any = 0.0
        most: Any = 0.0
        coefficient = dict(self.weights)[i]
        for j, weight in self.weights:
            if j != i:
                from_low, from_high = (xp.where(active[j], weight * end, 0.0) for end in ends[j])
                least = least + (from_low if weight > 0 else from_high)
                most = most + (from_high if weight > 0 else from_low)
        bounds = (self.low - most) / coefficient, (self.high - least) / coefficient
        lower, upper = bounds if coefficient > 0 else bounds[::-1]
        lower = part.neighbour(lower, 1.0, xp, or_equal=not (self.strict and coefficient < 0))
        upper = part.neighbour(upper, -1.0, xp, or_equal=not (self.strict and coefficient > 0))
        applies = self.applies(active)
        return xp.where(applies, lower, -np.inf), xp.where(applies, upper, np.inf)


@dataclass(frozen=True)
class Table:
    """The values that hyperparameters may have together."""

    positions: tuple[int, ...]
    rows: tuple[tuple[float, ...], ...]
    """Levels or numbers, NaN for a hyperparameter that is inactive."""

    @cached_property
    def _columns(self) -> np.ndarray:
        """f64[k, n]: `rows`, which takes milliseconds to convert."""
        return np.array(self.rows, np.float64).T

    def coordinates(self, parts: Sequence[Any]) -> np.ndarray:
        """Returns the coordinates f64[n, k] of the rows in a space's parts."""
        return np.stack([parts[i].coordinates(x) for i, x in zip(self.positions, self._columns, strict=True)], axis=1)

    def allows(self, parts: Sequence[Any], middles: Any, active: Any, xp: Any = np) -> Any:
        """Returns the mask bool[...] of coordinates of values, by hyperparameter f[...], with masks of active ones."""
        return xp.any(self._distances(parts, middles, active, None, xp) <= _SAME, axis=-1)

    def nearest(self, parts: Sequence[Any], middles: Any, active: Any, is_fixed: Sequence[Any], xp: Any = np) -> Any:
        """Returns the coordinates f[...] of the nearest rows by position; fixed coordinates decide first."""
        row = xp.argmin(self._distances(parts, middles, active, is_fixed, xp), axis=-1)
        table = xp.asarray(self.coordinates(parts), middles[self.positions[0]].dtype)[row]
        columns = {i: table[..., k] for k, i in enumerate(self.positions)}
        return {i: xp.where(xp.isnan(column) | is_fixed[i], middles[i], column) for i, column in columns.items()}

    def _distances(
        self, parts: Sequence[Any], middles: Any, active: Any, is_fixed: Sequence[Any] | None, xp: Any
    ) -> Any:
        """Returns the distances f[..., n] of coordinates from all rows: sums over the active hyperparameters."""
        total: Any = 0.0
        for i, column in zip(self.positions, self.coordinates(parts).T, strict=True):
            middle, is_missing = middles[i][..., None], np.isnan(column)
            shape = (1,) * (middle.ndim - 1) + (-1,)
            rows = xp.asarray(np.where(is_missing, 1e3, column), middle.dtype).reshape(shape)
            distance = xp.abs(middle - rows)
            if getattr(parts[i], "ordered", True) is False:
                distance = xp.where(distance > _SAME, xp.maximum(distance, 1.0), distance)
            if is_fixed is not None:
                distance = distance * xp.where(is_fixed[i], 1e4, 1.0)
            total = total + xp.where(active[i][..., None], distance, 0.0)
        return total
