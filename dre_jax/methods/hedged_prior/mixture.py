"""The predictive mixture of the recommended method: Bayesian model averaging (Hoeting et al. 1999).

A component is a member's learned prior or the common process of past tasks under one hypothesis, or a Gaussian process
of the task (`task_processes`), whose hyperparameters are fixed, fitted or drawn, with or without the learned trend.
Before the first trial the former two have the total weight `HedgedPriorParams.transfer_log_odds` (as a probability), of
which `CommonPrior.log_odds` is the common process's part, and the processes of the task have the remaining weight. With
the weight pi_c of a component c before the first trial and the marginal likelihood p(y | c) of the trials, the
responses of candidates have the mixture density

    p(y* | y) = sum_c w_c p(y* | y, c),    w_c ~ pi_c p(y | c).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array, lax

from dre_jax.data.folds import Folds, HeldOut, group_by_task
from dre_jax.data.tasks import TaskTable
from dre_jax.gp.regression import observation_noise
from dre_jax.gp.response_scale import scale_responses
from dre_jax.gp.student import ConditionedStudentT, condition_student_t
from dre_jax.methods.hedged_prior.common_process import CommonPrior
from dre_jax.methods.hedged_prior.priors import (
    UNINFORMED_LENGTHSCALES,
    UNINFORMED_NOISE_VAR,
    HypothesisArrays,
    LearnedPrior,
    LearnedPriorConfig,
    Prior,
    PriorFeatures,
    Trials,
    covariance_and_residuals,
    history_features,
    prior_covariance,
    prior_shapes,
    prior_variance,
    sample_prior,
    scale_variances,
)
from dre_jax.methods.hedged_prior.task_process import TaskHyperpriors, TaskPosterior
from dre_jax.methods.hedged_prior.task_processes import TaskProcessConfig, condition_processes
from dre_jax.optim.mixture_weights import fit_mixture_weights
from dre_jax.runtime.blocks import by_blocks
from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.search.acquisition import mixture_moments

Floats = npt.NDArray[np.float64]


class HeldOutEvidence(NamedTuple):
    """Log-likelihoods of held-out trials; all zero if the configuration sets the number of steps."""

    folds: Array
    """i32: number of folds."""
    tasks: Array
    """i32: number of past tasks."""
    by_rows: Array
    """bool: whether halves of tasks are held out instead of tasks."""
    learned: Array
    """Log-likelihood a trial of the priors after the selected steps, the mean over tasks."""
    uninformed: Array
    """The same of processes without past tasks."""


class HedgedPriorParams(NamedTuple):
    """Parameters of `HedgedPrior`: learned priors, hypotheses and hyperpriors."""

    priors: LearnedPrior
    """J members, J in front of each array."""
    hypotheses: HypothesisArrays
    """Hypotheses with their weights."""
    transfer_log_odds: Array
    """Scalar: log-odds, before the first trial, of the learned priors against the processes of the task."""
    hyperpriors: TaskHyperpriors
    """Priors of the hyperparameters of the processes of the task."""
    steps: Array
    """i32: number of training steps of the priors."""
    held_out: HeldOutEvidence
    """Held-out evidence that chose the number of steps and the probability of transfer."""
    common: CommonPrior | None = None
    """The process that few past tasks have in common."""
    few_past_trials: Array | None = None
    """Scalar: number of the trials of one or two past tasks; None if there are more tasks."""


class PriorPosterior(NamedTuple):
    """A member's posterior given a history, under each of H hypotheses."""

    prior: Any
    """The member's `Prior`."""
    hypotheses: HypothesisArrays
    features: PriorFeatures
    """Features of the trials."""
    trend_mean: Array
    """Scalar: the mean of m over the trials."""
    student_t: ConditionedStudentT
    """Conditioned processes; H in front."""
    log_weight: Array
    """f[H]: log pi_h + log p(y | h, j)."""

    def compute_features(self, config: LearnedPriorConfig, x: Array) -> PriorFeatures:
        """Returns the features of configurations f[n, D], with the trend centred as that of the trials."""
        features = self.prior.compute_features(config, x)
        return features._replace(trend=features.trend - self.trend_mean)

    def moments(self, config: LearnedPriorConfig, new: Array) -> tuple[Array, Array, Array]:
        """Returns means and variances at new configurations f[m, D], two f[H, m], and the trend f[m]."""
        features = self.compute_features(config, new)

        def moments_under(hypothesis: HypothesisArrays, student_t: ConditionedStudentT) -> tuple[Array, Array]:
            scaled_prior = scale_variances(self.prior, hypothesis)
            cross = prior_covariance(self.features, features, scaled_prior)
            residual, variance = student_t.predict(cross, prior_variance(features, scaled_prior))
            return hypothesis.slope_mean * features.trend + residual, variance

        return *jax.vmap(moments_under)(self.hypotheses, self.student_t), features.trend

    def noise_variances(self, known: Array | float = 0.0) -> Array:
        """Returns the noise variances f[J, H] of J members, J in front of each array; a known one is added."""
        log_noise_var = self.prior.log_noise_var[:, None] + self.hypotheses.log_noise_variance_factor
        return (jnp.exp(log_noise_var) + known) * self.student_t.variance_scale


