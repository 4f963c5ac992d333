"""Which paused training goes on: asynchronous successive halving (Li et al. 2020), with promotion."""

import math

import numpy as np

_PROMOTED = 0.5
"""Share of the trainings that reach a budget which may go on to the next one."""


def training_to_promote(
    responses: np.ndarray, lengths: np.ndarray, may_resume: np.ndarray, *, is_eager: bool
) -> int | None:
    """Returns the training to resume: the best one that may, at the highest budget where one is among the best half.

    A training is compared with all that have reached its budget, those that went on included.

    Args:
      responses: f64[n, G] at the budgets, higher is better.
      lengths: i[n], the number of budgets that each training has reached.
      may_resume: bool[n], the trainings that are paused.
      is_eager: whether the half is rounded up, so that the first training goes on at once.

    Returns:
      The index of the training; None if none is to go on.

    Example:
      >>> responses, lengths = np.array([[0.1, 0.4], [0.3, 0.0], [0.2, 0.0]]), np.array([2, 1, 1])
      >>> training_to_promote(responses, lengths, lengths < 2, is_eager=False)
      1
    """
    for rung in range(responses.shape[1] - 2, -1, -1):
        reached = np.flatnonzero(lengths > rung)
        share = _PROMOTED * len(reached)
        n = math.ceil(share) if is_eager else math.floor(share)
        best = reached[np.argsort(-responses[reached, rung], kind="stable")][:n]
        candidates = [int(i) for i in best if lengths[i] == rung + 1 and may_resume[i]]
        if candidates:
            return candidates[0]
    return None
