"""The predictive mixture of Gaussian processes: Bayesian model averaging (Hoeting et al. 1999).

A component is a member's learned prior or the common process of past tasks under one hypothesis, or a Gaussian process
of the task (`dre_jax.gp.task_processes`), whose hyperparameters are fixed, fitted or drawn. Before the first trial the
former two have the total weight `HedgedPriorParams.transfer_log_odds` (as a probability), of which
`CommonPrior.log_odds` is the common process's part, and the processes of the task have the remaining weight. Without
past tasks, the processes of the task are all components. With the weight pi_c of a component c before the first trial
and the marginal likelihood p(y | c) of the trials, the responses of candidates have the mixture density

    p(y* | y) = sum_c w_c p(y* | y, c),    w_c ~ pi_c p(y | c).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, Key

from dre_jax.gp.length_scale_prior import LengthScalePrior, generic_prior_like
from dre_jax.gp.regression import observation_noise
from dre_jax.gp.student import ConditionedStudentT, condition_student_t
from dre_jax.gp.task_process import TaskPosterior
from dre_jax.gp.task_processes import TaskProcessConfig, condition_processes
from dre_jax.methods.hedged_prior.common_process import CommonPrior
from dre_jax.methods.hedged_prior.held_out import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import HypothesisArrays, scale_variances
from dre_jax.methods.hedged_prior.priors import (
    LearnedPrior,
    Prior,
    PriorFeatures,
    covariance_and_residuals,
    history_features,
    prior_covariance,
    prior_variance,
    sample_prior,
)
from dre_jax.methods.hedged_prior.task_features import FeatureScale
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.acquisition import log_mixture_improvement, mixture_moments
from dre_jax.search.history import History


class HedgedPriorParams(NamedTuple):
    """Parameters of `HedgedPrior`: learned priors and hypotheses."""

    priors: LearnedPrior
    """J members, J in front of each array."""
    hypotheses: HypothesisArrays
    """Hypotheses with their weights."""
    transfer_log_odds: Float[Array, ""]
    """Log-odds, before the first trial, of the learned priors against the processes of the task."""
    lengths: LengthScalePrior
    """Prior of the hyperparameters of the processes of the task, which knows no past tasks."""
    steps: Int[Array, ""]
    """Number of training steps of the priors."""
    held_out: HeldOutEvidence
    """Held-out evidence that chose the number of steps and the probability of transfer."""
    common: CommonPrior | None = None
    """The process that few past tasks have in common."""
    features: FeatureScale | None = None
    """How the features of tasks are standardised, on which the common process depends; None if they have none."""


class PriorPosterior(NamedTuple):
    """A member's posterior given a history, under each of H hypotheses."""

    prior: Any
    """The member's `Prior`."""
    hypotheses: HypothesisArrays
    features: PriorFeatures
    """Features of the trials."""
    trend_mean: Float[Array, ""]
    """The mean of m over the trials."""
    student_t: ConditionedStudentT
    """Conditioned processes; H in front."""
    log_weight: Float[Array, " H"]
    """Log pi_h + log p(y | h, j)."""

    def compute_features(self, x: Float[Array, "n D"]) -> PriorFeatures:
        """Returns the features of configurations, with the trend centred as that of the trials."""
        features = self.prior.compute_features(x)
        return features._replace(trend=features.trend - self.trend_mean)

    def moments(self, new: Float[Array, "m D"]) -> tuple[Float[Array, "H m"], Float[Array, "H m"]]:
        """Returns means and variances at new configurations."""
        features = self.compute_features(new)

        def moments_under(hypothesis: HypothesisArrays, student_t: ConditionedStudentT) -> tuple[Array, Array]:
            scaled_prior = scale_variances(self.prior, hypothesis)
            cross = prior_covariance(self.features, features, scaled_prior)
            residual, variance = student_t.predict(cross, prior_variance(features, scaled_prior))
            return hypothesis.slope_mean * features.trend + residual, variance

        return jax.vmap(moments_under)(self.hypotheses, self.student_t)

    def noise_variances(self, known: Float[Array, ""] | float = 0.0) -> Float[Array, "J H"]:
        """Returns the noise variances of J members, J in front of each array; a known one is added."""
        log_noise_var = self.prior.log_noise_var[:, None] + self.hypotheses.log_noise_variance_factor
        return (jnp.exp(log_noise_var) + known) * self.student_t.variance_scale

    def sample(
        self, trials: History, component: Int[Array, ""], key: Key[Array, ""]
    ) -> Callable[[Float[Array, "m D"]], Float[Array, " m"]]:
        """Samples a function of component j H + h of J members, J in front of each array."""
        member_number, number = jnp.divmod(component, self.log_weight.shape[1])
        member = _take(member_number, self)
        student_t, hypothesis = _take(number, (member.student_t, member.hypotheses))
        prior = scale_variances(member.prior, hypothesis)
        prior_key, noise_key = jax.random.split(key)
        function = sample_prior(prior, member.features, prior_key)
        noise_var = observation_noise(prior.log_noise_var, trials.noise_var)
        residual = student_t.condition_sample(function(member.features), noise_var, noise_key)

        def values(rows: Array) -> Array:
            features = member.compute_features(rows)
            cross = prior_covariance(member.features, features, prior)
            return hypothesis.slope_mean * features.trend + residual(cross, function(features))

        return values


