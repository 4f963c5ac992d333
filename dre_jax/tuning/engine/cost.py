"""A model of the cost of trials: improvement per unit of cost.

The logarithm of the cost has a Gaussian process. The expected improvement is divided by the expected cost to a power
(Snoek, Larochelle and Adams 2012, section 3.2), which falls with the share of a budget that is left (cost cooling, Lee
et al. 2020): cheap trials come first, and the last ones go where the improvement is greatest.

Past studies with costs have a process of their own. The level of each study is removed by generalised least
squares, so that machines and sizes of data may differ; the process of the current study is then that of the residuals.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.data.tasks import spaced_rows
from dre_jax.gp.cholesky import safe_cholesky, triangular_solve
from dre_jax.gp.fit import fit_gp
from dre_jax.gp.regression import (
    GPParams,
    PreparedGP,
    add_noise,
    condition_on_history,
    matmul,
    predict_signal_at,
    signal_covariance,
)
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.precision import with_precision
from dre_jax.suggest.suggester import coarse_capacity_for
from dre_jax.tuning.past.studies import MAX_STUDIES, PastStudies
from dre_jax.tuning.suggestion.feasibility import FITTING
from dre_jax.tuning.suggestion.outcomes import FIT_TRIALS, fit_slots
from dre_jax.tuning.trials.selection import select_trials
from dre_jax.tuning.trials.trial import Trial

_FEWEST = 3
"""Costs that a process needs."""
_ROUNDS = 3
"""Number of fits to past studies; each improves the estimates of their levels."""
_PAST_ROWS = 256
"""Maximum number of past trials."""


class _Rows(NamedTuple):
    """Trials with costs, C slots."""

    x: Any
    """f[C, D], columns."""
    logs: Any
    """f[C], logarithms of the costs."""
    where: Any
    """bool[C], the filled slots."""
    study: Any
    """i32[C], numbers of the studies."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CostModel:
    """Gaussian process of the standardised logarithm of costs, or of its residuals after past studies."""

    x: Array
    """f[C, D], columns of the trials."""
    process: GPParams
    posterior: PreparedGP
    scale: Array
    """Scalar: standard deviation of the logarithms, times the power of the cost."""
    layout: SpaceLayout = field(metadata={"static": True})
    past: CostModel | None = None
    """Model of the past studies."""

    def log_weight(self, points: Array) -> Array:
        """Returns minus the logarithm f[N] of the expected cost to the power, at points f[N, P], up to a constant."""

        def at(new: Array) -> Array:
            return -self.scale * predict_signal_at(self.process, self.x, self.posterior, new)[0]

        weight = by_blocks(at, self.layout.columns(points, jnp))
        return weight if self.past is None else weight + self.past.log_weight(points)


@jit_with_less_effort("layout", "rounds", is_brief=few_numbers)
def _fit(
    layout: SpaceLayout,
    rounds: int,
    rows: _Rows,
    fit_slots: Array,
    power: Array,
    past: CostModel | None,
    points: Array | None,
) -> CostModel:
    x, logs, where, study = rows
    residuals = logs if past is None or points is None else logs + past.log_weight(points)
    one_hot = jnp.where(where[:, None], jax.nn.one_hot(study, MAX_STUDIES, dtype=x.dtype), 0.0)
    means = matmul(one_hot.T, residuals) / jnp.maximum(one_hot.sum(axis=0), 1.0)
    centred_logs = jnp.where(where, residuals - matmul(one_hot, means), 0.0)
    scale = jnp.maximum(jnp.std(centred_logs, where=where), 1e-6)

    def remove_levels(values: Array, _: None) -> tuple[Array, GPParams]:
        process = fit_gp(FITTING, x[fit_slots], values[fit_slots], where[fit_slots])
        matrix = add_noise(signal_covariance(process, x, x), jnp.exp(process.log_noise), where)
        lower = safe_cholesky(matrix)[0]
        design, target = triangular_solve(lower, one_hot), triangular_solve(lower, values[:, None])
        normal = matmul(design.T, design) + 1e-6 * jnp.eye(MAX_STUDIES, dtype=x.dtype)
        return values - matmul(one_hot, jnp.linalg.solve(normal, matmul(design.T, target)))[:, 0], process

    values, processes = jax.lax.scan(remove_levels, centred_logs / scale, length=rounds)
    process = jax.tree.map(lambda leaf: leaf[-1], processes)
    posterior = condition_on_history(process, x, values, where)
    scaled_past = None if past is None else replace(past, scale=power * past.scale)
    return CostModel(x, process, posterior, power * scale, layout, scaled_past)


