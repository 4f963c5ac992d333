"""Evidence of held-out trials of past tasks, and the probability of transfer that it gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Float64, Int, Int32

from dre_jax.data.folds import Folds, HeldOut, group_by_task
from dre_jax.data.tasks import TaskTable
from dre_jax.gp.response_scale import scale_responses
from dre_jax.gp.student import condition_student_t
from dre_jax.gp.task_processes import UNINFORMED_LENGTHSCALES, UNINFORMED_NOISE_VAR
from dre_jax.methods.hedged_prior.priors import (
    LearnedPrior,
    LearnedPriorConfig,
    Prior,
    covariance_and_residuals,
    history_features,
    prior_shapes,
)
from dre_jax.optim.mixture_weights import fit_mixture_weights
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.search.history import History


class HeldOutEvidence(NamedTuple):
    """Log-likelihoods of held-out trials; all zero if the configuration sets the number of steps."""

    folds: Int[Array, ""]
    """Number of folds."""
    tasks: Int[Array, ""]
    """Number of past tasks."""
    by_rows: Bool[Array, ""]
    """Whether halves of tasks are held out instead of tasks."""
    learned: Float[Array, ""]
    """Log-likelihood a trial of the priors after the selected steps, the mean over tasks."""
    uninformed: Float[Array, ""]
    """The same of processes without past tasks."""


@jit_with_less_effort("config", is_brief=few_numbers)
def held_out_evidence(
    config: LearnedPriorConfig,
    priors: Prior,
    table: TaskTable,
    held_out: HeldOut,
    features: Float[Array, "K H P"] | None = None,
) -> Float[Array, "K H"]:
    """Returns the log-likelihood of H held-out histories given their context, under the priors of K folds.

    It is known up to a term in the number of trials (`dre_jax.gp.student`); 0 if all responses of a history are equal.
    ``features`` are those of the histories' tasks, for a `CommonProcess` of tasks with features.
    """

    def history_evidence(prior: Prior, rows: Array, where: Array, context: Array) -> Array:
        y = scale_responses(config.response_scale, table.response[rows], where).y
        trials = History(table.x[rows], y, table.level[rows], where)
        features, _ = history_features(prior, trials)

        def density(where: Array) -> Array:
            moments = covariance_and_residuals(prior, features, trials._replace(where=where))
            return condition_student_t(*moments, where, config.degrees_of_freedom).log_density

        all_trials, known_trials = jax.vmap(density)(jnp.stack([where, context]))
        return jnp.where(jnp.any(trials.response != 0.0), all_trials - known_trials, 0.0)

    def fold_evidence(prior: Prior, held_out: HeldOut, features: Array | None) -> Array:
        def evidence(args: tuple[HeldOut, Array | None]) -> Array:
            history, task_features = args
            of_task = prior if task_features is None else prior._replace(task_features=task_features)
            return history_evidence(of_task, *history)

        return jax.lax.map(evidence, (held_out, features))

    return jax.vmap(fold_evidence)(priors, held_out, features)


def uninformed_evidence(config: LearnedPriorConfig, folds: Folds) -> Float64[np.ndarray, "K H"]:
    """Returns the log of the mean likelihood of held-out trials under the priors without past tasks."""
    priors = jax.tree.map(np.asarray, uninformed_priors(config, folds.table.n_columns))
    n_folds, evidences = len(folds.task), list[np.ndarray]()
    for i in range(priors.log_noise_var.shape[0]):
        prior = jax.tree.map(lambda a, i=i: np.broadcast_to(a[i], (n_folds, *a.shape[1:])), priors)
        evidences.append(evidence_of_folds(config, prior, folds))
    return np.logaddexp.reduce(evidences, axis=0) - np.log(len(evidences))


def evidence_of_folds(
    config: LearnedPriorConfig, priors: Prior, folds: Folds, features: Float[Array, "K H P"] | None = None
) -> Float64[np.ndarray, "K H"]:
    """Returns `held_out_evidence` of the folds."""
    return np.asarray(held_out_evidence(config, priors, folds.table, folds.held_out, features), np.float64)


def transfer_weights(
    evidence: Sequence[Float64[np.ndarray, "K H"]],
    baseline: Float64[np.ndarray, "K H"],
    task: Int32[np.ndarray, "K H"],
    *,
    prior: float,
    strength: float,
) -> Float64[np.ndarray, " {len(evidence)}+1"]:
    """Returns the weights of priors from past tasks and of `uninformed_priors`, fitted to held-out tasks.

    ``evidence`` is that of held-out histories under each kind of prior, and ``baseline`` that without past tasks.
    ``prior`` is the total weight of the learned priors before any history, the same for each, and counts as
    ``strength`` tasks.
    """
    by_task = group_by_task(np.stack([*evidence, baseline], axis=-1), task)
    n_histories = max(map(len, by_task))
    log_likelihoods = np.stack([np.resize(of_task, (n_histories, of_task.shape[1])) for of_task in by_task])
    prior_weights = np.array([*[prior / len(evidence)] * len(evidence), 1.0 - prior])
    return fit_mixture_weights(prior_weights, np.nan_to_num(log_likelihoods, nan=0.0), strength)


def uninformed_priors(config: LearnedPriorConfig, n_columns: int) -> LearnedPrior:
    """Returns 3 priors without past tasks: F = 1, E = 0.001 and length scales of 0.1, 0.25 and 0.6 times sqrt(D)."""
    shapes = prior_shapes(config, n_columns)
    lengths = np.log(np.array(UNINFORMED_LENGTHSCALES, np.float32)) + np.float32(0.5 * math.log(max(n_columns, 1)))
    log_zero = np.full_like(lengths, -np.inf)
    return jax.tree.map(lambda a: np.zeros((3, *a.shape), a.dtype), shapes)._replace(
        log_slope_var=log_zero,
        log_feature_var=log_zero,
        log_noise_var=np.full_like(lengths, math.log(UNINFORMED_NOISE_VAR)),
        log_lengthscale=np.repeat(lengths[:, None], n_columns, axis=1),
    )
