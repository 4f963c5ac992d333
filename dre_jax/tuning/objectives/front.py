"""The front of a study's trials, and the order of trials by it."""

import numpy as np
import numpy.typing as npt

from dre_jax.data.tasks import clip_tail, unit_scale
from dre_jax.suggest.hypervolume import Boxes, Floats, decompose, dominates, pad_boxes
from dre_jax.tuning.trials.responses import clip_responses

_MARGIN = 0.1  # of the range of the values, which is 1


def order_by_front(values: Floats) -> Floats:
    """Returns a response f64[n] for values f64[n, M]: higher is better, by fronts, then by distance from others.

    The fronts are those of non-dominated sorting, and the distance is the crowding distance of NSGA-II (Deb et al.
    2002). The first front has responses in [0, 1], the next one in [-2, -1], and so on.
    """
    beats = dominates(values)
    n_better = beats.sum(axis=0)
    is_unranked, response = np.ones(len(values), bool), np.empty(len(values))
    level = 0
    while is_unranked.any():
        front = is_unranked & (n_better == 0)
        distance = _crowding_distance(values[front])
        response[front] = distance / (1.0 + distance) - 2.0 * level
        is_unranked &= ~front
        n_better = n_better - beats[front].sum(axis=0)
        level += 1
    return response


def _crowding_distance(values: Floats) -> Floats:
    """Returns distances f64[n] of the neighbours in each objective, summed; huge at an objective's ends."""
    distance = np.zeros(len(values))
    for column in values.T:
        order = np.argsort(column, kind="stable")
        span = np.ptp(column)
        gaps = np.full(len(values), 1e300)
        gaps[1:-1] = (column[order[2:]] - column[order[:-2]]) / (span if span > 0 else 1.0)
        distance[order] += gaps
    return distance


def unit_values(values: Floats) -> Floats:
    """Returns values f64[n, M] with the range [0, 1] in each objective, without far outliers or infinities."""
    return np.stack([unit_scale(clip_responses(column)) for column in values.T], axis=1)


def unit_reference(values: Floats, reference: Floats) -> Floats:
    """Returns a reference point f64[M] on the scale on which `unit_values` puts values f64[n, M].

    Example:
      >>> unit_reference(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([0.0, 7.0]))
      array([-0.5,  2.5])
    """
    columns = np.stack([clip_responses(column) for column in values.T], axis=1)
    low, spread = columns.min(axis=0), np.ptp(columns, axis=0)
    return np.where(spread > 0, reference - low, reference - low + 0.5) / np.where(spread > 0, spread, 1.0)


def has_diverged(values: Floats) -> npt.NDArray[np.bool_]:
    """Returns which of n trials have a value f64[n, M] that no process explains: infinitely bad, or nearly so.

    The bound of an objective is 10,000 times as far below the median of its finite values as the best is above it. No
    trial has such a value if fewer than two others would be left.

    Example:
      >>> has_diverged(np.array([[1.0, 5.0], [3.0, -np.inf], [2.0, 4.0], [-1e200, 3.0], [0.0, 0.0]])).tolist()
      [False, True, False, True, False]
    """
    mask = np.zeros(len(values), bool)
    for column in values.T:
        finite = column[np.isfinite(column)]
        if len(finite):
            mask |= column < clip_tail(finite).min()
    return mask if np.sum(~mask) >= 2 else np.zeros(len(values), bool)


def boxes_above(
    values: Floats,
    order: Floats,
    feasible: npt.NDArray[np.bool_],
    capacity: int,
    reference: Floats | None = None,
) -> Boxes:
    """Returns the boxes that the front of the feasible trials leaves; the front of all trials if none is feasible.

    ``values`` f64[n, M] are from `unit_values`, and ``order`` f64[n] from `order_by_front`. A front with more points
    than the capacity of the history is thinned; for four objectives and more, which leave many more boxes, to a smaller
    number.

    The reference point f64[M] is by default below the worst value of all trials in each objective, by a tenth of the
    range. With a point below the worst of the front (Ishibuchi et al. 2018), a search of two objectives covered half of
    the hypervolume: early fronts are short, and points beyond their ends do not count.
    """
    rows = np.flatnonzero(feasible if feasible.any() else np.ones(len(values), bool))
    front = rows[~dominates(values[rows]).any(axis=0)]
    extra = max(values.shape[1] - 3, 0)
    front = front[np.argsort(-order[front], kind="stable")][: max(capacity // 4**extra, 8)]
    boxes = decompose(values[front], np.full(values.shape[1], -_MARGIN) if reference is None else reference)
    slots = 8 * capacity if extra else 2 * capacity + 1
    while slots < len(boxes.where):
        slots *= 4
    return pad_boxes(boxes, capacity + 2, slots)
