"""Rules that points of the unit cube must satisfy, in terms of positions of hyperparameters.

The functions take arrays of NumPy or JAX, or the numbers and truth values of one configuration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, or_
from typing import Any

import numpy as np

from dre_jax.runtime.arrays import namespace
from dre_jax.space import scalar_functions

_SAME = 1e-6
"""Maximum distance of coordinates that count as equal, and of sums, relative to their largest term or bound."""
_NEARLY = 1e-3
"""Relative distance of a sum from its bounds up to which it is moved there."""


Parts = Sequence[Any]
"""The hyperparameters of a layout, by position: `Number`, `Level`."""


def functions_of(value: Any) -> Any:
    """Returns the functions that compute with a value: NumPy's or JAX's, or `scalar_functions` for one of Python."""
    return namespace(value) if hasattr(value, "__array_namespace__") else scalar_functions


@dataclass(frozen=True)
class Combination:
    """Values that are forbidden together: positions of hyperparameters, and levels or numbers of each."""

    values: tuple[tuple[int, tuple[float, ...]], ...]

    def allows(self, parts: Parts, values: Any, active: Any) -> Any:
        """Returns the mask bool[...] of values, by hyperparameter f[...], with masks of active ones."""
        matches = (active[i] & reduce(or_, (parts[i].is_same(values[i], x) for x in xs)) for i, xs in self.values)
        is_match = reduce(and_, matches)
        return functions_of(is_match).logical_not(is_match)

    def exact(self, parts: Parts, values: Any, active: Any) -> dict[int, float]:
        """Returns no numbers, by position: a value is forbidden or is not."""
        return {}


@dataclass(frozen=True)
class Linear:
    """Bounds of a weighted sum of numbers: an order of two of them, or a sum of several."""

    weights: tuple[tuple[int, float], ...]
    """Positions and weights."""
    low: float
    high: float
    is_order: bool = False
    """Whether the rule orders two numbers that are both active. In other rules, inactive numbers count as 0."""
    strict: bool = False
    """Whether the sum of an order is below the upper bound."""

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

    def _is_exempt(self, active: Any) -> Any:
        """Returns the mask bool[...] of points that the rule is not about."""
        applies = self.applies(active)
        return functions_of(applies).logical_not(applies)

    def total(self, values: Any, active: Any) -> Any:
        """Returns the sums f[...] of values, by hyperparameter f[...], with masks of active ones."""
        return sum(self._terms(values, active))

    def allows(self, parts: Parts, values: Any, active: Any) -> Any:
        """Returns the mask bool[...] of values, by hyperparameter f[...], with masks of active ones."""
        if self.strict:
            return (self.total(values, active) < self.high) | self._is_exempt(active)
        excess, size = self._excess(values, active)
        room = self._rounding(parts, values) + (0.0 if self.is_order else _SAME * size)
        return (abs(excess) <= room) | self._is_exempt(active)

    def exact(self, parts: Parts, values: Any, active: Any) -> dict[int, float]:
        """Returns the real number with the largest term, by position, with which a sum that is nearly right is right.

        ``values`` are those of one configuration, as numbers of Python.
        """
        excess, size = self._excess(values, active)
        if not excess or not self.applies(active):
            return {}
        in_float32 = self._rounding(parts, {i: np.float32(values[i]) for i in self.positions})
        if abs(excess) > in_float32 + (0.0 if self.is_order else _NEARLY * size):
            return {}
        real = [(abs(weight * values[i]), i, weight) for i, weight in self.weights if active[i] and not parts[i].levels]
        if not real:
            return {}
        _, i, weight = max(real)
        low, high = parts[i].ends
        return {i: float(min(max(values[i] - excess / weight, low), high))}

    def _excess(self, values: Any, active: Any) -> tuple[Any, Any]:
        """Returns how far sums f[...] are outside of their bounds, and the size f[...] of their terms and bounds."""
        xp, terms = functions_of(values[self.positions[0]]), self._terms(values, active)
        total = sum(terms)
        excess = xp.maximum(total - self.high, 0.0) + xp.minimum(total - self.low, 0.0)
        return excess, reduce(xp.maximum, map(abs, terms), self._largest_bound)

    def _rounding(self, parts: Parts, values: Any) -> Any:
        """Returns the rounding errors f[...] of sums whose numbers were coordinates."""
        return sum(abs(weight) * parts[i].rounding(values[i]) for i, weight in self.weights)

    @cached_property
    def _largest_bound(self) -> float:
        return max((abs(bound) for bound in (self.low, self.high) if math.isfinite(bound)), default=0.0)

    def _terms(self, values: Any, active: Any) -> list[Any]:
        return [functions_of(values[i]).where(active[i], weight * values[i], 0.0) for i, weight in self.weights]

    def limits(self, i: int, part: Any, ends: Mapping[int, tuple[Any, Any]], active: Any) -> Any:
        """Returns the least and the greatest value f[...] of number ``i`` that leave room for the other numbers.

        ``ends`` are the bounds f[...] of all numbers of the rule, by position, and ``active`` the masks of active ones.
        """
        xp = namespace(active[i])
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
        lower = part.neighbour(xp.asarray(lower), 1.0, or_equal=not (self.strict and coefficient < 0))
        upper = part.neighbour(xp.asarray(upper), -1.0, or_equal=not (self.strict and coefficient > 0))
        applies = self.applies(active)
        return xp.where(applies, lower, -np.inf), xp.where(applies, upper, np.inf)


@dataclass(frozen=True)
class Table:
    """The values that hyperparameters may have together."""

    positions: tuple[int, ...]
    rows: tuple[tuple[float, ...], ...]
    """Levels or numbers, NaN for a hyperparameter that is inactive."""

    @cached_property
    def _columns(self) -> tuple[np.ndarray, ...]:
        """k arrays f64[n]: `rows`, whose conversion takes milliseconds."""
        return tuple(np.array(self.rows, np.float64).T.copy())

    def coordinates(self, parts: Parts) -> np.ndarray:
        """Returns the coordinates f64[n, k] of the rows in a space's parts."""
        return np.stack([parts[i].coordinates(x) for i, x in zip(self.positions, self._columns, strict=True)], axis=1)

    def allows(self, parts: Parts, values: Any, active: Any) -> Any:
        """Returns the mask bool[...] of values, by hyperparameter f[...], with masks of active ones."""
        xp, matches = functions_of(values[self.positions[0]]), []
        for i, column in zip(self.positions, self._columns, strict=True):
            value, is_active = xp.expand_dims(values[i], -1), xp.expand_dims(active[i], -1)
            is_same = parts[i].is_same(value, _along_last_axis(column, value))
            matches.append(xp.where(is_active, is_same, True))
        return xp.any(reduce(and_, matches), axis=-1)

    def exact(self, parts: Parts, values: Any, active: Any) -> dict[int, float]:
        """Returns the real numbers of the nearest row, by position, if it is the row of a point in float32.

        ``values`` are those of one configuration, as numbers of Python.
        """
        real = [i for i in self.positions if active[i] and not parts[i].levels]
        distances: Any = 0.0
        for i, column in zip(self.positions, self._columns, strict=True):
            if i in real:
                distances = distances + abs(parts[i].coordinates(column) - parts[i].coordinates(values[i]))
            elif active[i]:
                distances = distances + np.where(parts[i].is_same(values[i], column), 0.0, np.inf)
        is_near = distances <= _SAME
        if not real or not is_near.any():
            return {}
        row = self.rows[int(np.argmin(np.where(is_near, distances, np.inf)))]
        return {i: x for i, x in zip(self.positions, row, strict=True) if i in real}

    def nearest(self, parts: Parts, middles: Any, active: Any, is_fixed: Sequence[Any]) -> Any:
        """Returns the coordinates f[...] of the nearest rows by position; fixed coordinates decide first."""
        first = middles[self.positions[0]]
        xp = namespace(first)
        row = xp.argmin(self._distances(parts, middles, active, is_fixed), axis=-1)
        table = xp.asarray(self.coordinates(parts), first.dtype)[row]
        columns = {i: table[..., k] for k, i in enumerate(self.positions)}
        return {i: xp.where(xp.isnan(column) | is_fixed[i], middles[i], column) for i, column in columns.items()}

    def _distances(self, parts: Parts, middles: Any, active: Any, is_fixed: Sequence[Any]) -> Any:
        """Returns the distances f[..., n] of coordinates from all rows: sums over the active hyperparameters."""
        total: Any = 0.0
        for i, column in zip(self.positions, self.coordinates(parts).T, strict=True):
            middle, xp = middles[i][..., None], namespace(middles[i])
            distance = xp.abs(middle - _along_last_axis(np.where(np.isnan(column), 1e3, column), middle))
            if getattr(parts[i], "ordered", True) is False:
                distance = xp.where(distance > _SAME, xp.maximum(distance, 1.0), distance)
            distance = distance * xp.where(is_fixed[i], 1e4, 1.0)
            total = total + xp.where(active[i][..., None], distance, 0.0)
        return total


def _along_last_axis(column: np.ndarray, like: Any) -> Any:
    """Returns numbers f64[n] as f[..., n], with the dtype and the number of dimensions of an array f[..., 1]."""
    xp = functions_of(like)
    if xp is scalar_functions:
        return column
    return xp.asarray(column, like.dtype).reshape((1,) * (like.ndim - 1) + (-1,))
