"""Expected hypervolume improvement of several objectives, exact for independent mixtures of Gaussians.

The hypervolume of a front is the volume of all points that exceed a reference point and that a point of the front
equals or exceeds in all objectives (Zitzler and Thiele 1999). The region that the front leaves is a union of disjoint
boxes [l, u) (Dächert et al. 2017). A value y adds prod_m ((y_m - l_m)+ - (y_m - u_m)+) in each box, so for independent
objectives the expectation is a product of one-dimensional expected improvements (Yang et al. 2019):

    EHVI = sum over boxes prod_m (E[(y_m - l_m)+] - E[(y_m - u_m)+]).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Float64, Int32

from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.search.acquisition import log_expected_improvement
from dre_jax.search.history import Components

_NOTHING = -1e30  # logarithm of the improvement on infinity; finite, for the sake of gradients


class Boxes(NamedTuple):
    """Disjoint boxes that a front leaves above a reference point, B of them for M objectives."""

    thresholds: Float[AnyArray, "M T"]
    """The coordinates of the bounds in each objective, ascending; the last is infinite."""
    lower: Int32[AnyArray, "B M"]
    """Indices of lower bounds."""
    upper: Int32[AnyArray, "B M"]
    """Indices of upper bounds."""
    where: Bool[AnyArray, " B"]
    """The filled slots."""


def dominates(values: Float[AnyArray, "n M"]) -> Bool[AnyArray, "n n"]:
    """Returns whether row i of values equals or exceeds row j in all objectives, and exceeds it in one."""
    xp = namespace(values)
    no_worse = xp.all(values[:, None] >= values[None], axis=2)
    better = xp.any(values[:, None] > values[None], axis=2)
    return no_worse & better


def decompose(front: Float[AnyArray, "n M"], where: Bool[AnyArray, " n"], reference: Float[AnyArray, " M"]) -> Boxes:
    """Returns the boxes that the points of a front leave above a reference point.

    For two objectives and more, in (n + 1)^(M - 1) slots. At most n + 1 are filled for two objectives, and at most
    2 n + 1 for three.
    """
    xp, m = namespace(front), front.shape[1]
    where = where & xp.all(front > reference[None], axis=1)
    columns = xp.where(where[:, None], front, xp.inf)
    # Equal coordinates have different ranks, so boxes between them are empty.
    ranks = xp.argsort(xp.argsort(columns, axis=0, stable=True), axis=0, stable=True).astype(np.int32) + 1
    infinite = xp.full((1, m), xp.inf, columns.dtype)
    thresholds = xp.concatenate([reference[None].astype(columns.dtype), xp.sort(columns, axis=0), infinite]).T
    lower, upper, filled = _boxes(ranks, where)
    low, high = (xp.take_along_axis(thresholds.T, bound, axis=0) for bound in (lower, upper))
    filled = filled & xp.all(low < high, axis=1)
    return Boxes(thresholds, lower, upper, filled)


def _boxes(
    ranks: Int32[AnyArray, "n m"], where: Bool[AnyArray, "*batch n"]
) -> tuple[Int32[AnyArray, "*batch B m"], Int32[AnyArray, "*batch B m"], Bool[AnyArray, "*batch B"]]:
    """Returns the bounds of boxes of a grid whose cells no point dominates, and which slots are filled.

    A sweep over the last objective, which merges boxes that stay. Points have ranks from 1 to n in each objective, and
    count where ``where`` holds.
    """
    xp, (n, m) = namespace(ranks), ranks.shape
    batch = (1,) * (where.ndim - 1)
    levels = np.arange(n + 1, dtype=np.int32).reshape(*batch, n + 1, 1)
    if m == 2:
        order = xp.argsort(ranks[:, 1])
        first = xp.where(where[..., order], ranks[order, 0].reshape(*batch, n), 0)
        highest = xp.flip(xp.maximum.accumulate(xp.flip(first, -1), axis=-1), -1)
        lower = xp.concatenate([highest, xp.zeros_like(highest[..., :1])], axis=-1)[..., None, None]
        upper, filled = xp.full_like(lower, n + 1), xp.ones(lower.shape[:-1], bool)
    else:
        is_above = ranks[:, -1].reshape(*batch, 1, n) > levels
        lower, upper, filled = _boxes(ranks[:, :-1], where[..., None, :] & is_above)
    # A box is in the same slot at each level that has it.
    same = (lower[..., :-1, :, :] == lower[..., 1:, :, :]) & (upper[..., :-1, :, :] == upper[..., 1:, :, :])
    stays = filled[..., :-1, :] & filled[..., 1:, :] & xp.all(same, axis=-1)
    never = xp.zeros_like(filled[..., :1, :])
    ends = xp.where(xp.concatenate([stays, never], axis=-2), n + 1, levels + 1)
    top = xp.flip(xp.minimum.accumulate(xp.flip(ends, -2), axis=-2), -2)
    bottom = xp.broadcast_to(levels, top.shape)
    filled = filled & ~xp.concatenate([never, stays], axis=-2)
    bounds = (xp.concatenate([part, end[..., None]], axis=-1) for part, end in ((lower, bottom), (upper, top)))
    slots = (*filled.shape[:-2], -1)
    lower, upper = (bound.reshape(*slots, m) for bound in bounds)
    return lower, upper, filled.reshape(slots)


def with_slots(boxes: Boxes, n: int) -> Boxes:
    """Returns the filled slots of boxes first, and as many empty ones that there are n."""
    xp = namespace(boxes.where)
    order = xp.argsort(~boxes.where, stable=True)[:n]
    order = xp.pad(order, (0, n - len(order)), mode="edge")
    return boxes._replace(
        lower=boxes.lower[order], upper=boxes.upper[order], where=boxes.where[order] & (np.arange(n) < len(boxes.where))
    )


@with_default_float_errors
def hypervolume(values: Float64[np.ndarray, "n M"], reference: Float64[np.ndarray, " M"]) -> float:
    """Returns the hypervolume of values above a reference point."""
    front = values[np.all(values > reference, axis=1)]
    return _volume(front[~dominates(front).any(axis=0)] - reference)


def exclusive_volumes(
    front: Float64[np.ndarray, "n M"], reference: Float64[np.ndarray, " M"]
) -> Float64[np.ndarray, " n"]:
    """Returns by how much the hypervolume of a front falls without each of its points."""
    total = hypervolume(front, reference)
    return np.array([total - hypervolume(np.delete(front, i, axis=0), reference) for i in range(len(front))])


def _volume(values: Float64[np.ndarray, "n m"]) -> float:
    """Returns the hypervolume of positive values above 0: a sum over slices of the last objective."""
    ordered = values[np.argsort(-values[:, -1])]
    sides = ordered[:, -1] - np.append(ordered[1:, -1], 0.0)
    if values.shape[1] == 2:
        return float(np.sum(np.maximum.accumulate(ordered[:, 0]) * sides)) if len(ordered) else 0.0
    return float(sum(side * _volume(ordered[: i + 1, :-1]) for i, side in enumerate(sides) if side))


def log_expected_excess(predictions: Components, thresholds: Float[Array, " T"]) -> Float[Array, "N T"]:
    """Returns log E[(y - t)+] of candidates at thresholds."""
    log_weight, mean, deviation = predictions
    finite = jnp.isfinite(thresholds)
    t = jnp.where(finite, thresholds, 0.0)[None, :, None]
    log_improvements = log_expected_improvement(-mean[:, None, :], deviation[:, None, :], -t)
    return jnp.where(finite[None, :], jax.nn.logsumexp(log_weight[None, None] + log_improvements, axis=2), _NOTHING)


def log_hypervolume_improvement(boxes: Boxes, log_excess: Float[Array, "M N T"]) -> Float[Array, " N"]:
    """Returns the log expected hypervolume improvement of candidates in the boxes that the front leaves.

    ``log_excess`` is that of `log_expected_excess` at the thresholds of each objective.
    """
    total = jnp.zeros((log_excess.shape[1], len(boxes.where)), log_excess.dtype)
    for m, excess in enumerate(log_excess):
        low, high = excess[:, boxes.lower[:, m]], excess[:, boxes.upper[:, m]]
        # Bounds that rounding makes equal leave a side of about the machine epsilon.
        total += low + jnp.log(-jnp.expm1(jnp.minimum(high - low, -float(jnp.finfo(low.dtype).eps))))
    return jax.nn.logsumexp(jnp.where(boxes.where[None, :], total, -jnp.inf), axis=1)
