"""Projection of points to the rules of a space, one rule after the other.

Tables come first, then counts of what is in use. Numbers in orders and sums get their values one by one, each in the
interval that leaves room for the following ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.runtime.arrays import namespace
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.layout_counts import Cardinality
from dre_jax.space.layout_parts import Number
from dre_jax.space.layout_rules import Linear, Table

Points = np.ndarray


def allowed_points(layout: SpaceLayout, draw: Callable[[int], Points], n: int, fixed: Points | None = None) -> Points:
    """Returns n points f[n, P] that the rules of a layout allow, the first that are drawn; fewer points are repeated.

    ``draw`` returns points f[number, P] for a number that is a power of two, as n is. ``fixed`` f[P] are coordinates
    that all points have, NaN for the others. Rows of tables are drawn, and one number of an exact sum follows from the
    others. If few points are allowed, the others are moved (see `move`).

    Raises `ConfigError` if no point of 64 n is allowed.
    """
    if not layout.rules:
        return draw(n)
    for factor in (1, 4, 16, 64):
        points = draw_counts(layout, draw_rows(layout, draw(factor * n).astype(np.float64), fixed), fixed)
        completed = complete_sums(layout, points, fixed)
        valid_points = completed[layout.is_allowed(completed)]
        if len(valid_points) < n and (factor == 64 or (factor > 1 and not len(valid_points))):
            moved = move(layout, points, fixed, spread=True)
            valid_points = np.vstack([valid_points, moved[layout.is_allowed(moved)]])
        if len(valid_points) >= n:
            return valid_points[:n]
    if not len(valid_points):
        raise ConfigError(f"the rules of the space must allow some configurations, but allow none of {64 * n}")
    return valid_points[np.arange(n) % len(valid_points)]


def fix_coordinates(point: np.ndarray, fixed_coordinates: np.ndarray) -> np.ndarray:
    """Returns a point f64[P] with the fixed coordinates, those other than NaN."""
    return np.where(np.isnan(fixed_coordinates), point, fixed_coordinates)


def draw_rows(layout: SpaceLayout, points: Points, fixed: Points | None = None) -> Points:
    """Returns points f[n, P] with rows of the tables, drawn evenly by the first coordinate of each."""
    points = points.copy()
    for table in layout.rules:
        if not isinstance(table, Table):
            continue
        positions, rows = list(table.positions), table.coordinates(layout.parts)
        if fixed is not None:
            rows = rows[~(np.abs(rows - fixed[positions]) > 1e-6).any(axis=1)]
        if len(rows):
            drawn = rows[np.minimum((points[:, positions[0]] * len(rows)).astype(int), len(rows) - 1)]
            points[:, positions] = np.where(np.isnan(drawn), points[:, positions], drawn)
    return points


def draw_counts(layout: SpaceLayout, points: Points, fixed: Points | None = None) -> Points:
    """Returns points f[n, P] in which as many hyperparameters are in use as the counts say."""
    points = points.copy()
    tables = {i for rule in layout.rules if isinstance(rule, Table) for i in rule.positions}
    is_fixed = [np.bool_(i in tables or (fixed is not None and not np.isnan(fixed[i]))) for i in range(layout.n_parts)]
    for rule in layout.rules:
        if isinstance(rule, Cardinality):
            for i, column in rule.draw(layout.parts, points, layout.active(points), is_fixed).items():
                points[:, i] = column
    return points


def complete_sums(layout: SpaceLayout, points: Points, fixed: Points | None = None) -> Points:
    """Returns points f[n, P] with one number of each exact sum set to the remainder of the others, if possible."""
    points, sequence = points.copy(), _sequence(layout)
    for rule in layout.rules:
        if not isinstance(rule, Linear) or not rule.is_exact:
            continue
        active, values = layout.active(points), layout.values(points)
        is_counted = _counted(layout, values, active)
        is_left, remainder = rule.applies(active), rule.low - rule.total(values, active)
        for i, weight in sorted(rule.weights, key=lambda item: -sequence.index(item[0])):
            if fixed is None or np.isnan(fixed[i]):
                part = cast(Number, layout.parts[i])
                value, (low, high) = values[i] + remainder / weight, part.ends
                is_changed = is_left & active[i] & is_counted.get(i, True)
                is_left &= ~is_changed
                is_changed &= (value >= low) & (value <= high)
                points[is_changed, i] = part.coordinates(value[is_changed])
    return points


def move(layout: SpaceLayout, points: Any, fixed: Any = None, *, spread: bool = False) -> Any:
    """Returns points f[..., P] in the nearest rows of tables, with numbers in the intervals that orders and sums leave.

    As many hyperparameters are in use as counts say; the ones nearest to their unused values are the first to go.
    Coordinates ``fixed`` f[P] stay; they are NaN for the others. With ``spread``, numbers are drawn from the interval
    that is left, not only moved into it: uniform points stay uniform in a chain or a sum of real numbers with equal
    bounds. Points are of NumPy or JAX.
    """
    if not any(isinstance(rule, (Linear, Table, Cardinality)) for rule in layout.rules):
        return points
    xp = namespace(points)
    is_fixed = [xp.zeros((), bool) if fixed is None else ~xp.isnan(fixed[i]) for i in range(layout.n_parts)]
    columns, active = [points[..., i] for i in range(layout.n_parts)], layout.active(points)
    for table in layout.rules:
        if isinstance(table, Table):
            for i, column in table.nearest(layout.parts, layout.middles(points), active, is_fixed).items():
                columns[i], is_fixed[i] = column, xp.ones((), bool)
    for count in layout.rules:
        if isinstance(count, Cardinality):
            active = layout.active(xp.stack(columns, axis=-1))
            switched, in_use = count.nearest(layout.parts, columns, active, is_fixed)
            for i, column in switched.items():
                columns[i], is_fixed[i] = column, is_fixed[i] | (active[i] & ~in_use[i])
    sequence, rules = _sequence(layout), [rule for rule in layout.rules if isinstance(rule, Linear)]
    parts: dict[int, Number] = {i: cast(Number, layout.parts[i]) for i in sequence}
    values = {i: part.values(columns[i]) for i, part in parts.items()}
    ends = {i: tuple(xp.where(is_fixed[i], values[i], end) for end in part.ends) for i, part in parts.items()}

    def limits(i: int) -> tuple[Any, Any]:
        low, high = parts[i].ends
        lower, upper = ends[i]
        for rule in rules:
            if i in rule.positions:
                least, greatest = rule.limits(i, parts[i], ends, active)
                lower, upper = xp.maximum(lower, least), xp.minimum(upper, greatest)
        return xp.clip(lower, low, high), xp.clip(upper, low, high)

    for i in reversed(sequence):
        ends[i] = limits(i)
    for i in sequence:
        lower, upper = limits(i)
        part, value = parts[i], values[i]
        if spread:
            half = 0.5 / part.levels if part.levels and not part.search.log else 0.0
            low, high = part.coordinates(lower) - half, part.coordinates(upper) + half
            n = _n_sharing(rules, parts, sequence, i, is_fixed)
            share = xp.where(n > 0, 1.0 - (1.0 - columns[i]) ** (1.0 / abs(n)), columns[i] ** (1.0 / abs(n)))
            value = part.values(low + (high - low) * share)
        value = xp.where(is_fixed[i], values[i], xp.clip(value, lower, xp.maximum(lower, upper)))
        is_moved = active[i] & (value != values[i])
        columns[i] = xp.where(is_moved, xp.clip(part.coordinates(value), 0.0, 1.0), columns[i])
        ends[i] = value, value
    return xp.stack(columns, axis=-1)


def _n_sharing(
    rules: list[Linear], parts: dict[int, Number], sequence: list[int], i: int, is_fixed: Sequence[Any]
) -> Any:
    """Returns how many numbers, itself included, share the room above a number; negative if the room is below."""
    xp, most_sharing = namespace(is_fixed[i]), cast(Any, 1)
    for rule in rules:
        later = [j for j in rule.positions if sequence.index(j) > sequence.index(i)]
        if i not in rule.positions or not later:
            continue
        if rule.is_order:
            n = 1 + abs(_n_sharing(rules, parts, sequence, later[0], is_fixed))
        else:
            terms = [[weight * end for end in parts[j].ends] for j, weight in rule.weights]
            is_above = rule.high - sum(map(min, terms)) <= sum(map(max, terms)) - rule.low
            n_free = sum(xp.where(is_fixed[j], 0, 1) for j in later) + (not rule.is_exact)
            n = xp.maximum(n_free, 1) * (1 if is_above == (dict(rule.weights)[i] > 0) else -1)
        most_sharing = xp.where(abs(n) > abs(most_sharing), n, most_sharing)
    return most_sharing


def _counted(layout: SpaceLayout, values: Sequence[Any], active: Sequence[Any]) -> dict[int, Any]:
    """Returns masks bool[n] by position: which hyperparameters are in use, of those that counts are about."""
    masks: dict[int, Any] = {}
    for rule in layout.rules:
        if isinstance(rule, Cardinality):
            for i, mask in rule.in_use(layout.parts, values, active).items():
                masks[i] = mask & masks.get(i, True)
    return masks


def _sequence(layout: SpaceLayout) -> list[int]:
    """Returns the positions of numbers in orders and sums: smaller ones first, then whole ones."""
    rules = [rule for rule in layout.rules if isinstance(rule, Linear)]
    orders = [rule.positions for rule in rules if rule.is_order]
    positions = dict.fromkeys(i for rule in rules for i in rule.positions)
    sequence: list[int] = []
    while positions:
        ready = [i for i in positions if not any(larger == i and smaller in positions for smaller, larger in orders)]
        sequence.append(min(ready or positions, key=lambda i: not layout.sizes[i]))
        del positions[sequence[-1]]
    return sequence
