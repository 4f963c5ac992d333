"""The trials of a study as arrays: what a method's compiled programs get."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from dre_jax.data.tasks import tie_levels
from dre_jax.search.history import History, make_history
from dre_jax.search.proposals import TrialRecord
from dre_jax.tuning.response_clipping import clip_responses, relative_errors


def observed_history(
    x: np.ndarray, responses: np.ndarray, errors: np.ndarray, capacity: int, dtype: type[np.floating[Any]]
) -> History:
    """Returns a padded history.

    Args:
      x: [n, D], encoded configurations.
      responses: f64[n], higher is better; may be infinite.
      errors: f64[n], standard errors of the responses; 0 where unknown.
      capacity: C.
      dtype: of the arrays.
    """
    n, clipped = len(x), clip_responses(responses)
    history = make_history(x, clipped, capacity, dtype)
    level = jax.device_put(np.pad(tie_levels(responses), (0, capacity - n)))
    if errors.any():
        noise_var = np.pad(relative_errors(errors, clipped) ** 2, (0, capacity - n)).astype(dtype)
        history = history._replace(noise_var=jax.device_put(noise_var))
    return history._replace(level=level)


def trial_record(
    history: History, points: np.ndarray, pending_points: np.ndarray, avoid: np.ndarray, slots: int, radius: float
) -> TrialRecord:
    """Returns the trials of a study.

    Args:
      history: of the completed trials, with slots for the pending ones.
      points: f64[n, P], of the completed trials.
      pending_points: f64[m, P], of the pending trials.
      avoid: f64[a, P], points that are not proposed again.
      slots: number of points to avoid that the record has room for.
      radius: maximum distance in every coordinate at which a point is avoided.
    """
    capacity, dtype = len(history.where), history.response.dtype
    n, n_filled = len(points), len(points) + len(pending_points)
    return TrialRecord(
        history,
        *jax.device_put(
            (
                _padded(np.vstack([points, pending_points]), capacity).astype(dtype),
                (np.arange(capacity) >= n) & (np.arange(capacity) < n_filled),
                _padded(avoid, slots).astype(dtype),
                np.where(np.arange(slots) < len(avoid), radius, -1.0).astype(dtype),
            )
        ),
    )


def _padded(rows: np.ndarray, slots: int) -> np.ndarray:
    return np.pad(rows, ((0, slots - len(rows)), (0, 0)))
