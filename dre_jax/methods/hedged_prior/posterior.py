"""The mixture that the recommended method predicts by: learned priors and their hypotheses, and the task by itself.

Its components are what past tasks teach, a member and a hypothesis each (`hypotheses`), and processes that know the
task by its own trials (`task_process`): some with fixed hyperparameters, some fitted, with and without what past tasks
have in common. Before the first trial the former have the weight of the trust in the past, the latter the rest; then
the evidence of the trials weighs them. So whatever the past is worth, the task at hand by itself is one explanation of
its trials.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dre_jax.gp.regression import ConditionedGP, PreparedGP, predict_signal, prepare_gp
from dre_jax.methods.hedged_prior import task_process
from dre_jax.methods.hedged_prior.hypotheses import Believed, Known, changed_by, condition
from dre_jax.methods.hedged_prior.prior import LearnedPrior, LearnedPriorConfig, covariance, variance, view
from dre_jax.methods.hedged_prior.task_process import TaskProcess, TaskProcessConfig, Trials
from dre_jax.methods.hedged_prior.weights import WeighedPriors
from dre_jax.runtime.blocks import by_blocks
from dre_jax.search.acquisition import log_augmented_improvement


class HedgedPosterior(NamedTuple):
    """The mixture given a history, ready for predictions."""

    known: Known
    """Learned priors; J in front."""
    learned: PreparedGP
    """[J, H] in front."""
    trials: Trials
    """The history; its trend is the mean of the members'."""
    processes: TaskProcess
    """K in front."""
    own: ConditionedGP
    """K in front."""
    own_ready: PreparedGP
    """K in front."""
    scale: Array
    """f[K]: of the variances of the processes."""
    log_weight: Array
    """f[J H + K]: logarithms, of weights that sum up to one."""

    @property
    def learned_weights(self) -> Array:
        """f[J, H]: of the learned priors."""
        return jnp.exp(self.log_weight[: -len(self.scale)]).reshape(self.known.log_weight.shape)

    @property
    def own_weights(self) -> Array:
        """f[K]: of the processes of the task by itself."""
        return jnp.exp(self.log_weight[-len(self.scale) :])


def condition_all(
    sizes: LearnedPriorConfig, config: TaskProcessConfig, past: WeighedPriors, x: Array, y: Array, where: Array
) -> HedgedPosterior:
    """Conditions the mixture on a history.

    Args:
      sizes: of the learned priors.
      config: of the processes of the task by itself.
      past: what past tasks teach.
      x: f[n, D], the trials in the order of their evaluation.
      y: f[n], their responses, standardised.
      where: bool[n], which of them count.
    """
    x, y = jnp.where(where[:, None], x, 0.0), jnp.where(where, y, 0.0)
    known = jax.vmap(lambda prior: condition(sizes, past.by, prior, x, y, where))(past.priors)
    trials = Trials(x, jnp.where(where, jnp.mean(known.tried.trend, axis=0), 0.0), y, where)
    own = task_process.condition_processes(config, past.hyperpriors, trials, sizes.freedom)
    # Equal responses say nothing of the scale, and so nothing of what explains them.
    own_evidence = jnp.where(jnp.any(where & (y != 0.0)), own.log_density, 0.0)
    log_weight = jnp.concatenate(
        [
            jax.nn.log_sigmoid(past.trust) - math.log(len(known.centre)) + known.log_weight.ravel(),
            jax.nn.log_sigmoid(-past.trust) + task_process.log_shares(config, y.dtype) + own_evidence,
        ]
    )
    return HedgedPosterior(
        known,
        jax.vmap(jax.vmap(prepare_gp))(known.given),
        trials,
        own.process,
        own.given,
        jax.vmap(prepare_gp)(own.given),
        own.scale,
        jax.nn.log_softmax(log_weight),
    )


