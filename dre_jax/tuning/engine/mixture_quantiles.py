"""Quantiles of mixtures of Gaussians."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_MAX_STEPS = 100
_TOLERANCE = 1e-10
_NEGLIGIBLE = 1e-9
"""Weight of a component without effect on quantiles."""


def mixture_quantiles(shares: Floats, weight: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Returns quantiles f64[Q, n] at shares f64[Q] in (0, 1) of n mixtures of K Gaussians.

    Newton's method, with bisection where it leaves the bracket of the components' quantiles.

    Args:
      shares: f64[Q].
      weight: f64[K], sums to one.
      mean: f64[n, K].
      deviation: f64[n, K], positive.

    Example:
      >>> mixture_quantiles(np.array([0.5, 0.975]), np.ones(1), np.zeros((1, 1)), np.ones((1, 1))).round(2).tolist()
      [[0.0], [1.96]]
    """
    from scipy.special import ndtr, ndtri  # importing it takes a tenth of a second

    counts = weight > _NEGLIGIBLE
    weight, mean, deviation = weight[counts] / weight[counts].sum(), mean[:, counts], deviation[:, counts]
    shares = shares[:, None]
    components = mean + deviation * ndtri(shares)[..., None]
    low, high = components.min(axis=-1), components.max(axis=-1)
    tolerance = _TOLERANCE * (high - low) + 1e-14 * np.abs(high)
    point = components @ weight
    for _ in range(_MAX_STEPS):
        standard = (point[..., None] - mean) / deviation
        error = ndtr(standard) @ weight - shares
        low, high = np.where(error <= 0.0, point, low), np.where(error >= 0.0, point, high)
        density = (np.exp(-0.5 * standard**2) / deviation) @ weight / np.sqrt(2.0 * np.pi)
        step = error / np.maximum(density, np.finfo(float).tiny)
        newton = point - np.clip(step, -1e300, 1e300)
        inside = (newton > low) & (newton < high)
        following = np.where(inside, newton, 0.5 * (low + high))
        is_done = (np.abs(following - point) <= tolerance).all()
        point = following
        if is_done:
            break
    return point
