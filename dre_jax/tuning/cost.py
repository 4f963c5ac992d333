"""A model of the cost of trials: improvement per unit of cost.

The logarithm of the cost has a Gaussian process. The expected improvement is divided by the expected cost to a power
(Snoek, Larochelle and Adams 2012, section 3.2), which falls with the share of a budget that is left (cost cooling, Lee
et al. 2020): cheap trials come first, and the last ones go where the improvement is greatest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.gp.fit import fit_gp
from dre_jax.gp.regression import GPParams, PreparedGP, condition_on_history, predict_signal_at
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import jit_with_less_effort
from dre_jax.search.layout import SpaceLayout
from dre_jax.search.precision import with_precision
from dre_jax.search.suggester import coarse_capacity_for
from dre_jax.tuning.feasibility import FIT_TRIALS, FITTING, fit_rows
from dre_jax.tuning.trial_selection import select_trials

_FEWEST = 3
"""Costs that a model needs."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CostModel:
    """Gaussian process of the standardised logarithm of costs."""

    x: Array
    """f[C, D], columns of the trials."""
    process: GPParams
    prepared: PreparedGP
    scale: Array
    """Scalar: standard deviation of the logarithms, times the power of the cost."""
    layout: SpaceLayout = field(metadata={"static": True})

    def log_weight(self, points: Array) -> Array:
        """Returns minus the logarithm f[N] of the expected cost to the power, at points f[N, P], up to a constant."""

        def at(new: Array) -> Array:
            return -self.scale * predict_signal_at(self.process, self.x, self.prepared, new)[0]

        return by_blocks(at, self.layout.columns(points, jnp))


@jit_with_less_effort("layout")
def _fit(layout: SpaceLayout, points: Array, values: Array, where: Array, rows: Array, scale: Array) -> CostModel:
    x = layout.columns(points, jnp)
    process = fit_gp(FITTING, x[rows], values[rows], where[rows])
    return CostModel(x, process, condition_on_history(process, x, values, where), scale, layout)


def learn_cost(
    layout: SpaceLayout,
    points: np.ndarray,
    costs: np.ndarray,
    budget: float | None,
    max_trials: int,
    dtype: type[np.floating[Any]],
) -> CostModel | None:
    """Returns the model of the costs that are known; None for fewer than three, equal ones, or a budget that is spent.

    Args:
      layout: the search space.
      points: f64[n, P].
      costs: f64[n], positive; NaN where unknown.
      budget: total cost of the study; without one the power is 1.
      max_trials: number of trials that the process is conditioned on, at most.
      dtype: precision of the model.
    """
    is_known = np.isfinite(costs)
    power = 1.0 if budget is None else max(0.0, 1.0 - float(costs[is_known].sum()) / budget)
    logs = np.log(costs[is_known])
    if is_known.sum() < _FEWEST or not power or np.ptp(logs) < 1e-9:
        return None
    rows = select_trials(-np.abs(logs - np.median(logs)), max(max_trials, FIT_TRIALS))
    points, values = points[is_known][rows], (logs[rows] - logs.mean()) / logs.std()
    capacity = coarse_capacity_for(len(rows))
    empty = capacity - len(rows)
    arrays = (
        np.pad(points, ((0, empty), (0, 0))),
        np.pad(values, (0, empty)),
        np.arange(capacity) < len(rows),
        fit_rows(len(rows), capacity),
        np.array(power * logs.std()),
    )
    return _fit(layout, *jax.device_put(with_precision(arrays, dtype)))