def condition_prior(
    config: LearnedPriorConfig, hypotheses: HypothesisArrays, prior: Prior, trials: Trials
) -> PriorPosterior:
    """Returns one member's posterior given a history, under each of H hypotheses."""
    features, trend_mean = history_features(config, prior, trials)
    has_spread = jnp.any(trials.where & (trials.y != 0.0))

    def condition_on(hypothesis: HypothesisArrays) -> tuple[ConditionedStudentT, Array]:
        moments = covariance_and_residuals(scale_variances(prior, hypothesis), features, trials, hypothesis.slope_mean)
        student_t = condition_student_t(*moments, trials.where, config.degrees_of_freedom)
        # Equal responses do not identify the variance scale, so they must not change the weights.
        return student_t, hypothesis.log_weight + jnp.where(has_spread, student_t.log_density, 0.0)

    return PriorPosterior(prior, hypotheses, features, trend_mean, *jax.vmap(condition_on)(hypotheses))


class HedgedPosterior(NamedTuple):
    """The mixture given a history, with J members, H hypotheses and K processes of the task.

    The common process has C hypotheses; C is 0 without it.
    """

    past: tuple[PriorPosterior, ...]
    """What past tasks taught: the learned priors, with J in front of each array, and the common process if any, with 1
    in front."""
    trials: Trials
    """The history; its trend is the mean over members."""
    task_posteriors: TaskPosterior
    """Posteriors of the processes of the task; K in front."""
    log_weight: Array
    """f[J H + C + K]: logarithms of weights that sum to one."""

    @property
    def n_past(self) -> int:
        """J H + C."""
        return sum(group.log_weight.size for group in self.past)

    @property
    def past_weights(self) -> list[Array]:
        """Weights of the members of each group under its hypotheses: f[J, H], and f[1, C] of the common process."""
        shapes = [group.log_weight.shape for group in self.past]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = jnp.split(jnp.exp(self.log_weight[: self.n_past]), ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    @property
    def process_weights(self) -> Array:
        """Weights of the processes of the task, f[K]."""
        return jnp.exp(self.log_weight[self.n_past :])

    @property
    def past_weight(self) -> Array:
        """The total weight of the components with the trend of past tasks, a scalar.

        These are the learned priors and the common process under the hypotheses that keep or weaken the trend, and the
        process of the task with the trend. The others drop or reverse the trend.
        """
        trend_weight = self.task_posteriors.process.trend_weight
        total = jnp.sum(jnp.where(trend_weight > 0.0, self.process_weights, 0.0))
        for group, weights in zip(self.past, self.past_weights, strict=True):
            total = jnp.sum(jnp.where(group.hypotheses.slope_mean > 0.0, weights, 0.0)) + total
        return total

    def noise_deviations(self, known: Array | float = 0.0) -> Array:
        """Returns the standard deviations of every component's noise, f[J H + C + K], with a known variance."""
        parts = [group.noise_variances(known).ravel() for group in self.past]
        return jnp.sqrt(jnp.concatenate([*parts, self.task_posteriors.noise_variances(known)]))


def condition_mixture(
    config: LearnedPriorConfig, process_config: TaskProcessConfig, params: HedgedPriorParams, trials: Trials
) -> HedgedPosterior:
    """Conditions the mixture on a history, trials in the order of their evaluation; any numbers in empty slots."""
    x, y, where = trials.x, trials.y, trials.where
    trials = trials._replace(x=jnp.where(where[:, None], x, 0.0), y=jnp.where(where, y, 0.0))

    def condition(hypotheses: HypothesisArrays, priors: Any) -> PriorPosterior:
        return jax.vmap(lambda prior: condition_prior(config, hypotheses, prior, trials))(priors)

    common = params.common
    past, log_share_of_past = [condition(params.hypotheses, params.priors)], [jnp.zeros((), y.dtype)]
    if common is not None:
        past.append(condition(common.hypotheses, common.process))
        log_share_of_past = [jax.nn.log_sigmoid(-common.log_odds), jax.nn.log_sigmoid(common.log_odds)]
    trend = jnp.mean(past[0].features.trend, axis=0)
    trials = trials._replace(trend=jnp.where(where, trend, 0.0))
    tasks = condition_processes(process_config, params.hyperpriors, trials, config.degrees_of_freedom)
    log_transfer = jax.nn.log_sigmoid(params.transfer_log_odds)
    log_weights = [
        log_transfer - math.log(len(one.log_weight)) + one.log_weight.ravel() + log_share
        for one, log_share in zip(past, log_share_of_past, strict=True)
    ]
    log_weights.append(jax.nn.log_sigmoid(-params.transfer_log_odds) + tasks.log_weight)
    log_weight = jax.nn.log_softmax(jnp.concatenate(log_weights))
    return HedgedPosterior(tuple(past), trials, tasks.posterior, log_weight)


def component_moments(config: LearnedPriorConfig, posterior: HedgedPosterior, new: Array) -> tuple[Array, Array]:
    """Returns the mean and variance of every component at new configurations f[m, D]; two f[J H + C + K, m]."""

    def member_moments(member: PriorPosterior) -> tuple[Array, Array, Array]:
        return member.moments(config, new)

    # One after the other needs less memory, all at once fewer operations: the candidates of a suggestion, in float64,
    # are few.
    map_members = jax.vmap(member_moments) if new.dtype == jnp.float64 else partial(lax.map, member_moments)
    groups = [map_members(group) for group in posterior.past]  # f[J, H, m], f[J, H, m] and f[J, m]
    trend, trials = jnp.mean(groups[0][2], axis=0), posterior.trials
    tasks = jax.vmap(lambda task: task.moments(trials, new, trend))(posterior.task_posteriors)
    means, variances = (
        jnp.concatenate([*(group[i].reshape(-1, len(new)) for group in groups), tasks[i]]) for i in range(2)
    )
    return means, variances


def predict_mixture(config: LearnedPriorConfig, posterior: HedgedPosterior, new: Array) -> tuple[Array, Array]:
    """Returns the mean and variance of the mixture at any number of new configurations f[m, D]; two f[m]."""
    return by_blocks(
        lambda rows: mixture_moments(posterior.log_weight, *component_moments(config, posterior, rows)), new
    )


def sample_responses(config: LearnedPriorConfig, posterior: HedgedPosterior, new: Array, key: Array) -> Array:
    """Samples one function and returns its values f[m] at new configurations f[m, D], for Thompson sampling.

    A component is sampled by its weight, then a function of its process: a sample of the prior from random Fourier
    features is conditioned on the trials (pathwise conditioning, Wilson et al. 2020). The cost is linear in the number
    of configurations. Over keys, the values have the mean and the variance of the mixture.
    """
    component_key, *keys = jax.random.split(key, 3)
    component, n_past = jax.random.categorical(component_key, posterior.log_weight), posterior.n_past
    first, samples = 0, []
    for i, group in enumerate(posterior.past):
        size = group.log_weight.size
        number, group_key = jnp.clip(component - first, 0, size - 1), keys[0] if i == 0 else jax.random.fold_in(key, i)
        function = _sample_group(config, group, posterior.trials, number, group_key)
        first += size
        samples.append((first, function))
    task = _take(jnp.maximum(component - n_past, 0), posterior.task_posteriors)
    task_function = task.sample(posterior.trials, keys[1])

    def values(rows: Array) -> Array:
        trends = jax.vmap(lambda member: member.compute_features(config, rows).trend)(posterior.past[0])
        value = task_function(rows, jnp.mean(trends, axis=0))
        for end, function in reversed(samples):
            value = jnp.where(component < end, function(rows), value)
        return value

    return by_blocks(values, new)


def _sample_group(
    config: LearnedPriorConfig, group: PriorPosterior, trials: Trials, component: Array, key: Array
) -> Callable[[Array], Array]:
    """Samples a function f[m, D] -> f[m] from one of J priors under one of H hypotheses, component j H + h."""
    member_number, number = jnp.divmod(component, group.log_weight.shape[1])
    member = _take(member_number, group)
    student_t, hypothesis = _take(number, (member.student_t, member.hypotheses))
    prior = scale_variances(member.prior, hypothesis)
    prior_key, noise_key = jax.random.split(key)
    function = sample_prior(prior, member.features, prior_key)
    noise_var = observation_noise(prior.log_noise_var, trials.noise_var)
    residual = student_t.condition_sample(function(member.features), noise_var, noise_key)

    def values(rows: Array) -> Array:
        features = member.compute_features(config, rows)
        cross = prior_covariance(member.features, features, prior)
        return hypothesis.slope_mean * features.trend + residual(cross, function(features))

    return values


def _take(index: Array, tree: Any) -> Any:
    return jax.tree.map(lambda a: a[index], tree)


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


def transfer_weights(
    evidence: Sequence[Floats], baseline: Floats, task: npt.NDArray[np.int32], *, prior: float, strength: float
) -> Floats:
    """Returns the weights f64[P + 1] of P priors from past tasks and of `uninformed_priors`, fitted to held-out tasks.

    ``evidence`` P times f64[K, H] is that of held-out histories under each kind of prior, and ``baseline`` f64[K, H]
    that without past tasks. ``prior`` is the total weight of the learned priors before any history, the same for each,
    and counts as ``strength`` tasks.
    """
    by_task = group_by_task(np.stack([*evidence, baseline], axis=-1), task)
    longest = max(len(one) for one in by_task)
    even = np.stack([np.resize(one, (longest, one.shape[1])) for one in by_task])
    before = np.array([*[prior / len(evidence)] * len(evidence), 1.0 - prior])
    return fit_mixture_weights(before, np.nan_to_num(even, nan=0.0), strength)


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
