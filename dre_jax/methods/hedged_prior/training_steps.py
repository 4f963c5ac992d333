"""Steps of the training of priors: random histories, their loss, and Adam on groups of priors.

The loss of a history is minus its log marginal likelihood (`dre_jax.gp.student.log_student_t_density`) a trial. A
hyperprior is added, whose weight decreases with the number of past trials. A history that is shorter than the number of
drawn rows keeps the best of them, because the trials of a search are better than random rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from dre_jax.checks import AtLeastTwo, Checked, NonNegative, Positive, at_least
from dre_jax.data.sampling import TaskSpans, sample_lists
from dre_jax.data.tasks import TaskTable
from dre_jax.errors import ConfigError
from dre_jax.gp.response_scale import scale_responses
from dre_jax.gp.student import log_student_t_density
from dre_jax.methods.hedged_prior.length_scale_prior import LengthScalePrior
from dre_jax.methods.hedged_prior.prior import (
    LearnedPrior,
    LearnedPriorConfig,
    Trials,
    clip_prior,
    covariance_and_residuals,
    history_features,
    init,
    log_hyperprior,
    prior_shapes,
)
from dre_jax.optim.descent import Descent, descend
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort

_SCALES = LearnedPrior._fields[2:]  # all parameters but those of the networks
_INITIAL_LOG_ARD_VAR = -1.0  # of log F, if the initial length scales are those of past tasks


@dataclass(frozen=True, kw_only=True)
class PriorTraining(Checked):
    """Settings of the training of priors.

    Raises:
      ConfigError: if a number is out of range.
    """

    steps: Positive[int] | None = None
    """Number of Adam steps; by default held-out trials choose it, up to 5000."""
    tasks: Positive[int] = 8
    """Number of histories in a step, each of one task."""
    rows: int = 32
    """Maximum number of trials of a history."""
    min_rows: AtLeastTwo[int] = 4
    """Minimum number of trials of a history, if the task has that many."""
    histories: Literal["best", "any"] = "best"
    """Which of the drawn rows a shorter history keeps: the best, or random ones."""
    learning_rate: Positive[float] = 2e-3
    """Learning rate of Adam; constant."""
    decay: NonNegative[float] = 1e-3
    """Weight decay: factor of the sum of squared network weights in the loss."""
    hyperprior: NonNegative[float] = 5.0
    """Weight of `log_hyperprior` relative to the log-likelihood of all past trials."""
    folds: Positive[int] = 4
    """Number of folds that choose the number of steps; unused if ``steps`` is a number."""
    patience: Positive[int] = 4
    """Number of checkpoints, each 1.3 times as many steps, without improvement before training of the folds stops."""
    transfer_probability: Positive[float] = 0.3
    """Prior probability that the learned priors explain a new task better than processes without past tasks."""
    transfer_strength: Positive[float] = 3.0
    """Number of tasks that this probability counts as."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(self.min_rows, "rows", self.rows)
        if not self.transfer_probability < 1.0:
            rule = "transfer_probability < 1 must hold"
            raise ConfigError(f"{rule}, but got transfer_probability={self.transfer_probability}")


def history_loss(config: LearnedPriorConfig, prior: LearnedPrior, trials: Trials) -> Array:
    """Returns the negative log marginal likelihood of a history, with responses on any scale, divided by its trials.

    0 if all responses are equal.
    """
    trials = trials._replace(y=scale_responses(config.response_scale, trials.y, trials.where).y)
    moments = covariance_and_residuals(prior, history_features(config, prior, trials)[0], trials)
    degrees_of_freedom = jnp.asarray(config.degrees_of_freedom, trials.y.dtype)
    value = log_student_t_density(*moments, trials.where, degrees_of_freedom)
    count = jnp.maximum(jnp.sum(trials.where, dtype=trials.y.dtype), 1.0)
    return jnp.where(jnp.any(trials.y != 0.0), -value / count, 0.0)


def draw_histories(training: PriorTraining, spans: TaskTable | TaskSpans, key: Array) -> tuple[Array, Array]:
    """Draws row numbers i32[B, n] of B histories, and bool[B, n], the filled slots."""
    row_key, count_key = jax.random.split(key)
    bits = jax.random.bits(row_key, (training.tasks, 1 + training.rows), jnp.uint32)
    count = jax.random.randint(count_key, (training.tasks,), training.min_rows, training.rows + 1)
    n_rows = count if training.histories == "any" else jnp.full_like(count, training.rows)
    # This training is over before the loop in C++ is built.
    lists = sample_lists(spans, bits, n_rows, n_support=0, may_be_native=False)  # best first
    return lists.query, lists.query_where & (jnp.arange(training.rows)[None, :] < count[:, None])


