"""Weights of the components in the expected improvement, where they differ from those of the predictions."""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from dre_jax.gp.task_processes import TaskProcessConfig
from dre_jax.methods.hedged_prior.mixture import MixturePosterior


def interpolate_noise(
    config: TaskProcessConfig,
    log_weight: Float[Array, " components"],
    noise: Float[Array, " components"],
    n_past: int = 0,
) -> Float[Array, " components"]:
    """Returns log weights after the fixed processes of the task, which have little noise, got a share of all weights.

    Few trials cannot distinguish a fast variation from noise. If a mixture explains most of the variance of the
    responses by noise, it expects no improvement near the best trials, and suggests the regions it knows least. The
    share is ``interpolation`` times the noise's share of the variance (an epsilon-contamination of the mixture; Berger
    and Berliner 1986).

    Args:
      config: of the processes of the task, of which the fixed ones are first.
      log_weight: of P components of past tasks and K processes of the task.
      noise: standard deviations of the noise of each.
      n_past: P.
    """
    noise_var = jnp.sum(jnp.exp(log_weight) * noise**2)
    share = config.interpolation * jnp.minimum(noise_var, 1.0)  # standardised responses have the variance 1
    return _give_share(log_weight, n_past, n_past + len(config.lengthscales), share)


def select_alone(
    posterior: MixturePosterior, log_weight: Float[Array, " components"], period: int
) -> Float[Array, " components"]:
    """Returns the log weights, or those of the processes of the task in one of ``period`` trials.

    The first such trial comes after ``3 * period`` trials, because past tasks help most in the beginning. Past tasks
    decide where trials are evaluated, so the trials cannot show that the best configurations are elsewhere. These
    trials can. With a period of 0 there are none.
    """
    if period == 0:
        return log_weight
    is_alone = jnp.arange(len(log_weight)) >= posterior.n_past
    alone_log_weight = jax.nn.log_softmax(jnp.where(is_alone, posterior.log_weight, -jnp.inf))
    number = jnp.sum(posterior.trials.where) + 1
    return jnp.where((number % period == 0) & (number > 3 * period), alone_log_weight, log_weight)


def select_leading(posterior: MixturePosterior, log_weight: Float[Array, " components"]) -> Float[Array, " components"]:
    """Returns the log weights, or after a single trial those of the leading model of the past tasks with its trend.

    One response has no scale and changes no weight. The components without the trend then expect the largest
    improvement far from the trial, at configurations that are often the worst of all.
    """
    has_trend = jnp.concatenate([(group.hypotheses.slope_mean > 0.0).ravel() for group in posterior.past])
    of_tasks = jnp.zeros(len(log_weight) - posterior.n_past, bool)
    is_leading = (posterior.leading_weights() > 0.0) & jnp.concatenate([has_trend, of_tasks])
    leading_log_weight = jax.nn.log_softmax(jnp.where(is_leading, posterior.log_weight, -jnp.inf))
    return jnp.where(jnp.sum(posterior.trials.where) == 1, leading_log_weight, log_weight)


def _give_share(
    log_weight: Float[Array, " components"], first: int, last: int, share: Float[Array, ""]
) -> Float[Array, " components"]:
    """Returns log weights after components ``first`` to ``last - 1`` got a share of all weights, each by its weight."""
    lower, receivers, upper = jnp.split(log_weight, [first, last])
    log_remainder = jnp.log1p(-share)
    receivers = jnp.logaddexp(receivers + log_remainder, jax.nn.log_softmax(receivers) + jnp.log(share))
    return jnp.concatenate([lower + log_remainder, receivers, upper + log_remainder])
