"""Expected hypervolume improvement of several objectives, exact for independent mixtures of Gaussians.

The hypervolume of a front is the volume of all points that exceed a reference point and that a point of the front
equals or exceeds in all objectives (Zitzler and Thiele 1999). The region that the front leaves is a union of disjoint
boxes [l, u) (Dächert et al. 2017). A value y adds prod_m ((y_m - l_m)+ - (y_m - u_m)+) in each box, so for independent
objectives the expectation is a product of one-dimensional expected improvements (Yang et al. 2019):

    EHVI = sum over boxes prod_m (E[(y_m - l_m)+] - E[(y_m - u_m)+]).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.search.acquisition import log_expected_improvement
from dre_jax.search.history import Components

Floats = npt.NDArray[np.float64]
_Box = tuple[tuple[int, ...], tuple[int, ...]]
_NOTHING = -1e30  # logarithm of the improvement on infinity; finite, for the sake of gradients


class Boxes(NamedTuple):
    """Disjoint boxes that a front leaves above a reference point, B of them for M objectives."""

    thresholds: Any
    """f[M, T]: the coordinates of the bounds in each objective, ascending; the last is infinite."""
    lower: Any
    """i32[B, M], indices of lower bounds."""
    upper: Any
    """i32[B, M], indices of upper bounds."""
    where: Any
    """bool[B], the filled slots."""


def dominates(values: Floats) -> npt.NDArray[np.bool_]:
    """Returns bool[n, n] for values f64[n, M]: whether row i equals or exceeds row j in all, and exceeds it in one."""
    no_worse = np.all(values[:, None] >= values[None], axis=2)
    better = np.any(values[:, None] > values[None], axis=2)
    return no_worse & better


def decompose(front: Floats, reference: Floats) -> Boxes:
    """Returns the boxes that a front f64[n, M] leaves above a reference point f64[M].

    A sweep over the last objective, which merges boxes that stay: n + 1 boxes for two objectives, and at most 2 n + 1
    for three.
    """
    front = np.unique(front[np.all(front > reference, axis=1)], axis=0)
    columns = [np.unique(np.append(column, low)) for column, low in zip(front.T, reference, strict=True)]
    top = tuple(len(column) for column in columns)
    ranks = [np.searchsorted(column, front[:, m]) for m, column in enumerate(columns)]
    boxes = _undominated_boxes({tuple(map(int, point)) for point in zip(*ranks, strict=True)}, top)
    thresholds = np.full((len(columns), max(top) + 1), np.inf)
    for row, column in zip(thresholds, columns, strict=True):
        row[: len(column)] = column
    lower, upper = (np.array([box[side] for box in boxes], np.int32) for side in (0, 1))
    return Boxes(thresholds, lower, upper, np.ones(len(boxes), bool))


def _undominated_boxes(points: set[tuple[int, ...]], top: tuple[int, ...]) -> list[_Box]:
    """Returns boxes of the grid [0, top) whose cells no point dominates."""
    if len(top) == 1:
        highest = max(points, default=(0,))
        return [(highest, top)] if highest < top else []
    boxes: list[_Box] = []
    active: dict[_Box, int] = {}
    previous: set[tuple[int, ...]] | None = None
    for level in range(top[-1] - 1, -2, -1):
        projection = {point[:-1] for point in points if point[-1] > level}
        if level >= 0 and projection == previous:
            continue
        previous = projection
        current = set(_undominated_boxes(projection, top[:-1])) if level >= 0 else set()
        for lower, upper in sorted(active.keys() - current):
            boxes.append(((*lower, level + 1), (*upper, active.pop((lower, upper)))))
        active |= dict.fromkeys(current - active.keys(), level + 1)
    return boxes


def pad_boxes(boxes: Boxes, n_thresholds: int, n_boxes: int) -> Boxes:
    """Returns boxes with more slots, which change no result."""
    empty, n_more_thresholds = n_boxes - len(boxes.where), n_thresholds - boxes.thresholds.shape[1]
    return Boxes(
        np.pad(boxes.thresholds, ((0, 0), (0, n_more_thresholds)), constant_values=np.inf),
        np.pad(boxes.lower, ((0, empty), (0, 0)), mode="edge"),
        np.pad(boxes.upper, ((0, empty), (0, 0)), mode="edge"),
        np.pad(boxes.where, (0, empty)),
    )


@with_default_float_errors
def hypervolume(values: Floats, reference: Floats) -> float:
    """Returns the hypervolume of values f64[n, M] above a reference point f64[M]."""
    boxes = decompose(values[~dominates(values).any(axis=0)], reference)
    corner = np.array([row[np.isfinite(row)].max() for row in boxes.thresholds])
    bounds = np.minimum(boxes.thresholds, corner[:, None])
    objective = np.arange(len(reference))
    sides = bounds[objective, boxes.upper] - bounds[objective, boxes.lower]
    return float(np.prod(corner - reference) - np.sum(np.prod(sides, axis=1)))


def log_expected_excess(predictions: Components, thresholds: Array) -> Array:
    """Returns log E[(y - t)+] f[N, T] of candidates at thresholds f[T]."""
    log_weight, mean, deviation = predictions
    finite = jnp.isfinite(thresholds)
    t = jnp.where(finite, thresholds, 0.0)[None, :, None]
    log_improvements = log_expected_improvement(-mean[:, None, :], deviation[:, None, :], -t)
    return jnp.where(finite[None, :], jax.nn.logsumexp(log_weight[None, None] + log_improvements, axis=2), _NOTHING)


def log_hypervolume_improvement(boxes: Boxes, log_excess: Array) -> Array:
    """Returns the log expected hypervolume improvement f[N] of candidates in the boxes that the front leaves.

    ``log_excess`` f[M, N, T] is that of `log_expected_excess` at the thresholds of each objective.
    """
    total = jnp.zeros((log_excess.shape[1], len(boxes.where)), log_excess.dtype)
    for m, excess in enumerate(log_excess):
        low, high = excess[:, boxes.lower[:, m]], excess[:, boxes.upper[:, m]]
        # Bounds that rounding makes equal leave a side of about the machine epsilon.
        total += low + jnp.log(-jnp.expm1(jnp.minimum(high - low, -float(jnp.finfo(low.dtype).eps))))
    return jax.nn.logsumexp(jnp.where(boxes.where[None, :], total, -jnp.inf), axis=1)
