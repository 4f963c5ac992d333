"""Functions of host methods that choose among the rows of a table, in NumPy and float64."""

from __future__ import annotations

import numpy as np

from dre_jax.errors import MethodError

_SMALLEST_DEVIATION = 1e-12
_FAR = -1e3  # from here on the series of the improvement is exact to 3e-6


def seed() -> int:
    """Returns a seed for the generator of another library, from NumPy's, which is seeded for every run."""
    return int(np.random.randint(2**31 - 1))  # noqa: NPY002 - the generator that the loop seeds


def best_row(values: np.ndarray) -> int:
    """Returns the index of the highest of f64[m], a random one of equal values: rows may be in the order of responses.

    Raises:
      MethodError: where nothing can be compared.

    Example:
      >>> best_row(np.array([0.1, 0.7, 0.3]))
      1
    """
    if np.isnan(values).any():
        raise MethodError(f"a method must give every row a value, but gave {int(np.isnan(values).sum())} of them NaN")
    ties = np.flatnonzero(values == values.max())
    return int(ties[np.random.randint(len(ties))])  # noqa: NPY002


def log_expected_improvement(mean: np.ndarray, deviation: np.ndarray, best: float) -> np.ndarray:
    """Returns log E[max(0, r - best)], r Gaussian (Jones et al. 1998), without underflow far below the best.

    Mean and standard deviation of the response, two f64[m], and the highest response so far -> f64[m].

    Example:
      >>> float(log_expected_improvement(np.zeros(1), np.ones(1), 0.0)[0].round(4))
      -0.9189
    """
    from scipy.special import erfcx, ndtr

    deviation = np.maximum(deviation, _SMALLEST_DEVIATION)
    z = (mean - best) / deviation
    log_pdf = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi)
    right = np.maximum(z, -1.0)
    direct = np.log(np.exp(-0.5 * right**2) / np.sqrt(2.0 * np.pi) + right * ndtr(right))
    middle = np.clip(z, _FAR, -1.0)
    by_ratio = log_pdf + np.log1p(middle * np.sqrt(0.5 * np.pi) * erfcx(-middle / np.sqrt(2.0)))
    by_series = log_pdf - 2.0 * np.log(-np.minimum(z, _FAR))
    return np.log(deviation) + np.where(z > -1.0, direct, np.where(z > _FAR, by_ratio, by_series))