def component_moments(
    sizes: LearnedPriorConfig, past: WeighedPriors, posterior: HedgedPosterior, new: Array
) -> tuple[Array, Array]:
    """Mean and variance of every component at new configurations f[m, D]; two f[J H + K, m]."""

    def of_member(args: tuple[LearnedPrior, Known, PreparedGP]) -> tuple[Array, Array, Array]:
        prior, known, given = args
        at = view(sizes, prior, new)
        at = at._replace(trend=at.trend - known.centre)

        def under(by: Believed, given: PreparedGP, scale: Array) -> tuple[Array, Array]:
            changed = changed_by(prior, by)
            off, spread = predict_signal(given, covariance(known.tried, at, changed), variance(at, changed))
            return by.slope * at.trend + off, scale * spread

        return *jax.vmap(under)(past.by, given, known.scale), at.trend

    means, variances, trends = lax.map(of_member, (past.priors, posterior.known, posterior.learned))
    trials, trend = posterior.trials, jnp.mean(trends, axis=0)

    def of_process(process: TaskProcess, given: PreparedGP, scale: Array) -> tuple[Array, Array]:
        cross = task_process.covariance(process, trials.x, new, trials.trend, trend)
        off, spread = predict_signal(given, cross, task_process.variance(process, trend))
        return process.slope * trend + off, scale * spread

    own_means, own_variances = jax.vmap(of_process)(posterior.processes, posterior.own_ready, posterior.scale)
    flat = (-1, new.shape[0])
    return (
        jnp.concatenate([means.reshape(flat), own_means]),
        jnp.concatenate([variances.reshape(flat), own_variances]),
    )


def predict_mixture(
    sizes: LearnedPriorConfig, past: WeighedPriors, posterior: HedgedPosterior, new: Array
) -> tuple[Array, Array]:
    """Mean and variance of the mixture at any number of new configurations f[m, D]; two f[m]."""
    share = jnp.exp(posterior.log_weight)[:, None]

    def block(rows: Array) -> tuple[Array, Array]:
        means, variances = component_moments(sizes, past, posterior, rows)
        # Sums, not products, whose factors an accelerator would round.
        mean = jnp.sum(share * means, axis=0)
        spread = jnp.sum(share * (variances + (means - mean[None, :]) ** 2), axis=0)
        return mean, jnp.maximum(spread, jnp.finfo(spread.dtype).tiny)

    mean, spread = by_blocks(block, new)
    return mean, spread


def _noise(past: WeighedPriors, posterior: HedgedPosterior) -> Array:
    """Deviation of every component's noise, f[J H + K]."""
    learned = jnp.exp(past.priors.noise[:, None] + past.by.noise[None, :]) * posterior.known.scale
    own = jnp.exp(posterior.processes.log_noise_var) * posterior.scale
    return jnp.sqrt(jnp.concatenate([learned.ravel(), own]))


def mean_and_improvement(
    sizes: LearnedPriorConfig, past: WeighedPriors, posterior: HedgedPosterior, new: Array, incumbent: Array
) -> tuple[Array, Array]:
    """Mean of the mixture, and the logarithm of its expected improvement on an incumbent, at new configurations.

    Configurations are f[m, D], the incumbent is a scalar, the results are two f[m].

    The improvement is the sum of the components'. That of a Gaussian of the mixture's moments would be another: a
    component of little weight that says something else widens it everywhere, long after it is refuted.
    """
    share = jnp.exp(posterior.log_weight)[:, None]
    noise = _noise(past, posterior)[:, None]

    def block(rows: Array) -> tuple[Array, Array]:
        means, variances = component_moments(sizes, past, posterior, rows)
        each = log_augmented_improvement(-means, jnp.sqrt(variances), -incumbent, noise)
        improvement = jax.nn.logsumexp(posterior.log_weight[:, None] + each, axis=0)
        return jnp.sum(share * means, axis=0), improvement

    mean, improvement = by_blocks(block, new)
    return mean, improvement
