"""Values of a method times a weight: improvement where an evaluation is likely to succeed.

A product needs values on a scale. Values of an expected or a probable improvement are logarithms. The logarithm of the
weight is added to them, so that the product is that of Gardner et al. (2014). Improvements below `RESOLUTION` count as
`RESOLUTION`, so that the weight decides where no improvement is left. All other values (mean ranks, confidence bounds,
draws) are divided by their standard deviation over the candidates: a deviation then counts as a factor of e in the
weight. Where a method values all candidates alike, it is random search, and candidates are drawn in proportion to their
weights.

A belief about where good values lie is another weight. Neither the resolution nor `decides` applies to it.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, TypeGuard

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, UInt32

from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.search.acquisition import RESOLUTION, acquisition_of
from dre_jax.search.method import Method, PosteriorMethod
from dre_jax.space.layout import SpaceLayout

_LOG_RESOLUTION = math.log(RESOLUTION)


class Weight(Protocol):
    """A weight of configurations; a tree of arrays."""

    def log_weight(self, points: Float[Array, "N P"]) -> Float[Array, " N"]:
        """Returns the log weight of points of the unit cube; it has a gradient."""
        ...


class Model(Weight, Protocol):
    """A weight that is learned from trials."""

    @property
    def applies(self) -> Bool[Array, ""]:
        """Whether there is anything to learn from; otherwise all weights are 1."""
        ...


class Feasibility(Model, Protocol):
    """A model of which configurations can be evaluated and satisfy the constraints: their weight is at most 1."""

    @property
    def decides(self) -> Bool[Array, ""]:
        """Whether the method's values are ignored, as no improvement is defined before the first feasible trial."""
        ...


class Weights(NamedTuple):
    """The weights of configurations; None where there is none."""

    feasibility: Feasibility | None = None
    """Probability that a configuration can be evaluated and is feasible."""
    belief: Float[Array, "P knots"] | None = None
    """Logarithms of a belief's weights; see `log_belief`."""
    cost: Model | None = None
    """Divides values by the expected cost of an evaluation."""

    @property
    def applies(self) -> Bool[Array, ""] | bool:
        """Whether any configuration may have another weight than others."""
        if self.belief is not None:
            return True
        models = [model.applies for model in (self.feasibility, self.cost) if model is not None]
        return jnp.any(jnp.stack(models)) if models else False

    def log_further(self, layout: SpaceLayout, points: Float[Array, "N P"]) -> Float[Array, " N"] | float:
        """Returns the log weight of the belief and the cost, or 0 without both."""
        likely = 0.0 if self.belief is None else log_belief(layout, self.belief, points)
        return likely if self.cost is None else likely + self.cost.log_weight(points)


NO_WEIGHTS = Weights()
"""All configurations have the same weight."""


def values_are_logarithms(method: Method, *, sample: bool) -> bool:
    """Returns whether a method's values are logarithms of an improvement; not those of one sampled model."""
    acquisition = acquisition_of(method)
    return not sample and acquisition is not None and acquisition.scale == "log"


def gives_improvement(method: Method) -> TypeGuard[PosteriorMethod]:
    """Returns whether values are logarithms of the expected improvement on the scale of `response_transform`."""
    acquisition = acquisition_of(method)
    return isinstance(method, PosteriorMethod) and acquisition is not None and acquisition.is_expected_improvement


def value_scale(values: Float[Array, " N"], where: Bool[Array, " N"]) -> Float[Array, ""]:
    """Returns the standard deviation of the values that count; 1 if all are equal."""
    where = where & jnp.isfinite(values)
    deviation = jnp.std(values, where=where)
    return jnp.where(_differ(values, where) & (deviation > 0.0), deviation, 1.0)


def log_belief(
    layout: SpaceLayout, table: Float[AnyArray, "P knots"], points: Float[AnyArray, "N P"]
) -> Float[AnyArray, " N"]:
    """Returns the sum of the logarithms of a belief's weights over the active hyperparameters of points.

    ``table`` has the logarithms at knots that divide [0, 1] evenly, with linear interpolation between them.
    """
    xp, position = namespace(points), points * (table.shape[1] - 1)
    left = xp.clip(xp.floor(position), 0, table.shape[1] - 2)
    rows, knot = xp.arange(len(table)), left.astype(xp.int32)
    below, above = table[rows, knot], table[rows, knot + 1]
    logs = below + (position - left) * (above - below)
    return xp.sum(xp.where(xp.stack(layout.active(points), axis=-1), logs, 0.0), axis=1)


def weigh(
    values: Float[Array, " N"],
    scale: Float[Array, ""] | None,
    feasibility: Feasibility | None,
    points: Float[Array, "N P"],
    belief: Float[Array, " N"] | float = 0.0,
) -> Float[Array, " N"]:
    """Returns the logarithms of values times weights; minus infinity stays.

    ``scale`` divides the values, None for values that are logarithms, and ``belief`` are logarithms of weights.
    """
    weighted_values = values if scale is None else values / scale
    if feasibility is not None:
        comparable, unweighted_values = weighted_values, weighted_values
        if scale is None:
            comparable = jnp.logaddexp(values, _LOG_RESOLUTION)

        def times_probability() -> Array:
            return jnp.where(feasibility.decides, 0.0, comparable) + feasibility.log_weight(points)

        weighted_values = jax.lax.cond(feasibility.applies, times_probability, lambda: unweighted_values)
    return jnp.where(values > -jnp.inf, weighted_values + belief, -jnp.inf)


def tie_noise(values: Float[Array, " N"], bits: UInt32[Array, " N"]) -> Float[Array, " N"]:
    """Returns standard Gumbel numbers of random bits if all finite values are equal, else zeros.

    The largest sum of a log weight and such a number is a draw in proportion to the weights.
    """
    differ = _differ(values, jnp.isfinite(values))
    dtype = values.dtype
    uniform = jnp.minimum((bits.astype(dtype) + 0.5) / 2.0**32, 1.0 - float(jnp.finfo(dtype).epsneg))
    return jnp.where(differ, 0.0, -jnp.log(-jnp.log(uniform)))


def _differ(values: Float[Array, " N"], where: Bool[Array, " N"]) -> Bool[Array, ""]:
    high = jnp.max(values, where=where, initial=-jnp.inf)
    return high > jnp.min(values, where=where, initial=jnp.inf)
