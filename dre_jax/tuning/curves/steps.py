"""Steps of learning curves as shares of the horizon, so that their unit does not matter."""

from collections.abc import Sequence

import numpy as np

from dre_jax.tuning.past.curves import Curve

_STEPS = 32
_DECIMALS = 12
"""Decimals of a share, so that sums such as 0.1 + 0.2 are the step 0.3."""


def last_step(curves: Sequence[Curve]) -> float:
    """Returns the largest step of curves, the horizon of a study."""
    return max(max(curve) for curve in curves)


def relative_curve(curve: Curve, horizon: float) -> Curve:
    """Returns a curve in the order of its steps, which are shares of the horizon.

    Example:
      >>> relative_curve({500: 0.5, 1000: 0.4}, 2000)
      {0.25: 0.5, 0.5: 0.4}
    """
    steps = sorted(curve)
    shares = np.round(np.array(steps, float) / horizon, _DECIMALS)
    return dict(zip(shares.tolist(), map(curve.__getitem__, steps), strict=True))


def step_grid(curves: Sequence[Curve]) -> np.ndarray:
    """Returns the steps f64[G] of relative curves: all above 0, or 32 of more, denser at the start.

    Example:
      >>> step_grid([{0.0: 5.0, 0.25: 4.0, 1.0: 1.0}, {0.5: 2.0}])
      array([0.25, 0.5 , 1.  ])
    """
    steps = np.unique(np.concatenate([np.fromiter(curve, float, len(curve)) for curve in curves]))
    steps = steps[steps > 0.0]
    if len(steps) <= _STEPS:
        return steps
    positions = steps[-1] * (np.arange(1, _STEPS + 1) / _STEPS) ** 1.5
    middles = (steps[1:] + steps[:-1]) / 2
    return np.unique(steps[np.searchsorted(middles, positions)])
