"""Responses as users have them, on a scale that a method can count on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_REACH = 5.0


def scale_responses(responses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Finite responses, none far below the others.

    A diverged training may give a loss of 1e12 or infinity. Left alone, it would make all other responses equal on a
    scale of [0, 1]. So what lies further below the median than five times the way from the median to the best is set to
    there, and infinity to a tenth of the range beyond the rest. Their order is kept elsewhere, by levels.

    Args:
      responses: f64[n], higher is better, no NaN.

    Returns:
      f64[n], finite.

    Example:
      >>> scale_responses(np.array([1.0, 2.0, 3.0, -1e12, -np.inf])).tolist()
      [1.0, 2.0, 3.0, -6.0, -6.9]
    """
    finite = np.isfinite(responses)
    if not finite.any():
        return np.where(responses > 0, 1.0, 0.0)
    known = responses[finite]
    middle, best = float(np.median(known)), float(known.max())
    reach = _REACH * (best / 2 - middle / 2)
    floor = middle - 2 * reach if reach > 0 and np.isfinite(2 * reach) else float(known.min())
    low = max(float(known.min()), floor)
    tenth = (best - low) / 10 if best > low else 1.0
    cut = np.maximum(np.where(finite, responses, low), low)
    return np.where(responses == np.inf, best + tenth, np.where(responses == -np.inf, low - tenth, cut))
