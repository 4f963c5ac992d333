"""The processes of the task and their weights: with fixed hyperparameters, fitted to the trials, and drawn.

The evidence of the trials weighs them against each other (`fitted_processes`, `drawn_processes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from dre_jax.checks import AtLeastOne, Checked, NonNegative, Positive
from dre_jax.errors import ConfigError
from dre_jax.gp.drawn_processes import draw_processes, select_processes
from dre_jax.gp.fitted_processes import fit_sequence
from dre_jax.gp.length_scale_prior import LengthScalePrior
from dre_jax.gp.task_process import TaskPosterior, TaskProcess, make_process
from dre_jax.search.history import History

UNINFORMED_LENGTHSCALES, UNINFORMED_NOISE_VAR = (0.1, 0.25, 0.6), 1e-3
"""Length scales, in units of the square root of the number of columns, and E of processes without past tasks."""


@dataclass(frozen=True, kw_only=True)
class TaskProcessConfig(Checked):
    """Settings of the processes of the task. Raises `ConfigError` if a number is out of range."""

    lengthscales: tuple[float, ...] = UNINFORMED_LENGTHSCALES
    """Length scales of the fixed processes, in units of the square root of the number of columns."""
    noise_var: Positive[float] = UNINFORMED_NOISE_VAR
    """E of the fixed processes, and its initial value in fits."""
    initial_lengthscales: tuple[float, ...] = (0.25,)
    """Initial length scales of the fitted processes, in units of the square root of the number of columns."""
    drawn_weight: float = 0.5
    """Total weight of the drawn processes before the first trial."""
    fitted_weight: float = 0.5
    """Share of the fitted processes in the remaining weight; the fixed ones have the rest."""
    steps: NonNegative[int] = 8
    """Maximum number of points that a fit evaluates after its start; 0 disables fits."""
    draws: AtLeastOne[int] = 64
    """Number of processes that are drawn from the generic prior."""
    selected: AtLeastOne[int] = 8
    """Number of drawn processes that predict: those of most evidence."""
    interpolation: NonNegative[float] = 0.9
    """Weight, in the expected improvement, of the fixed processes if the mixture takes all variance for noise; see
    `dre_jax.methods.hedged_prior.improvement_weights.interpolate_noise`. 0 leaves the mixture's weights."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("drawn_weight", "fitted_weight"):
            if not 0.0 < getattr(self, name) < 1.0:
                raise ConfigError(f"0 < {name} < 1 must hold, but got {name}={getattr(self, name)}")
        if self.interpolation >= 1.0:
            raise ConfigError(f"interpolation < 1 must hold, but got interpolation={self.interpolation}")
        if self.selected > self.draws:
            raise ConfigError(f"selected must be at most draws={self.draws}, but got {self.selected}")
        for name in ("lengthscales", "initial_lengthscales"):
            if min(getattr(self, name), default=0.0) <= 0:
                raise ConfigError(f"{name} must be one or more positive numbers, but got {getattr(self, name)}")


class TaskPosteriors(NamedTuple):
    """The processes given the trials: fixed, fitted and drawn ones, in this order."""

    posterior: TaskPosterior
    """K in front of each array."""
    log_weight: Float[Array, " K"]
    """Logarithms of the weights before the first trial, times the evidence of the trials."""


def make_processes(lengthscales: Sequence[float], config: TaskProcessConfig, prior: LengthScalePrior) -> TaskProcess:
    """Returns processes with length scales in units of the root of the number of columns, stacked in each array."""
    processes = [make_process(prior, length, config.noise_var) for length in lengthscales]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *processes)


def fixed_processes(config: TaskProcessConfig, prior: LengthScalePrior) -> TaskProcess:
    """Returns the fixed processes, stacked in front of each array."""
    return make_processes(config.lengthscales, config, prior)


def condition_processes(
    config: TaskProcessConfig, prior: LengthScalePrior, trials: History, degrees_of_freedom: float
) -> TaskPosteriors:
    """Returns all processes given the trials, in the order of their evaluation, under the prior without past tasks."""
    # Equal responses do not identify the variance scale, so they must not change the weights.
    has_spread = jnp.any(trials.where & (trials.response != 0.0))
    fixed, starts = fixed_processes(config, prior), make_processes(config.initial_lengthscales, config, prior)
    fits = fit_sequence(config.steps, starts, prior, trials, degrees_of_freedom)
    drawn, drawn_weight = select_processes(
        draw_processes(config.draws, prior), config.selected, trials, has_spread, degrees_of_freedom
    )
    processes = jax.tree.map(lambda *parts: jnp.concatenate(parts), fixed, fits.process, drawn)
    posterior = jax.vmap(lambda process: process.condition(trials, degrees_of_freedom))(processes)
    n_fixed, n_fitted = len(config.lengthscales), len(fits.gain)
    evidence = posterior.student_t.log_density[: n_fixed + n_fitted]
    evidence = evidence + jnp.concatenate([jnp.zeros(n_fixed, evidence.dtype), fits.gain])
    evidence = jnp.concatenate([jnp.where(has_spread, evidence, 0.0), drawn_weight])
    remainder, fitted = 1.0 - config.drawn_weight, config.fitted_weight
    shares = [remainder * (1.0 - fitted) / n_fixed] * n_fixed + [remainder * fitted / n_fitted] * n_fitted
    shares += [config.drawn_weight] * config.selected
    return TaskPosteriors(posterior, jnp.log(jnp.asarray(shares, evidence.dtype)) + evidence)