def learn_past_cost(layout: SpaceLayout, studies: PastStudies, dtype: type[np.floating[Any]]) -> CostModel | None:
    """Returns the model of the costs of past studies, at most 256 evenly spaced ones; None for fewer than three."""
    if studies.costs is None:
        return None
    study, slot = np.nonzero((studies.costs > 0) & np.isfinite(studies.costs))
    rows = spaced_rows(len(study), _PAST_ROWS)
    study, slot = study[rows], slot[rows]
    if len(rows) < _FEWEST:
        return None
    logs = np.log(studies.costs[study, slot].astype(np.float64))
    return _fit(layout, _ROUNDS, *_pad_rows(np.asarray(studies.tasks.x)[study, slot], logs, study, dtype), None, None)


def _pad_rows(
    x: np.ndarray, logs: np.ndarray, study: np.ndarray, dtype: type[np.floating[Any]], power: float = 1.0
) -> tuple[_Rows, Array, Array]:
    """Returns the rows of trials on the device, those that hyperparameters are fitted to, and the power."""
    capacity = coarse_capacity_for(len(logs))
    arrays = [np.pad(a, [(0, capacity - len(a))] + [(0, 0)] * (a.ndim - 1)) for a in (x, logs, study)]
    rows = _Rows(arrays[0], arrays[1], np.arange(capacity) < len(logs), arrays[2].astype(np.int32))
    on_device: tuple[_Rows, Array, Array] = jax.device_put(
        with_precision((rows, fit_slots(len(logs)), np.array(power)), dtype)
    )
    return on_device


def share_left(budget: float | None, trials: Iterable[Trial]) -> float:
    """Returns the share of a budget that the trials leave, also those that failed, in [0, 1]; 1 without a budget.

    Example:
      >>> share_left(8.0, [Trial(0, {}, "complete", 1.0, cost=3.0), Trial(1, {}, "failed", cost=1.0), Trial(2, {})])
      0.5
    """
    return 1.0 if budget is None else max(0.0, 1.0 - sum(trial.cost or 0.0 for trial in trials) / budget)


def learn_cost(
    layout: SpaceLayout,
    points: np.ndarray,
    costs: np.ndarray,
    left: float,
    max_trials: int,
    dtype: type[np.floating[Any]],
    past: CostModel | None = None,
) -> CostModel | None:
    """Returns the model of the finite costs; None for fewer than three, equal ones, or an exhausted budget.

    With a model of past studies, one cost is enough. Costs f64[n] are NaN where unknown. ``left`` is the remaining
    share of the budget, 1 without a budget; it is the power of the cost. The process is conditioned on at most
    ``max_trials`` costs.
    """
    is_known = np.isfinite(costs)
    logs = np.log(costs[is_known])
    if not len(logs) or not left:
        return None
    if len(logs) < _FEWEST:
        return None if past is None else replace(past, scale=left * past.scale)
    if past is None and np.ptp(logs) < 1e-9:
        return None
    rows = select_trials(-np.abs(logs - np.median(logs)), max(max_trials, FIT_TRIALS))
    points = points[is_known][rows]
    arrays = _pad_rows(layout.columns(points), logs[rows], np.zeros(len(rows)), dtype, left)
    slots = np.pad(points, ((0, len(arrays[0].x) - len(points)), (0, 0))).astype(dtype)
    return _fit(layout, 1, *arrays, past, None if past is None else jax.device_put(slots))
