"""Beliefs about where good values lie: a density over the coordinate of each hyperparameter.

The density of a number is constant over its likely range and falls off beyond it, as a Gaussian whose deviation is half
of the range. A fifth of the mass is uniform, so no value is excluded. Of a categorical, the likely choices share four
fifths. The first configurations are drawn from the densities. Afterwards, the acquisition function is weighted by a
power of the densities that decays with the number of trials n, beta / (n + 1) (piBO, Hvarfner et al. 2022), and sooner
where responses disagree.
"""

import math

import numpy as np
from jaxtyping import Bool, Float, Float64

from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.parameters import Categorical, Parameter
from dre_jax.space.space import Space
from dre_jax.suggest.weighting import log_belief
from dre_jax.tuning.suggestion.state import StudyState
from dre_jax.tuning.trials.responses import clip_responses

UNIFORM_MASS = 0.2
_LEAST_DEVIATION = 0.05  # of a coordinate
_LEAST_KNOTS = 128
_SLOPE, _SLOPE_DEVIATION = 0.5, 0.5
"""Of responses on log densities, both in standard deviations: mean and deviation before the first trial."""


def log_densities(space: Space) -> Float64[np.ndarray, "P knots"] | None:
    """Returns the log densities at knots that divide [0, 1] evenly; None if no hyperparameter has a belief.

    Between the knots, densities are interpolated; there are so many that this is exact in the middle of a choice.
    """
    if all(parameter.likely is None for parameter in space.values()):
        return None
    most_choices = max((len(p.choices) for p in space.values() if isinstance(p, Categorical)), default=0)
    u = np.linspace(0.0, 1.0, max(_LEAST_KNOTS, 2 ** (2 * most_choices).bit_length()) + 1)
    logs: np.ndarray = np.log([_density(space, name, u) for name in space.sequence])
    return logs if logs.any() else None


def _density(space: Space, name: str, u: Float64[np.ndarray, " knots"]) -> Float64[np.ndarray, " knots"]:
    """Returns the density of a hyperparameter at coordinates."""
    parameter: Parameter = space[name]
    if parameter.likely is None:
        return np.ones_like(u)
    if isinstance(parameter, Categorical):
        n, likely = len(parameter.choices), {parameter.index(choice) for choice in parameter.likely}
        shares = np.array([UNIFORM_MASS + (1.0 - UNIFORM_MASS) * n / len(likely) * (i in likely) for i in range(n)])
        return shares[np.minimum((u * n).astype(int), n - 1)]
    low, high = map(space.layout.parts[space.sequence.index(name)].coordinates, parameter.likely)
    deviation = max((high - low) / 2, _LEAST_DEVIATION)
    distance = np.maximum(np.maximum(low - u, u - high), 0.0)
    tails = sum(math.erf(length / (deviation * math.sqrt(2))) for length in (low, 1.0 - high))
    mass = high - low + deviation * math.sqrt(math.pi / 2) * tails
    return UNIFORM_MASS + (1.0 - UNIFORM_MASS) * np.exp(-0.5 * (distance / deviation) ** 2) / mass


def to_quantiles(table: Float64[np.ndarray, "P knots"], points: Float[np.ndarray, "N P"]) -> Float64[np.ndarray, "N P"]:
    """Returns points whose coordinates are quantiles of the densities at the coordinates.

    Evenly distributed points become draws from the densities; for the table see `log_densities`.
    """
    u = np.linspace(0.0, 1.0, table.shape[1])
    samples = np.array(points, np.float64)
    for i, density in enumerate(np.exp(table)):
        if (density != 1.0).any():
            cumulative = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
            samples[:, i] = np.interp(samples[:, i], cumulative / cumulative[-1], u)
    return samples


def belief_weights(
    table: Float[AnyArray, "P knots"], layout: SpaceLayout, state: StudyState, beta: float
) -> Float[AnyArray, "P knots"]:
    """Returns the logarithms of the weights of the densities after the trials of a study.

    They are the densities to a power, which is ``beta`` before the first trial. It is less than beta / (n + 1) where
    the trials disagree, and 0 where their responses do not rise with the density: in proportion to the posterior mean
    of the slope of a linear regression of responses on log densities.
    """
    xp, where = namespace(state.points), state.where
    n = xp.sum(where, dtype=table.dtype)
    responses = xp.where(where, clip_responses(xp.where(where, state.responses, 0.0), where), 0.0)
    deviation = xp.sqrt(xp.sum(xp.var(table, axis=1)))
    densities = _standardise(log_belief(layout, table, state.points), where, deviation)
    spread = xp.sqrt(xp.sum(_standardise(responses, where, 1.0) ** 2) / xp.maximum(n, 1.0))
    precision = 1.0 / _SLOPE_DEVIATION**2
    products = xp.sum(densities * _standardise(responses, where, spread))
    slope = (precision * _SLOPE + products) / (precision + xp.sum(densities**2))
    has_slope = (n >= 2) & (spread > 0) & (deviation > 0)
    power = beta / (n + 1.0) * xp.where(has_slope, xp.clip(slope / _SLOPE, 0.0, 1.0), 1.0)
    return power * (table - xp.max(table, axis=1, keepdims=True))


def _standardise(
    values: Float[AnyArray, " n"], where: Bool[AnyArray, " n"], deviation: Float[AnyArray, ""] | float
) -> Float[AnyArray, " n"]:
    """Returns values of slots less their mean, in units of a deviation, 1 if it is 0; 0 in other slots."""
    xp = namespace(values)
    mean = xp.sum(xp.where(where, values, 0.0)) / xp.maximum(xp.sum(where, dtype=values.dtype), 1.0)
    return xp.where(where, (values - mean) / xp.where(deviation > 0, deviation, 1.0), 0.0)
