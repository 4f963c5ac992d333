"""Steps of learning curves as shares of the horizon, so that their unit does not matter, and the responses there."""

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


def curve_responses(curves: Sequence[Curve], steps: np.ndarray, floor: float | None = None) -> tuple[np.ndarray, float]:
    """Returns f64[n, G], curves at steps, and the worst finite response, which replaces NaN and infinite ones.

    Curves are linear between reports, and constant before the first and after the last.
    """
    values = [np.fromiter(curve.values(), float) for curve in curves]
    finite = np.concatenate([value[np.isfinite(value)] for value in values])
    floor = (float(finite.min()) if len(finite) else 0.0) if floor is None else floor
    clean = [np.where(np.isfinite(value), value, floor) for value in values]
    return np.array(
        [np.interp(steps, list(curve), clean_curve) for curve, clean_curve in zip(curves, clean, strict=True)]
    ), floor


def past_responses(curves: Sequence[Curve], steps: np.ndarray) -> np.ndarray:
    """Returns f64[n, G], the curves of a past study at steps relative to the last one."""
    horizon = last_step(curves)
    return curve_responses([relative_curve(curve, horizon) for curve in curves], steps)[0]
