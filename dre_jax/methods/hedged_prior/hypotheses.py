"""Hypotheses of what past tasks say about a new one, averaged by evidence (Hoeting et al. 1999).

A learned prior (`learned_prior`) is right where the new task is like the past ones. A hypothesis h changes it: the past
means less, nothing, or the opposite. With pi_h the weight of a hypothesis before the first trial, and p(y | h, j) the
evidence of the trials under it and the prior of member j, the responses of candidates are the mixture

    p(y* | y) = sum_{h, j} w_hj p(y* | y, h, j),    w_hj ~ pi_h p(y | h, j),

of which mean and variance are given. Every trial so weighs anew how far the past is to be believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dre_jax.checks import at_least, positive
from dre_jax.errors import ConfigError
from dre_jax.gp.regression import ConditionedGP
from dre_jax.gp.student import condition_student_t
from dre_jax.methods.hedged_prior.prior import LearnedPrior, LearnedPriorConfig, View, observed, view_trials


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A change of what was learned, by factors; ones change nothing.

    Raises:
      ConfigError: for a weight that is not positive, a negative factor of a variance, or a number that is not finite.
    """

    weight: float
    """pi_h; all are divided by their sum."""
    slope: float = 1.0
    """Of what past tasks have in common: 0 leaves it out, -1 turns it round."""
    doubt: float = 1.0
    """Factor of the slope's variance."""
    deep: float = 1.0
    """Factor of the variance of what the learned kernel tells together."""
    plain: float = 1.0
    """Factor of the variance of what past tasks do not know of."""
    noise: float = 1.0
    """Factor of the variance of the noise."""

    def __post_init__(self) -> None:
        positive(self, "weight", "noise")
        at_least(0, self, "doubt", "deep", "plain")
        infinite = [name for name, value in vars(self).items() if not math.isfinite(value)]
        if infinite:
            raise ConfigError(f"{infinite[0]} must be finite, but got {getattr(self, infinite[0])}")


HYPOTHESES = (
    Hypothesis(weight=0.5),
    Hypothesis(weight=0.1, slope=0.6),
    Hypothesis(weight=0.1, deep=2.0, plain=4.0),
    Hypothesis(weight=0.1, deep=0.5, plain=0.5),
    Hypothesis(weight=0.1, slope=0.0, deep=2.0),
    Hypothesis(weight=0.05, slope=-1.0),
    Hypothesis(weight=0.05, slope=0.0, doubt=0.0, deep=0.0, plain=20.0),
)
"""As was learned; the past says less; the task has more of its own; it has less; what past tasks have in common does
not hold; the opposite holds; nothing of what was learned holds."""


class Believed(NamedTuple):
    """Hypotheses as arrays, f[H] each; `Hypothesis` has the fields."""

    log_weight: Array
    slope: Array
    doubt: Array
    deep: Array
    plain: Array
    noise: Array


def believed(hypotheses: Sequence[Hypothesis]) -> Believed:
    """Hypotheses as arrays, all but the slopes in logarithms, the weights summing up to one."""

    def field(name: str) -> Array:
        return jnp.asarray([getattr(hypothesis, name) for hypothesis in hypotheses], jnp.float32)

    logs = {name: jnp.log(field(name)) for name in ("doubt", "deep", "plain", "noise")}
    return Believed(jax.nn.log_softmax(jnp.log(field("weight"))), field("slope"), **logs)


def changed_by(prior: LearnedPrior, by: Believed) -> LearnedPrior:
    """A prior as a hypothesis changes it, but for its slope."""
    return prior._replace(
        slope=prior.slope + by.doubt,
        deep=prior.deep + by.deep,
        plain=prior.plain + by.plain,
        noise=prior.noise + by.noise,
    )


class Known(NamedTuple):
    """A member's posterior given a history, under each of H hypotheses."""

    tried: View
    """The trials."""
    centre: Array
    """Scalar: the mean of m over the trials."""
    given: ConditionedGP
    """Of the processes; H in front."""
    scale: Array
    """f[H]: `Evidence.variance_scale`, of their variances."""
    log_weight: Array
    """f[H]: log pi_h + log p(y | h, j)."""


def condition(config: LearnedPriorConfig, by: Believed, prior: LearnedPrior, x: Array, y: Array, where: Array) -> Known:
    """One member's posterior given a history: x f[n, D], y f[n] standardised, where bool[n]."""
    tried, middle = view_trials(config, prior, jnp.where(where[:, None], x, 0.0), where)
    varied = jnp.any(where & (y != 0.0))

    def under(by: Believed) -> tuple[ConditionedGP, Array, Array]:
        found = condition_student_t(*observed(changed_by(prior, by), tried, y, where, by.slope), where, config.freedom)
        # Equal responses say nothing of the scale, and so nothing of the hypotheses.
        return found.gp, found.variance_scale, by.log_weight + jnp.where(varied, found.log_density, 0.0)

    return Known(tried, middle, *jax.vmap(under)(by))


def log_evidence(config: LearnedPriorConfig, by: Believed, priors: LearnedPrior, *history: Array) -> Array:
    """log of the mean over members of p(y | h, j), f[H], up to a term that all hypotheses share."""
    known = jax.vmap(lambda prior: condition(config, by, prior, *history))(priors)
    found = known.log_weight - by.log_weight[None, :]
    return jax.nn.logsumexp(found, axis=0) - math.log(found.shape[0])
