"""Which paused training goes on: asynchronous successive halving (Li et al. 2020), with promotion.

The best half goes on at each budget, so that each budget costs about as much as any other. The half is rounded up: once
some trainings have started, the best one goes on to the highest budget at once, where rounding down would need 2^k
trainings for the first one that passes k budgets.
"""

import numpy as np


def training_to_promote(
    responses: np.ndarray, lengths: np.ndarray, may_resume: np.ndarray, *, n_first: int
) -> int | None:
    """Returns the training to resume: the best one that may, at the highest budget where one is among the best half.

    A training is compared with all that have reached its budget, those that went on included.

    Args:
      responses: f64[n, G] at the budgets, higher is better.
      lengths: i[n], the number of budgets that each training has reached.
      may_resume: bool[n], the trainings that are paused.
      n_first: number of trainings at the lowest budget before any goes on.

    Returns:
      The index of the training; None if none is to go on.

    Example:
      >>> responses, lengths = np.array([[0.1, 0.4], [0.3, 0.0], [0.2, 0.0]]), np.array([2, 1, 1])
      >>> training_to_promote(responses, lengths, lengths < 2, n_first=1)
      1
    """
    if len(responses) < n_first:
        return None
    for rung in range(responses.shape[1] - 2, -1, -1):
        reached = np.flatnonzero(lengths > rung)
        best = reached[np.argsort(-responses[reached, rung], kind="stable")][: (len(reached) + 1) // 2]
        candidates = [int(i) for i in best if lengths[i] == rung + 1 and may_resume[i]]
        if candidates:
            return candidates[0]
    return None