def condition_prior(
    hypotheses: HypothesisArrays, prior: Prior, trials: History, degrees_of_freedom: float
) -> PriorPosterior:
    """Returns one member's posterior given a history, under each of H hypotheses."""
    features, trend_mean = history_features(prior, trials)
    has_spread = jnp.any(trials.where & (trials.response != 0.0))

    def condition_on(hypothesis: HypothesisArrays) -> tuple[ConditionedStudentT, Array]:
        moments = covariance_and_residuals(scale_variances(prior, hypothesis), features, trials, hypothesis.slope_mean)
        student_t = condition_student_t(*moments, trials.where, degrees_of_freedom)
        # Equal responses do not identify the variance scale, so they must not change the weights.
        return student_t, hypothesis.log_weight + jnp.where(has_spread, student_t.log_density, 0.0)

    return PriorPosterior(prior, hypotheses, features, trend_mean, *jax.vmap(condition_on)(hypotheses))


class MixturePosterior(NamedTuple):
    """The mixture given a history, with J members, H hypotheses and K processes of the task: J H + C + K components.

    The common process has C hypotheses; C is 0 without it. Without past tasks, J is 0 too.
    """

    past: tuple[PriorPosterior, ...]
    """What past tasks taught: the learned priors, with J in front of each array, and the common process if any, with 1
    in front. Empty without past tasks."""
    trials: History
    """The history, with scaled responses."""
    task_posteriors: TaskPosterior
    """Posteriors of the processes of the task; K in front."""
    log_weight: Float[Array, " components"]
    """Logarithms of weights that sum to one."""

    @property
    def n_past(self) -> int:
        """J H + C."""
        return sum(group.log_weight.size for group in self.past)

    @property
    def past_weights(self) -> list[Float[Array, "members H"]]:
        """Weights of the members of each group under its hypotheses; the common process is a group of one member."""
        shapes = [group.log_weight.shape for group in self.past]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = jnp.split(jnp.exp(self.log_weight[: self.n_past]), ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    @property
    def process_weights(self) -> Float[Array, " K"]:
        """Weights of the processes of the task."""
        return jnp.exp(self.log_weight[self.n_past :])

    @property
    def past_weight(self) -> Float[Array, ""]:
        """The total weight of the components with the trend of past tasks.

        These are the learned priors and the common process under the hypotheses that keep the trend. The others drop
        or reverse it.
        """
        groups = zip(self.past, self.past_weights, strict=True)
        totals = [jnp.sum(jnp.where(group.hypotheses.slope_mean > 0.0, weights, 0.0)) for group, weights in groups]
        return sum(totals, jnp.zeros((), self.log_weight.dtype))

    def noise_deviations(self, known: Float[Array, ""] | float = 0.0) -> Float[Array, " components"]:
        """Returns the standard deviations of every component's noise, with a known variance."""
        parts = [group.noise_variances(known).ravel() for group in self.past]
        return jnp.sqrt(jnp.concatenate([*parts, self.task_posteriors.noise_variances(known)]))

    def component_moments(
        self, new: Float[Array, "m D"]
    ) -> tuple[Float[Array, "components m"], Float[Array, "components m"]]:
        """Returns the mean and variance of every component at configurations."""

        def member_moments(member: PriorPosterior) -> tuple[Array, Array]:
            return member.moments(new)

        def group_moments(group: PriorPosterior) -> tuple[Array, Array]:
            # One after the other needs less memory, all at once fewer operations: the candidates of a suggestion, in
            # float64, are few.
            if new.dtype == jnp.float64:
                return jax.vmap(member_moments)(group)
            moments: tuple[Array, Array] = lax.map(member_moments, group)
            return moments

        groups = [group_moments(group) for group in self.past]  # two f[J, H, m] of each
        tasks = jax.vmap(lambda task: task.predict(self.trials, new))(self.task_posteriors)
        means, variances = (
            jnp.concatenate([*(group[i].reshape(-1, len(new)) for group in groups), tasks[i]]) for i in range(2)
        )
        return means, variances

    def predict(self, new: Float[Array, "m D"]) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Returns the mean and variance of the mixture at any number of configurations."""
        return by_blocks(lambda rows: mixture_moments(self.log_weight, *self.component_moments(rows)), new)

    def leading_weights(self) -> Float[Array, " components"]:
        """Returns the weights of the leading model of the past tasks, 0 for all other components.

        Two models of the past tasks may promise different configurations; the mean of both promises the one where the
        less likely model varies more. Without a second model, these are the weights of all components.
        """
        if len(self.past) < 2:
            return jnp.exp(self.log_weight)
        totals = jnp.stack([jnp.sum(weights) for weights in self.past_weights])
        is_leading = [jnp.full(group.log_weight.size, i == jnp.argmax(totals)) for i, group in enumerate(self.past)]
        is_leading.append(jnp.zeros(len(self.log_weight) - self.n_past, bool))  # the processes of the task
        return jnp.where(jnp.concatenate(is_leading), jnp.exp(self.log_weight), 0.0)

    def mean_and_improvement(
        self, new: Float[Array, "m D"], incumbent: Float[Array, ""], log_weight: Float[Array, " components"]
    ) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Returns the mean of the leading model and the mixture's log expected improvement at configurations.

        ``log_weight`` are the weights in the expected improvement.
        """
        share, noise = self.leading_weights()[:, None], self.noise_deviations()

        def block(rows: Array) -> tuple[Array, Array]:
            means, variances = self.component_moments(rows)
            improvement = log_mixture_improvement(log_weight, means, variances, incumbent, noise)
            return jnp.sum(share * means, axis=0), improvement

        return by_blocks(block, new)

    def sample(self, new: Float[Array, "m D"], key: Key[Array, ""]) -> Float[Array, " m"]:
        """Samples one function and returns its values at configurations, for Thompson sampling.

        A component is sampled by its weight, then a function of its process: a sample of the prior from random Fourier
        features is conditioned on the trials (pathwise conditioning, Wilson et al. 2020). The cost is linear in the
        number of configurations. Over keys, the values have the mean and the variance of the mixture.
        """
        component_key, past_key, task_key = jax.random.split(key, 3)
        if not self.past:
            component_key = past_key  # as in earlier versions of `gp-mixture`, whose draws stay the same
        component = jax.random.categorical(component_key, self.log_weight)
        end, functions = 0, []
        for i, group in enumerate(self.past):
            first, end = end, end + group.log_weight.size
            group_key = past_key if i == 0 else jax.random.fold_in(key, i)
            number = jnp.clip(component - first, 0, group.log_weight.size - 1)
            functions.append((end, group.sample(self.trials, number, group_key)))
        task = _take(jnp.maximum(component - self.n_past, 0), self.task_posteriors)
        task_function = task.sample(self.trials, task_key)

        def values(rows: Array) -> Array:
            value = task_function(rows)
            for end, function in reversed(functions):
                value = jnp.where(component < end, function(rows), value)
            return value

        return by_blocks(values, new)


def condition_mixture(
    config: TaskProcessConfig, params: HedgedPriorParams | None, trials: History, degrees_of_freedom: float
) -> MixturePosterior:
    """Conditions the mixture on a history, trials in the order of their evaluation; any numbers in empty slots.

    Args:
      config: of the processes of the task.
      params: what past tasks taught; None for processes of the task alone, under the generic prior.
      trials: scaled responses.
      degrees_of_freedom: of the variance scale of the task.
    """
    x, y, where = trials.x, trials.response, trials.where
    x, y = jnp.where(where[:, None], x, 0.0), jnp.where(where, y, 0.0)
    trials = trials._replace(x=x, response=y)
    if params is None:
        tasks = condition_processes(config, generic_prior_like(x), trials, degrees_of_freedom)
        return MixturePosterior((), trials, tasks.posterior, jax.nn.log_softmax(tasks.log_weight))
    past, log_weights = _condition_past(params, trials, degrees_of_freedom)
    tasks = condition_processes(config, params.lengths, trials, degrees_of_freedom)
    log_weights.append(jax.nn.log_sigmoid(-params.transfer_log_odds) + tasks.log_weight)
    return MixturePosterior(past, trials, tasks.posterior, jax.nn.log_softmax(jnp.concatenate(log_weights)))


def _condition_past(
    params: HedgedPriorParams, trials: History, degrees_of_freedom: float
) -> tuple[tuple[PriorPosterior, ...], list[Array]]:
    """Returns the posteriors of what past tasks taught, and their components' log weights before normalisation."""

    def condition(hypotheses: HypothesisArrays, priors: Any) -> PriorPosterior:
        return jax.vmap(lambda prior: condition_prior(hypotheses, prior, trials, degrees_of_freedom))(priors)

    common = params.common
    past, log_shares = [condition(params.hypotheses, params.priors)], [jnp.zeros((), trials.response.dtype)]
    if common is not None:
        past.append(condition(common.hypotheses, common.process))
        log_shares = [jax.nn.log_sigmoid(-common.log_odds), jax.nn.log_sigmoid(common.log_odds)]
    log_transfer = jax.nn.log_sigmoid(params.transfer_log_odds)
    log_weights = [
        log_transfer - math.log(len(group.log_weight)) + group.log_weight.ravel() + log_share
        for group, log_share in zip(past, log_shares, strict=True)
    ]
    return tuple(past), log_weights


def _take(index: Array, tree: Any) -> Any:
    return jax.tree.map(lambda a: a[index], tree)
