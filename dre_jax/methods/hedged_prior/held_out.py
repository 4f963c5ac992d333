"""Evidence of held-out trials under learned priors and without them, and the probability of transfer."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.data.tasks import TaskTable
from dre_jax.gp.response_scale import scale_responses
from dre_jax.gp.student import condition_student_t
from dre_jax.methods.hedged_prior.folds import Folds, HeldOut
from dre_jax.methods.hedged_prior.prior import (
    LearnedPriorConfig,
    Prior,
    Trials,
    covariance_and_residuals,
    history_features,
    uninformed_priors,
)
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort

Floats = npt.NDArray[np.float64]
_STEPS = 200


@jit_with_less_effort("config", is_brief=few_numbers)
def held_out_evidence(config: LearnedPriorConfig, priors: Prior, table: TaskTable, held_out: HeldOut) -> Array:
    """Returns the log-likelihood of held-out trials given their context, f[K, H], under the priors of K folds.

    It is known up to a term in the number of trials (`dre_jax.gp.student`); 0 if all responses of a history are equal.
    """

    def history_evidence(prior: Prior, rows: Array, where: Array, context: Array) -> Array:
        y = scale_responses(config.response_scale, table.response[rows], where).y
        trials = Trials(table.x[rows], y, where)
        features, _ = history_features(config, prior, trials)

        def density(where: Array) -> Array:
            moments = covariance_and_residuals(prior, features, trials._replace(where=where))
            return condition_student_t(*moments, where, config.degrees_of_freedom).log_density

        all_trials, known_trials = jax.vmap(density)(jnp.stack([where, context]))
        return jnp.where(jnp.any(trials.y != 0.0), all_trials - known_trials, 0.0)

    def fold_evidence(prior: Prior, held_out: HeldOut) -> Array:
        return jax.lax.map(lambda history: history_evidence(prior, *history), held_out)

    return jax.vmap(fold_evidence)(priors, held_out)


def uninformed_evidence(config: LearnedPriorConfig, folds: Folds) -> Floats:
    """Returns the log of the mean likelihood of held-out trials under the priors without past tasks, f64[K, H]."""
    priors = jax.tree.map(np.asarray, uninformed_priors(config, folds.table.n_columns))
    n_folds, each = len(folds.task), list[Floats]()
    for i in range(priors.log_noise_var.shape[0]):
        prior = jax.tree.map(lambda a, i=i: np.broadcast_to(a[i], (n_folds, *a.shape[1:])), priors)
        each.append(evidence_of_folds(config, prior, folds))
    return np.logaddexp.reduce(each, axis=0) - np.log(len(each))


def evidence_of_folds(config: LearnedPriorConfig, priors: Prior, folds: Folds) -> Floats:
    """Returns `held_out_evidence` of the folds, f64[K, H]."""
    return np.asarray(held_out_evidence(config, priors, folds.table, folds.held_out), np.float64)


def mean_evidence(evidence: Floats, folds: Folds) -> float:
    """Returns the evidence a trial, the mean over tasks."""
    where, context = np.asarray(folds.held_out.where), np.asarray(folds.held_out.context)
    trials = np.maximum(np.sum(where & ~context, axis=-1), 1)
    return float(np.mean([np.mean(one) for one in _group_by_task(evidence / trials, folds.task)]))


def _group_by_task(values: Floats, task: npt.NDArray[np.int32]) -> list[Floats]:
    """Returns the values of histories, f[K, H, ...], grouped by task."""
    return [values[task == i] for i in np.unique(task)]


def transfer_weights(
    evidence: Sequence[Floats], baseline: Floats, task: npt.NDArray[np.int32], *, prior: float, strength: float
) -> Floats:
    """Returns the weights f64[P + 1] of P priors from past tasks and of `uninformed_priors`, fitted to held-out tasks.

    Args:
      evidence: P times f64[K, H], evidence of held-out histories under each kind of prior.
      baseline: f64[K, H], the same without past tasks.
      task: i32[K, H], the task of each history.
      prior: the total weight of the learned priors before any history, the same for each.
      strength: number of tasks that it counts as.
    """
    by_task = _group_by_task(np.stack([*evidence, baseline], axis=-1), task)
    longest = max(len(one) for one in by_task)
    even = np.stack([np.resize(one, (longest, one.shape[1])) for one in by_task])
    before = np.array([*[prior / len(evidence)] * len(evidence), 1.0 - prior])
    return fit_mixture_weights(before, np.nan_to_num(even, nan=0.0), strength)


def fit_mixture_weights(initial: Floats, log_likelihood: Floats, strength: float) -> Floats:
    """Returns the weights pi, f64[H], of the highest posterior density (empirical Bayes; Robbins 1956).

    With E_ahs the marginal likelihood of history s of task a under hypothesis h, the weights maximise

        sum_a 1/S sum_s log sum_h pi_h E_ahs + C sum_h pi^0_h log pi_h.

    Expectation-maximisation counts every task once and the initial weights pi^0 as C tasks.

    Args:
      initial: pi^0, f64[H].
      log_likelihood: log E, f64[A, S, H], up to a constant for each history.
      strength: C.

    Example:
      >>> likelihood = np.array([[[0.9, 0.1]], [[0.8, 0.2]]])
      >>> fit_mixture_weights(np.array([0.5, 0.5]), np.log(likelihood), 2.0).round(2).tolist()
      [0.72, 0.28]
    """
    from scipy.special import logsumexp  # importing it takes a tenth of a second, and few callers need it

    weights = initial
    for _ in range(_STEPS):
        log_share = np.log(weights) + log_likelihood
        share = np.exp(log_share - logsumexp(log_share, axis=-1, keepdims=True))
        weights = (strength * initial + share.mean(axis=1).sum(axis=0)) / (strength + len(log_likelihood))
    return weights
