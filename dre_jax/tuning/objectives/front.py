"""The front of a study's trials, and the order of trials by it; of arrays of NumPy or JAX."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dre_jax.data.tasks import TAIL_REACH
from dre_jax.runtime.arrays import loop_while, namespace
from dre_jax.suggest.hypervolume import Boxes, decompose, dominates, exclusive_volumes, with_slots
from dre_jax.suggest.polar import Front, exclusive_volumes_by_rays
from dre_jax.tuning.trials.responses import clip_responses, medians, relative_errors

_MARGIN = 0.1  # of the range of the values, which is 1
_MOST_BY_BOXES = 3  # objectives whose boxes are few
_END = 1e30
"""Crowding distance at an end of the front, beside which any other is nothing."""


def front_numbers(values: Any, where: Any) -> Any:
    """Returns the fronts of non-dominated sorting f[C], 0 the first, of values f[C, M] in slots bool[C].

    Example:
      >>> front_numbers(np.array([[1.0, 5.0], [3.0, 2.0], [0.0, 4.0]]), np.ones(3, bool)).tolist()
      [0.0, 0.0, 1.0]
    """
    return _by_front(values, where, lambda front, level: level)


def order_by_front(values: Any, where: Any) -> Any:
    """Returns a response f[C] for values f[C, M] in slots bool[C]: higher is better, by fronts, then by distance.

    The fronts are those of non-dominated sorting, and the distance is the crowding distance of NSGA-II (Deb et al.
    2002). The first front has responses in [0, 1], the next one in [-2, -1], and so on. Values are in [0, 1].
    """

    def responses(front: Any, level: Any) -> Any:
        distance = _crowding_distance(values, front)
        return distance / (1.0 + distance) - 2.0 * level

    return _by_front(values, where, responses)


def _by_front(values: Any, where: Any, numbers: Callable[[Any, Any], Any]) -> Any:
    """Returns the numbers f[C] that a function of the mask of a front bool[C] and its level, 0 the first, returns."""
    xp = namespace(values)
    beats = dominates(values)

    def rank_front(carry: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        is_unranked, result, level = carry
        front = is_unranked & ~xp.any(beats & is_unranked[:, None], axis=0)
        return is_unranked & ~front, xp.where(front, numbers(front, level), result), level + 1.0

    first = where, xp.zeros(len(values), values.dtype), xp.zeros((), values.dtype)
    return loop_while(lambda carry: xp.any(carry[0]), rank_front, first)[1]


def _crowding_distance(values: Any, front: Any) -> Any:
    """Returns distances f[C] of the neighbours in the front bool[C], in each objective, summed; huge at its ends."""
    xp, numbers = namespace(values), np.arange(len(values), dtype=np.int32)
    n, distance = xp.sum(front, dtype=np.int32), xp.zeros(len(values), values.dtype)
    for column in values.T:
        column = xp.where(front, column, 2.0)  # after all others
        order = xp.argsort(column, stable=True)
        ordered = column[order]
        span = ordered[xp.maximum(n - 1, 0)] - ordered[0]
        gaps = (xp.roll(ordered, -1) - xp.roll(ordered, 1)) / xp.where(span > 0, span, 1.0)
        gaps = xp.where((numbers == 0) | (numbers >= n - 1), _END, gaps)
        distance = distance + gaps[xp.argsort(order, stable=True)]
    return distance


def unit_values(values: Any, where: Any) -> Any:
    """Returns values f[C, M] with the range [0, 1] in each objective, without far outliers or infinities.

    ``where`` bool[C] are the filled slots; others have no meaning.
    """
    xp = namespace(values)
    columns, low, high = _clipped_columns(values, where)
    # Halving first keeps the spread finite when the values span the whole range of a float.
    spread = high / 2.0 - low / 2.0
    above = columns / 2.0 - (low / 2.0)[None]
    return xp.where(where[:, None] & (spread > 0)[None], above / xp.where(spread > 0, spread, 1.0)[None], 0.5)


def unit_reference(values: Any, reference: Any, where: Any) -> Any:
    """Returns a reference point f[M] on the scale on which `unit_values` puts values f[C, M] in slots bool[C].

    Example:
      >>> unit_reference(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([0.0, 7.0]), np.array([True, True]))
      array([-0.5,  2.5])
    """
    xp = namespace(values)
    _, low, high = _clipped_columns(values, where)
    spread = high - low
    return xp.where(spread > 0, reference - low, reference - low + 0.5) / xp.where(spread > 0, spread, 1.0)


def unit_errors(values: Any, errors: Any, where: Any) -> Any:
    """Returns standard errors f[C, M] on the scale on which `unit_values` puts values f[C, M] in slots bool[C].

    Example:
      >>> unit_errors(np.array([[1.0, 5.0], [3.0, 5.0]]), np.ones((2, 2)), np.array([True, True])).tolist()
      [[0.5, 1.0], [0.5, 1.0]]
    """
    columns = _clipped_columns(values, where)[0]
    relative = [relative_errors(error, column, where) for error, column in zip(errors.T, columns.T, strict=True)]
    return namespace(values).stack(relative, axis=1)


def volume_contributions(values: Any, reference: Any = None) -> Any:
    """Returns the hypervolume f64[n] that no other point of a front f64[n, M] has; equal points count as one.

    Values are from `unit_values`. The reference point f64[M] is by default that of `region_above`.

    Example:
      >>> volume_contributions(np.array([[0.0, 1.0], [0.5, 0.5], [1.0, 0.0]])).round(3).tolist()
      [0.05, 0.25, 0.05]
    """
    m = values.shape[1]
    worst = np.full(m, -_MARGIN) if reference is None else reference
    points, inverse = np.unique(values, axis=0, return_inverse=True)
    volumes = exclusive_volumes if m <= _MOST_BY_BOXES else exclusive_volumes_by_rays
    return volumes(points, worst)[inverse.ravel()]


def _clipped_columns(values: Any, where: Any) -> tuple[Any, Any, Any]:
    """Returns values f[C, M] without far outliers, and the least and largest in slots bool[C], f[M]."""
    xp = namespace(values)
    columns = xp.stack([clip_responses(column, where) for column in values.T], axis=1)
    low = xp.min(xp.where(where[:, None], columns, xp.inf), axis=0, initial=xp.inf)
    high = xp.max(xp.where(where[:, None], columns, -xp.inf), axis=0, initial=-xp.inf)
    filled = xp.any(where)
    return columns, xp.where(filled, low, 0.0), xp.where(filled, high, 0.0)


def has_diverged(values: Any, where: Any) -> Any:
    """Returns which trials in slots bool[C] have a value f[C, M] that no process explains: infinitely bad or nearly so.

    The bound of an objective is 10,000 times as far below the median of its finite values as the best is above it. No
    trial has such a value if fewer than two others would be left.

    Example:
      >>> values = np.array([[1.0, 5.0], [3.0, -np.inf], [2.0, 4.0], [-1e200, 3.0], [0.0, 0.0]])
      >>> has_diverged(values, np.ones(5, bool)).tolist()
      [False, True, False, True, False]
    """
    xp = namespace(values)
    finite = where[:, None] & xp.isfinite(values)
    scaled = values / 4.0 / TAIL_REACH  # so that sums and differences of finite numbers are finite
    middle = medians(scaled, where)
    best = xp.max(xp.where(finite, scaled, -xp.inf), axis=0, initial=-xp.inf)
    least = xp.min(xp.where(finite, scaled, xp.inf), axis=0, initial=xp.inf)
    bound = xp.where(best > middle, middle - TAIL_REACH * best + TAIL_REACH * middle, -xp.inf)
    mask = where & xp.any((scaled < xp.maximum(bound, least)[None]) & xp.any(finite, axis=0)[None], axis=1)
    return mask & (xp.sum(where & ~mask) >= 2)


def region_above(
    values: Any, order: Any, feasible: Any, where: Any, capacity: int, reference: Any = None
) -> Boxes | Front:
    """Returns what the front of the feasible trials leaves; the front of all trials if none is feasible.

    These are boxes for two and three objectives, and the front itself for more. ``values`` f[C, M] in slots bool[C] are
    from `unit_values`, and ``order`` f[C] from `order_by_front`. A front with more points than the capacity of the
    history is thinned.

    The reference point f[M] is by default below the worst value of all trials in each objective, by a tenth of the
    range. With a point below the worst of the front (Ishibuchi et al. 2018), a search of two objectives covered half of
    the hypervolume: early fronts are short, and points beyond their ends do not count.
    """
    xp, m = namespace(values), values.shape[1]
    rows = xp.where(xp.any(feasible), feasible, where)
    front = rows & ~xp.any(dominates(values) & rows[:, None], axis=0)
    best = xp.argsort(xp.where(front, -order, xp.inf), stable=True)[: max(capacity, 8)]
    points, exist = values[best], front[best]
    worst = xp.full(m, -_MARGIN, values.dtype) if reference is None else reference
    if m <= _MOST_BY_BOXES:
        return with_slots(decompose(points, exist, worst), len(best) + 1 if m == 2 else 2 * len(best) + 1)
    highest = xp.max(xp.where(exist[:, None], points, -xp.inf), axis=0, initial=-xp.inf)
    top = xp.maximum(highest, worst + _MARGIN)
    return Front(xp.concatenate([worst[None], top[None], xp.where(exist[:, None], points, worst[None])]).T, exist)