@jit_with_less_effort("config", "training", "slots")
def descend_priors(
    config: LearnedPriorConfig,
    training: PriorTraining,
    slots: int,
    table: TaskTable,
    spans: TaskSpans,
    descent: Descent[Array],
    members: Array,
    numbers: Array,
    key: Array,
) -> tuple[Descent[Array], Array]:
    """Runs the steps i32[n] of K priors, each on its own tasks; returns the new state and mean losses f[n].

    Each prior is a vector, f[K, P], so that an update is one operation, not one for each array of parameters.
    ``members`` i32[K] are the numbers of the priors, for their random histories. Histories have the first ``slots`` of
    their slots, as all others are empty.
    """
    shapes = prior_shapes(config, table.n_columns)
    scales = {name: _full_like(0.0, getattr(shapes, name)) for name in _SCALES}
    is_weight = _ravel(jax.tree.map(partial(_full_like, 1.0), shapes)._replace(**scales)) > 0.0
    low, high = (_ravel(clip_prior(jax.tree.map(partial(_full_like, end), shapes))) for end in (-jnp.inf, jnp.inf))
    n_trials = jnp.maximum(jnp.sum(spans.size, axis=1), 1).astype(low.dtype)

    def draw(number: Array) -> tuple[Array, Array]:
        keys = jax.random.split(jax.random.fold_in(key, number), config.members + training.folds)[members]
        rows, where = jax.vmap(partial(draw_histories, training))(spans, keys)
        return rows[..., :slots], where[..., :slots]

    def prior_loss(n_trials: Array, prior: LearnedPrior, rows: Array, where: Array) -> Array:
        histories = Trials(table.x[rows], table.response[rows], where)
        each = jax.vmap(partial(history_loss, config, prior))(histories)
        return jnp.mean(each) - training.hyperprior / n_trials * log_hyperprior(prior)

    def loss(vectors: Array, histories: tuple[Array, Array]) -> Array:
        each = jax.vmap(prior_loss)(n_trials, unravel(shapes, vectors), *histories)
        # The gradient of a sum of independent losses is the gradient of each, for any number of priors.
        return jnp.sum(each) + training.decay * jnp.sum(jnp.where(is_weight, vectors**2, 0.0))

    rates = optax.constant_schedule(training.learning_rate)
    histories = jax.vmap(draw)(numbers)
    project = partial(jnp.clip, min=low, max=high)
    descent, losses = descend(loss, descent, rates, numbers, histories, project=project)
    return descent, losses / len(members)


@jit_with_less_effort("config", "n_columns", "n_priors", is_brief=few_numbers)
def initial_vectors(
    config: LearnedPriorConfig, n_columns: int, n_priors: int, key: Array, lengths: LengthScalePrior | None
) -> Array:
    """Returns initial priors as vectors, f[K, P]."""
    trend_key, feature_key = jax.random.split(key)
    starts = jax.random.split(trend_key, n_priors), jax.random.split(feature_key, n_priors)
    priors = jax.vmap(partial(init, config, n_columns))(*starts)
    if lengths is not None:
        log_lengthscale = jnp.broadcast_to(lengths.mean, priors.log_lengthscale.shape)
        log_ard_var = jnp.full_like(priors.log_ard_var, _INITIAL_LOG_ARD_VAR)
        priors = priors._replace(log_lengthscale=log_lengthscale, log_ard_var=log_ard_var)
    return _ravel(priors)


def _full_like(value: float, a: jax.ShapeDtypeStruct) -> Array:
    return jnp.full((1, *a.shape), value, a.dtype)


def _ravel(priors: LearnedPrior) -> Array:
    """Returns priors, K in front of each array, as vectors f[K, P]."""
    return jnp.concatenate([a.reshape(len(a), -1) for a in jax.tree.leaves(priors)], axis=1)


def unravel(shapes: LearnedPrior, vectors: Any, xp: Any = jnp) -> LearnedPrior:
    """Returns priors, K in front of each array, from vectors f[K, P]; NumPy or JAX as ``xp``."""
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([math.prod(a.shape) for a in leaves])
    parts = xp.split(vectors, ends[:-1].tolist(), axis=1)
    return jax.tree.unflatten(structure, [part.reshape(-1, *a.shape) for part, a in zip(parts, leaves, strict=True)])
