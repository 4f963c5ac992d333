"""Weights of the components in the expected improvement, where they differ from those of the predictions."""

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.gp.task_processes import TaskProcessConfig
from dre_jax.methods.hedged_prior.mixture import MixturePosterior


def interpolate_noise(config: TaskProcessConfig, log_weight: Array, noise: Array, n_past: int = 0) -> Array:
    """Returns log weights of which a share went to the fixed processes of the task, which have little noise.

    Few trials cannot tell a fast variation from noise. A mixture that takes most of the variance of the responses for
    noise expects improvement nowhere near the best trials, and suggests what it knows least of. ``interpolation`` times
    the noise's share of the variance therefore goes to the fixed processes (an epsilon-contamination of the mixture;
    Berger and Berliner 1986).

    Args:
      config: of the processes of the task, of which the fixed ones are first.
      log_weight: f[P + K], of P components of past tasks and K processes of the task.
      noise: f[P + K], standard deviations of the noise of each.
      n_past: P.
    """
    noise_var = jnp.sum(jnp.exp(log_weight) * noise**2)
    share = config.interpolation * jnp.minimum(noise_var, 1.0)  # standardised responses have the variance 1
    return _give_share(log_weight, n_past, n_past + len(config.lengthscales), share)


def share_with_task(posterior: MixturePosterior, past_trials: Array) -> Array:
    """Returns the weights after one or two past tasks, whose trials count as as many of the task's own, f[J H + C + K].

    Of one past task, which no other confirms, the learned priors are less certain than their evidence for the trials
    says: a fast variation of the task, for example, is noise to them. The processes of the task therefore have, besides
    their weights, the share n / (n + ``past_trials``) after n trials.
    """
    n_trials = jnp.sum(posterior.trials.where, dtype=posterior.log_weight.dtype)
    total = jnp.maximum(n_trials + past_trials.astype(n_trials.dtype), 1.0)
    return _give_share(posterior.log_weight, posterior.n_past, len(posterior.log_weight), n_trials / total)


def select_alone(posterior: MixturePosterior, log_weight: Array, period: int) -> Array:
    """Returns the weights in the expected improvement; in one trial of so many, those of processes without a trend.

    Such trials begin after ``3 * period``, because past tasks help most in the beginning. However well they explain the
    trials, these were evaluated where they promise most. The evidence cannot say that the task has its best
    configurations elsewhere, unless a trial is evaluated there.
    """
    if period == 0:
        return log_weight
    has_no_trend = posterior.task_posteriors.process.trend_weight == 0.0
    is_alone = jnp.concatenate([jnp.zeros(posterior.n_past, bool), has_no_trend])
    alone_log_weight = jax.nn.log_softmax(jnp.where(is_alone, posterior.log_weight, -jnp.inf))
    number = jnp.sum(posterior.trials.where) + 1
    return jnp.where((number % period == 0) & (number > 3 * period), alone_log_weight, log_weight)


def _give_share(log_weight: Array, first: int, last: int, share: Array) -> Array:
    """Returns log weights after a share of all weights went to components ``first`` to before ``last``, by theirs."""
    lower, receivers, upper = jnp.split(log_weight, [first, last])
    log_remainder = jnp.log1p(-share)
    receivers = jnp.logaddexp(receivers + log_remainder, jax.nn.log_softmax(receivers) + jnp.log(share))
    return jnp.concatenate([lower + log_remainder, receivers, upper + log_remainder])
