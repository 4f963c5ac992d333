"""Finite responses without far outliers, from responses of any scale, and standard errors on that scale."""

import numpy as np
import numpy.typing as npt

_REACH = 5.0
_MAX = 1e300
"""Maximum size of a response: sums of larger numbers may overflow."""
_MAX_RELATIVE_ERROR = 1e3


def clip_responses(responses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Returns finite responses, none far below the others.

    A diverged training may give a loss of 1e12 or infinity, which would make all other responses equal on a scale of
    [0, 1]. The lower bound is the median minus five times the distance from the median to the best; infinite responses
    are set a tenth of the range beyond the others. `History.level` keeps the order of clipped responses.

    Args:
      responses: f64[n], higher is better, no NaN.

    Returns:
      f64[n], finite, with a finite range.

    Example:
      >>> clip_responses(np.array([1.0, 2.0, 3.0, -1e12, -np.inf])).tolist()
      [1.0, 2.0, 3.0, -6.0, -6.9]
    """
    finite = np.isfinite(responses)
    if not finite.any():
        return np.where(responses > 0, 1.0, 0.0)
    bounded_responses = responses.clip(-_MAX, _MAX)
    values = bounded_responses[finite]
    middle, best = float(np.median(values)), float(values.max())
    floor = middle - _REACH * (best - middle) if best > middle else float(values.min())
    low = max(float(values.min()), floor)
    tenth = (best - low) / 10 if best > low else 1.0
    return np.where(finite, np.maximum(bounded_responses, low), np.where(responses > 0, best + tenth, low - tenth))


def relative_errors(errors: npt.NDArray[np.float64], responses: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Returns standard errors on the scale on which the responses have the range 1, at most 1000.

    Example:
      >>> relative_errors(np.array([0.5, 1.0]), np.array([0.0, 5e-324])).tolist()
      [1000.0, 1000.0]
    """
    spread = float(np.ptp(responses)) or 1.0
    return np.minimum(errors, _MAX_RELATIVE_ERROR * spread) / spread
