"""Hypotheses of how the priors that were learned from past tasks apply to a new task.

A hypothesis changes a prior: past tasks are less informative, not informative, or reversed. `mixture` weights the
hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dre_jax.checks import Checked, NonNegative, Positive
from dre_jax.errors import ConfigError
from dre_jax.methods.hedged_prior.priors import Prior


@dataclass(frozen=True, kw_only=True)
class Hypothesis(Checked):
    """A change of a learned prior: the mean of its slope, and factors of its variances. The defaults change nothing.

    Raises `ConfigError` if the weight or the noise factor is not positive, another variance factor is negative, or a
    number is not finite.
    """

    weight: Positive[float]
    """pi_h; weights are divided by their sum."""
    slope_mean: float = 1.0
    """Mean of the slope a of the learned trend m: 0 drops the trend, -1 reverses it."""
    slope_variance_factor: NonNegative[float] = 1.0
    """Factor of A, the variance of the slope."""
    feature_variance_factor: NonNegative[float] = 1.0
    """Factor of G, the variance of the process over learned features."""
    ard_variance_factor: NonNegative[float] = 1.0
    """Factor of F, the variance of the process over the columns."""
    noise_variance_factor: Positive[float] = 1.0
    """Factor of E, the noise variance."""

    def __post_init__(self) -> None:
        super().__post_init__()
        infinite = [name for name, value in vars(self).items() if not math.isfinite(value)]
        if infinite:
            raise ConfigError(f"{infinite[0]} must be finite, but got {getattr(self, infinite[0])}")


HYPOTHESES = (
    Hypothesis(weight=0.5),
    Hypothesis(weight=0.1, slope_mean=0.6),
    Hypothesis(weight=0.1, feature_variance_factor=2.0, ard_variance_factor=4.0),
    Hypothesis(weight=0.1, feature_variance_factor=0.5, ard_variance_factor=0.5),
    Hypothesis(weight=0.1, slope_mean=0.0, feature_variance_factor=2.0),
    Hypothesis(weight=0.05, slope_mean=-1.0),
    Hypothesis(
        weight=0.05, slope_mean=0.0, slope_variance_factor=0.0, feature_variance_factor=0.0, ard_variance_factor=20.0
    ),
)
"""In this order: the prior as learned; a weaker trend; more variance of the task's own; less of it; no trend; the
reversed trend; neither the trend nor the learned features."""


class HypothesisArrays(NamedTuple):
    """H hypotheses as arrays, in the order of the fields of `Hypothesis`; weights and factors as logarithms."""

    log_weight: Float[Array, " H"]
    slope_mean: Float[Array, " H"]
    log_slope_variance_factor: Float[Array, " H"]
    log_feature_variance_factor: Float[Array, " H"]
    log_ard_variance_factor: Float[Array, " H"]
    log_noise_variance_factor: Float[Array, " H"]


def hypothesis_arrays(hypotheses: Sequence[Hypothesis]) -> HypothesisArrays:
    """Returns hypotheses as arrays, with weights that sum to one."""
    weight, slope_mean, *factors = np.array([astuple(hypothesis) for hypothesis in hypotheses]).T
    with np.errstate(divide="ignore"):  # a variance of zero
        log_weight, *logs = np.log([weight / weight.sum(), *factors])
    return HypothesisArrays(*(jnp.asarray(a, jnp.float32) for a in (log_weight, slope_mean, *logs)))


def scale_variances(prior: Prior, hypothesis: HypothesisArrays) -> Prior:
    """Returns a prior with its variances multiplied by the factors of one hypothesis."""
    return prior._replace(
        log_slope_var=prior.log_slope_var + hypothesis.log_slope_variance_factor,
        log_feature_var=prior.log_feature_var + hypothesis.log_feature_variance_factor,
        log_ard_var=prior.log_ard_var + hypothesis.log_ard_variance_factor,
        log_noise_var=prior.log_noise_var + hypothesis.log_noise_variance_factor,
    )
