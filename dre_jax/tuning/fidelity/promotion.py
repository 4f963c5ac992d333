"""Which paused training goes on: asynchronous successive halving (Li et al. 2020), with promotion.

The best half goes on at each budget, so that each budget costs about as much as any other. The half is rounded up: once
some trainings have started, the best one goes on to the highest budget at once, where rounding down would need 2^k
trainings for the first one that passes k budgets. The more trainings have started, the less likely a further one is the
best of all, and the larger is the share that goes on: two of three after 45, three of four after 80.

Several objectives rank trainings by non-dominated sorting, and those of a front by their contributions to its
hypervolume, as SMS-EMOA does (Beume, Naujoks and Emmerich 2007).
"""

import math

import numpy as np

from dre_jax.tuning.objectives.front import (
    front_numbers,
    has_diverged,
    unit_reference,
    unit_values,
    volume_contributions,
)

_N_BY_HALVES = 20
"""Number of trainings up to which half of them go on."""


def training_to_promote(
    responses: np.ndarray,
    lengths: np.ndarray,
    may_resume: np.ndarray,
    *,
    n_first: int,
    reference: np.ndarray | None = None,
) -> int | None:
    """Returns the training to resume: the best one that may, at the highest budget where one is among the best.

    A training is compared with all that have reached its budget, those that went on included; `share_going_on` says
    how many of these are the best.

    Args:
      responses: f64[n, G, M] at the budgets in M objectives, higher is better.
      lengths: i[n], the number of budgets that each training has reached.
      may_resume: bool[n], the trainings that are paused.
      n_first: number of trainings at the lowest budget before any goes on.
      reference: f64[M], of `ranks_at_budget`.

    Returns:
      The index of the training; None if none is to go on.

    Example:
      >>> responses, lengths = np.array([[[0.1], [0.4]], [[0.3], [0.0]], [[0.2], [0.0]]]), np.array([2, 1, 1])
      >>> training_to_promote(responses, lengths, lengths < 2, n_first=1)
      1
    """
    if len(responses) < n_first:
        return None
    share = share_going_on(len(responses))
    for rung in range(responses.shape[1] - 2, -1, -1):
        reached = np.flatnonzero(lengths > rung)
        if not (may_resume[reached] & (lengths[reached] == rung + 1)).any():
            continue
        ranks = ranks_at_budget(responses[reached, rung], reference)
        best = reached[np.argsort(ranks, kind="stable")][: math.ceil(share * len(reached) - 1e-9)]
        candidates = [int(i) for i in best if lengths[i] == rung + 1 and may_resume[i]]
        if candidates:
            return candidates[0]
    return None


def share_going_on(n: int) -> float:
    """Returns the share of n trainings that goes on at each budget.

    Example:
      >>> [round(share_going_on(n), 2) for n in (8, 20, 45, 80)]
      [0.5, 0.5, 0.67, 0.75]
    """
    return 1.0 - 0.5 * math.sqrt(min(1.0, _N_BY_HALVES / n))


def ranks_at_budget(responses: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Returns the ranks i[n] of responses f64[n, M] at a budget: 1 is the best, and equal ones share the least rank.

    NaN, as in a report, counts as minus infinity.

    Of several objectives, trainings that have diverged in one are last. The reference point f64[M] of the hypervolume
    is by default worse than all responses, as it is if none exceeds the one that is given.

    Example:
      >>> ranks_at_budget(np.array([[1.0], [3.0], [1.0]])).tolist()
      [2, 1, 2]
      >>> ranks_at_budget(np.array([[0.0, 1.0], [0.4, 0.4], [0.5, 0.5], [1.0, 0.0]])).tolist()
      [2, 4, 1, 2]
    """
    responses = np.where(np.isnan(responses), -np.inf, responses)
    keys = -responses if responses.shape[1] == 1 else _front_keys(responses, reference)
    _, numbers, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    ranks: np.ndarray = (1 + np.cumsum(counts) - counts)[numbers.ravel()]
    return ranks


def _front_keys(responses: np.ndarray, reference: np.ndarray | None) -> np.ndarray:
    """Returns what orders trainings of several objectives, f64[n, 2], lower is better: fronts, then contributions."""
    where = np.ones(len(responses), bool)
    diverged = has_diverged(responses, where)
    fronts = np.where(diverged, np.inf, front_numbers(responses, ~diverged))
    values, worst = unit_values(responses, where), None
    if reference is not None and (responses > reference).all(axis=1).any():
        worst = unit_reference(responses, reference, where)
    volumes = np.zeros(len(responses))
    for front in np.unique(fronts[~diverged]):
        volumes[fronts == front] = volume_contributions(values[fronts == front], worst)
    return np.column_stack([fronts, -volumes])
