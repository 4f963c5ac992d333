"""A model of the cost of trials: improvement per unit of cost.

The logarithm of the cost has a Gaussian process. The expected improvement is divided by the expected cost to a power
(Snoek, Larochelle and Adams 2012, section 3.2), which falls with the share of a budget that is left (cost cooling, Lee
et al. 2020): cheap trials come first, and the last ones go where the improvement is greatest.

Past studies with costs have a process of their own. The level of each study is removed by generalised least
squares, so that machines and sizes of data may differ; the process of the current study is then that of the residuals.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

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
from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.search.history import coarse_capacity_for
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.precision import with_precision
from dre_jax.tuning.past.studies import MAX_STUDIES, PastStudies
from dre_jax.tuning.suggestion.feasibility import FITTING, fit_where_needed
from dre_jax.tuning.suggestion.outcomes import FIT_TRIALS
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState
from dre_jax.tuning.trials.responses import medians
from dre_jax.tuning.trials.selection import select_slots

_FEWEST = 3
"""Costs that a process needs."""
_LEAST_SPREAD = 1e-9
"""Range of the logarithms from which costs differ."""
_ROUNDS = 3
"""Number of fits to past studies; each improves the estimates of their levels."""
_PAST_ROWS = 256
"""Maximum number of past trials."""


class _Rows(NamedTuple):
    """Trials with costs, C slots."""

    x: Float[AnyArray, "C D"]
    """Columns."""
    logs: Float[AnyArray, " C"]
    """Logarithms of the costs."""
    where: Bool[AnyArray, " C"]
    """The filled slots."""
    study: Int[AnyArray, " C"]
    """Numbers of the studies."""
    fit_slots: Int[AnyArray, " FIT_TRIALS"]
    """Slots that hyperparameters are fitted to."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CostModel:
    """Gaussian process of the standardised logarithm of costs, or of its residuals after past studies."""

    x: Float[Array, "C D"]
    """Columns of the trials."""
    process: GPParams
    posterior: PreparedGP
    scale: Float[Array, ""]
    """Standard deviation of the logarithms, times the power of the cost; 0 for too few costs."""
    applies: Bool[Array, ""]
    """Whether costs differ, and count."""
    layout: SpaceLayout = field(metadata={"static": True})
    past: CostModel | None = None
    """Model of the past studies."""

    def log_weight(self, points: Float[Array, "N P"]) -> Float[Array, " N"]:
        """Returns minus the logarithm of the expected cost to the power, at points, up to a constant."""

        def at(new: Array) -> Array:
            return -self.scale * predict_signal_at(self.process, self.x, self.posterior, new)[0]

        weight = by_blocks(at, self.layout.columns(points))
        return weight if self.past is None else weight + self.past.log_weight(points)


class CostRecord(NamedTuple):
    """What a study says of the cost of its trials."""

    rows: _Rows
    points: Float[AnyArray, "C P"]
    """Points of the rows, of the unit cube."""
    power: Float[AnyArray, ""]
    """Power of the cost, the share of the budget that is left; 1 without a budget."""
    own_share: Float[AnyArray, ""]
    """1, or 0 for too few costs, where the process of past studies counts alone."""
    applies: Bool[AnyArray, ""]
    """Whether costs count."""


def learn_past_cost(layout: SpaceLayout, studies: PastStudies, dtype: type[np.floating[Any]]) -> CostModel | None:
    """Returns the model of the costs of past studies, at most 256 evenly spaced ones; None for fewer than three."""
    if studies.costs is None:
        return None
    study, slot = np.nonzero((studies.costs > 0) & np.isfinite(studies.costs))
    selected = spaced_rows(len(study), _PAST_ROWS)
    study, slot = study[selected], slot[selected]
    n = len(selected)
    if n < _FEWEST:
        return None
    logs = np.log(studies.costs[study, slot].astype(np.float64))
    capacity = coarse_capacity_for(n)
    columns = np.asarray(studies.tasks.x)[study, slot], logs, study
    x, logs, study = (np.pad(a, [(0, capacity - n)] + [(0, 0)] * (a.ndim - 1)) for a in columns)
    slots = spaced_rows(n, FIT_TRIALS, FIT_TRIALS)
    rows = _Rows(x, logs, np.arange(capacity) < n, study.astype(np.int32), slots)
    points = np.zeros((capacity, layout.n_parts))
    record = CostRecord(rows, points, power=np.ones(()), own_share=np.ones(()), applies=np.ones((), bool))
    return _fit(layout, _ROUNDS, jax.device_put(with_precision(record, dtype)), None)


def cost_record(config: StudyConfig, state: StudyState, n_trials: int, *, has_past: bool) -> CostRecord | None:
    """Returns what a study of at most ``n_trials`` trials says of costs; None without costs.

    The model gets as many costs as the method gets trials. It applies to three costs that differ, or to a single one if
    there is a model of past studies, until the budget is exhausted.
    """
    if state.costs is None:
        return None
    xp, dtype = namespace(state.points), state.points.dtype
    known = state.in_space & xp.isfinite(state.costs)
    n = xp.sum(known, dtype=np.int32)
    logs = xp.where(known, xp.log(xp.where(known, state.costs, 1.0)), 0.0)
    middle = xp.where(n > 0, medians(logs[:, None], known)[0], 0.0)
    room = max(config.max_history, FIT_TRIALS)
    capacity = min(coarse_capacity_for(n_trials), coarse_capacity_for(room))
    rows, filled, n_rows = select_slots(-xp.abs(logs - middle), known, min(room, capacity), capacity)
    points = xp.where(filled[:, None], state.points[rows], 0.0)
    spread = xp.max(xp.where(known, logs, -xp.inf)) - xp.min(xp.where(known, logs, xp.inf))
    left = xp.ones((), dtype)
    if config.budget is not None and state.spent is not None:
        left = xp.maximum(1.0 - state.spent / config.budget, 0.0).astype(dtype)
    says = (n > 0) if has_past else (n >= _FEWEST) & (spread >= _LEAST_SPREAD)
    columns, logs = config.layout.columns(points), xp.where(filled, logs[rows], 0.0)
    slots = spaced_rows(n_rows, FIT_TRIALS, FIT_TRIALS)
    cost_rows = _Rows(columns, logs, filled, xp.zeros(capacity, np.int32), slots)
    return CostRecord(cost_rows, points, left, (n >= _FEWEST).astype(dtype), says & (left > 0.0))


def fit_cost(config: StudyConfig, record: CostRecord | None, past: CostModel | None) -> CostModel | None:
    """Returns the model of the cost of a study's trials, which weighs candidates; None without costs."""
    if record is None:
        return None
    return fit_where_needed(record.applies, lambda: _fit(config.layout, 1, record, past))


@jit_with_less_effort("layout", "rounds", is_brief=few_numbers)
def _fit(layout: SpaceLayout, rounds: int, record: CostRecord, past: CostModel | None) -> CostModel:
    x, logs, where, study, fit_slots = record.rows
    residuals = logs if past is None else logs + past.log_weight(record.points)
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
    scaled_past = None if past is None else replace(past, scale=record.power * past.scale)
    scale = record.own_share * record.power * scale
    return CostModel(x, process, posterior, scale, record.applies, layout, scaled_past)
