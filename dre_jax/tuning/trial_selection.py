"""Selection of the trials of a long study that a method gets."""

from __future__ import annotations

import numpy as np

from dre_jax.errors import DataError


def select_trials(responses: np.ndarray, room: int) -> np.ndarray:
    """Returns indices of the trials that a method gets: all, or the best quarter, and others evenly spaced in time.

    With the better half and the latest, most trials of a long search are at the optimum, where they differ by little,
    and the likelihood of a Gaussian process has its maximum at length scales that fit none of the early trials.

    Args:
      responses: f[n]; higher is better.
      room: maximum number of trials.

    Raises:
      DataError: for NaN.

    Example:
      >>> select_trials(np.array([0.0, 9.0, 1.0, 2.0, 3.0, 4.0]), 4).tolist()
      [0, 1, 3, 5]
    """
    if np.isnan(responses).any():
        raise DataError("a response must be a number, but got NaN")
    if len(responses) <= room:
        return np.arange(len(responses))
    top = np.argsort(-responses, kind="stable")[: max(room // 4, 1)]
    others = np.setdiff1d(np.arange(len(responses)), top)
    spaced = np.linspace(0, len(others) - 1, room - len(top)).round().astype(int)
    return np.sort(np.concatenate([top, others[spaced]]))
