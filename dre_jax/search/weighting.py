"""Values of a method times a weight: improvement where an evaluation is likely to succeed.

A product needs values on a scale. Those of an expected, or a probable, improvement are logarithms, to which the
logarithm of the weight is added, so that the product is that of Gardner et al. (2014); improvements below `RESOLUTION`
count as that much, as the weight should decide where none is left. All other values (mean ranks, votes, confidence
bounds, draws) are divided by their standard deviation over the candidates: a deviation then counts as a factor of e in
the weight. Where a method values all candidates alike, it is random search, and candidates are drawn in proportion to
their weights.
"""

from __future__ import annotations

import math
from typing import Protocol

import jax.numpy as jnp
from jax import Array

from dre_jax.search.acquisition import RESOLUTION, AcquisitionConfig
from dre_jax.search.method import Method

_LOGARITHMS = ("ei", "pi")
_LOG_RESOLUTION = math.log(RESOLUTION)


class Feasibility(Protocol):
    """A model of which configurations can be evaluated and satisfy the constraints; a tree of arrays."""

    @property
    def decides(self) -> Array:
        """bool: the method's values are ignored, as no improvement is defined before the first feasible trial."""
        ...

    def log_weight(self, points: Array) -> Array:
        """Returns the log weight f[N] of points f[N, P] of the unit cube, at most 0; it has a gradient."""
        ...


def values_are_logarithms(method: Method, *, sample: bool) -> bool:
    """Returns whether a method's values are logarithms of an improvement; not those of one sampled model."""
    acquisition = getattr(method, "acquisition", None)
    return not sample and isinstance(acquisition, AcquisitionConfig) and acquisition.kind in _LOGARITHMS


def value_scale(values: Array, where: Array) -> Array:
    """Returns the standard deviation of values f[N] over the candidates, a scalar; 1 if all are equal.

    Args:
      values: f[N].
      where: bool[N], which of them count.
    """
    where = where & jnp.isfinite(values)
    deviation = jnp.std(values, where=where)
    return jnp.where(_differ(values, where) & (deviation > 0.0), deviation, 1.0)


def weigh(values: Array, scale: Array | None, feasibility: Feasibility, points: Array) -> Array:
    """Returns values times weights, f[N], as logarithms.

    Args:
      values: f[N]; minus infinity stays.
      scale: their divisor; None for logarithms.
      feasibility: the model.
      points: f[N, P].
    """
    possible = values > -jnp.inf
    scaled = jnp.logaddexp(values, _LOG_RESOLUTION) if scale is None else values / scale
    shown = jnp.where(feasibility.decides, 0.0, scaled)
    return jnp.where(possible, shown + feasibility.log_weight(points), -jnp.inf)


def tie_noise(values: Array, bits: Array) -> Array:
    """Returns standard Gumbel numbers f[N] of random bits u32[N] if all finite values are equal, else zeros.

    The largest sum of a log weight and such a number is a draw in proportion to the weights.
    """
    differ = _differ(values, jnp.isfinite(values))
    dtype = values.dtype
    uniform = jnp.minimum((bits.astype(dtype) + 0.5) / 2.0**32, 1.0 - float(jnp.finfo(dtype).epsneg))
    return jnp.where(differ, 0.0, -jnp.log(-jnp.log(uniform)))


def _differ(values: Array, where: Array) -> Array:
    high = jnp.max(values, where=where, initial=-jnp.inf)
    return high > jnp.min(values, where=where, initial=jnp.inf)
