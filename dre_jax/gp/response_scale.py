"""The scale of responses that the priors of the Gaussian processes assume, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Float64

from dre_jax.runtime.jit import jit_eager_calls

ResponseScale = Literal["standardised", "compressed"]
"""Linear, or logarithmic below the median of the responses; see `scale_responses`."""
_LARGE = 1.5
"""Multiple of the mean variance of known errors above which an error is large."""


class StandardisedResponses(NamedTuple):
    """Standardised responses and their divisor."""

    y: Float[Array, " n"]
    """Mean 0 and deviation 1 over the filled slots, 0 in empty ones."""
    deviation: Float[Array, ""]
    """The standard deviation of the responses; 1 if all responses are equal."""


@jit_eager_calls()
def standardise(response: Float[Array, " n"], where: Bool[Array, " n"]) -> StandardisedResponses:
    """Standardises responses to mean 0 and deviation 1 over the filled slots; equal responses become 0.

    Args:
      response: of any scale.
      where: the filled slots.

    Example:
      >>> standardise(jnp.array([1.0, 3.0, 9.0]), jnp.array([True, True, False])).y.tolist()
      [-1.0, 1.0, 0.0]
    """
    count = jnp.maximum(jnp.sum(where, dtype=response.dtype), 1.0)
    mean = jnp.sum(jnp.where(where, response, 0.0)) / count
    residual = jnp.where(where, response - mean, 0.0)
    deviation = jnp.sqrt(jnp.sum(residual**2) / count)
    # Rounding leaves a small deviation where all responses are equal. It must not be scaled up to one.
    has_spread = deviation > 1e-6 * jnp.maximum(jnp.abs(mean), 1e-6)
    deviation = jnp.where(has_spread, deviation, 1.0)
    return StandardisedResponses(jnp.where(has_spread, residual / deviation, 0.0), deviation)


class ResponseTransform(NamedTuple):
    """The function from responses to a scale, and back; it increases."""

    mean: Float[Array, ""]
    """Subtracted after the compression."""
    deviation: Float[Array, ""]
    """The divisor after the compression: of an improvement on a response above the median, the divisor."""
    median: Float[Array, ""]
    """Responses below it are compressed."""
    spread: Float[Array, ""]
    """The unit of the compression; infinite for none."""

    def apply(self, response: Float[Array, " *shape"]) -> Float[Array, " *shape"]:
        """Returns responses on the scale."""
        return (_compress(response - self.median, self.spread) - self.mean) / self.deviation

    def slope(self, response: Float[Array, " *shape"]) -> Float[Array, " *shape"]:
        """Returns the derivative of `apply` at responses, to convert small errors."""
        return 1.0 / (1.0 + jnp.maximum(self.median - response, 0.0) / self.spread) / self.deviation

    def noise_var(
        self, noise_var: Float[Array, " n"] | None, response: Float[Array, " n"]
    ) -> Float[Array, " n"] | None:
        """Returns known error variances of responses on the scale; None for none."""
        return None if noise_var is None else noise_var * self.slope(response) ** 2

    def invert(self, scaled: Float64[np.ndarray, " *shape"]) -> Float64[np.ndarray, " *shape"]:
        """Returns responses of numbers on the scale, on the host; minus infinity far below all others."""
        centred = self.mean + self.deviation * scaled
        if not np.isfinite(self.spread):
            return np.asarray(self.median + centred)
        with np.errstate(over="ignore"):
            compressed = -self.spread * np.expm1(np.maximum(-centred, 0.0) / self.spread)
        return np.asarray(self.median + np.where(centred < 0.0, compressed, centred))


class ScaledResponses(NamedTuple):
    """Responses on a scale, and the function that gave them."""

    y: Float[Array, " n"]
    """Mean 0 and deviation 1 over the filled slots, 0 in empty ones."""
    transform: ResponseTransform


@jit_eager_calls("scale")
def scale_responses(scale: ResponseScale, response: Float[Array, " n"], where: Bool[Array, " n"]) -> ScaledResponses:
    """Standardises responses, "compressed" ones after a logarithm below their median; equal responses become 0.

    A response that is d below the median becomes s log(1 + d / s) below it, with s the root mean square of how far the
    better half is above it. Diverged or bad trials therefore do not decide the scale of the good ones. The compression
    does not change improvements on the good ones.

    Example:
      >>> response = jnp.array([-1e6, 1.0, 2.0, 3.0])
      >>> scaled = scale_responses("compressed", response, jnp.ones(4, bool))
      >>> scaled.y.round(1).tolist(), scaled.transform.apply(response).round(1).tolist()
      ([-1.7, 0.4, 0.6, 0.7], [-1.7, 0.4, 0.6, 0.7])
    """
    if scale == "standardised":
        y, deviation = standardise(response, where)
        zero = jnp.zeros((), response.dtype)
        return ScaledResponses(y, ResponseTransform(masked_mean(response, where), deviation, zero, zero + jnp.inf))
    median = masked_median(response, where)
    return _compress_and_standardise(response, where, median, _compression_unit(response - median, where))


def scale_by_evidence(
    response: Float[Array, " n"],
    where: Bool[Array, " n"],
    log_density: Callable[[ScaledResponses], Float[Array, ""]],
    linear_log_odds: float,
) -> ScaledResponses:
    """Returns standardised or compressed responses (`scale_responses`), whichever have more evidence.

    The density of the responses is that of the scaled ones times the derivatives of the transform (Box and Cox 1964).

    Args:
      response: higher is better.
      where: the filled slots.
      log_density: of scaled responses under a model.
      linear_log_odds: log-odds of the standardised ones before the first response.

    Example:
      >>> def normal(scaled):
      ...     return -0.5 * jnp.sum(scaled.y**2)
      >>> for worst in (-1e6, -1.0):
      ...     y = jnp.array([worst, 0.0, 1.0, 2.0])
      ...     bool(jnp.isinf(scale_by_evidence(y, jnp.ones(4, bool), normal, 2.0).transform.spread))
      False
      True
    """
    median = masked_median(response, where)
    spread = _compression_unit(response - median, where)

    def log_evidence(spread: Array) -> Array:
        scaled = _compress_and_standardise(response, where, median, spread)
        log_slopes = jnp.where(where, jnp.log(scaled.transform.slope(response)), 0.0)
        return log_density(scaled) + jnp.sum(log_slopes)

    spreads = jnp.stack([spread, jnp.full_like(spread, jnp.inf)])
    evidence = jax.vmap(log_evidence)(spreads) + jnp.asarray([0.0, linear_log_odds], spread.dtype)
    return _compress_and_standardise(response, where, median, spreads[jnp.argmax(evidence)])


def _compression_unit(centred: Float[Array, " n"], where: Bool[Array, " n"]) -> Float[Array, ""]:
    """Returns the root mean square of the positive ones of deviations from the median."""
    better, worse = (_root_mean_square(centred, where & side) for side in (centred > 0.0, centred < 0.0))
    # Where most responses share the best value, the others are the only ones that have a spread.
    return jnp.where(better > 1e-7 * worse, better, jnp.where(worse > 0.0, worse, 1.0))


def _compress_and_standardise(
    response: Float[Array, " n"], where: Bool[Array, " n"], median: Float[Array, ""], spread: Float[Array, ""]
) -> ScaledResponses:
    compressed = jnp.where(where, _compress(response - median, spread), 0.0)
    y, deviation = standardise(compressed, where)
    return ScaledResponses(y, ResponseTransform(masked_mean(compressed, where), deviation, median, spread))


def _compress(centred: Float[Array, " *shape"], spread: Float[Array, ""]) -> Float[Array, " *shape"]:
    """Returns deviations from the median with the negative ones compressed."""
    is_compressed = (centred < 0.0) & jnp.isfinite(spread)
    return jnp.where(is_compressed, -spread * jnp.log1p(jnp.maximum(-centred, 0.0) / spread), centred)


def _root_mean_square(values: Float[Array, " n"], where: Bool[Array, " n"]) -> Float[Array, ""]:
    return jnp.sqrt(masked_mean(values**2, where))


def masked_mean(values: Float[Array, " n"], where: Bool[Array, " n"]) -> Float[Array, ""]:
    """Returns the mean over the filled slots; 0 if no slot is filled."""
    return jnp.sum(jnp.where(where, values, 0.0)) / jnp.maximum(jnp.sum(where, dtype=values.dtype), 1.0)


def masked_median(values: Float[Array, " n"], where: Bool[Array, " n"]) -> Float[Array, ""]:
    """Returns the median over the filled slots; 0 if no slot is filled.

    Example:
      >>> float(masked_median(jnp.array([1.0, 3.0, 9.0]), jnp.array([True, True, False])))
      2.0
    """
    ascending = jnp.sort(jnp.where(where, values, jnp.inf))
    count = jnp.sum(where, dtype=jnp.int32)
    middle = 0.5 * (ascending[jnp.maximum(count - 1, 0) // 2] + ascending[jnp.minimum(count // 2, len(values) - 1)])
    return jnp.where(count > 0, middle, 0.0)


def best_response(y: Float[Array, " n"], where: Bool[Array, " n"]) -> Float[Array, ""]:
    """Returns the highest of the responses ``y`` in the slots ``where``; -inf if no slot is filled."""
    return jnp.max(jnp.where(where, y, -jnp.inf))


def without_uncertain(
    y: Float[Array, " n"], mean: Float[Array, " n"], noise_var: Float[Array, " n"], where: Bool[Array, " n"]
) -> Float[Array, " n"]:
    """Returns responses, with predicted means in place of those whose known error is larger than that of most.

    A response with a large error is no incumbent. If all errors are alike, the means of all would be lower incumbents:
    searches of functions with noise then repeat good configurations, and leave more regret.
    """
    return jnp.where(noise_var > _LARGE * masked_mean(noise_var, where), mean, y)
