"""A Gaussian process' hyperparameters by the marginal likelihood, with priors that hold them where data say little."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, TypeVar, get_args

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from dre_jax.checks import at_least, one_of, positive
from dre_jax.errors import ConfigError
from dre_jax.gp.kernels import Kernel
from dre_jax.gp.regression import GPParams, log_marginal_likelihood
from dre_jax.optim.descent import maximise
from dre_jax.optim.quasi_newton import maximise_in_box

T = TypeVar("T")


DensityOf = Literal["length", "logarithm"]
Optimiser = Literal["adam", "bfgs"]


@dataclass(frozen=True, kw_only=True)
class GPConfig:
    """Search for hyperparameters.

    Raises:
      ConfigError: where a number is out of range.
    """

    optimiser: Optimiser = "adam"
    """"adam", or projected "bfgs", which takes a third of the steps."""
    steps: int = 100
    """Points that are tried from each start, the start among them, at most."""
    learning_rate: float = 0.2
    """Adam's, at the start; it falls to zero along a cosine."""
    first_lengths: tuple[float, float] = (0.08, 0.5)
    """Length scales that the searches start from, in roots of the number of columns: short ones with little noise, long
    ones with much. A likelihood has a maximum of either kind."""
    priors: bool = True
    """Adds priors to the likelihood: length scales that grow with the root of the number of columns
    (Hvarfner et al. 2024), signal near the responses' variance, little noise."""
    first_log_noises: tuple[float, float] = (-4.0, -1.0)
    """Logarithms of the noise's variance that the searches start from: responses are exact, or mostly noise."""
    log_noise_prior: tuple[float, float] = (-6.0, 2.0)
    """Mean and deviation of the Gaussian prior of that logarithm."""
    least_noise: float = 1e-6
    """Lower bound of the noise's variance; eight roundings of a number if that is more."""
    kernel: Kernel = "matern52"
    """Correlation of the signal."""
    density_of: DensityOf = "length"
    """Variable that the log-normal prior of the length scales is a density of; a fit is drawn to its mode. Of the
    lengths, as in the paper, the likeliest is a twentieth of the median; of their logarithms it is the median, for what
    is left of a mean that says most already."""

    def __post_init__(self) -> None:
        at_least(0, self, "steps")
        positive(self, "learning_rate", "least_noise")
        one_of("optimiser", self.optimiser, get_args(Optimiser))
        one_of("kernel", self.kernel, get_args(Kernel))
        one_of("density_of", self.density_of, get_args(DensityOf))
        if min(self.first_lengths) <= 0:
            raise ConfigError(f"first_lengths > 0 must hold, but got first_lengths={self.first_lengths}")


_LENGTHS = (math.log(5e-3), math.log(200.0))
_SCALES = (math.log(1e-2), math.log(1e2))
_MOST_NOISE = 1.0
_LENGTH_SPREAD = math.sqrt(3.0)
_REACH, _TOLERANCE = 2.0, 1e-3  # of BFGS, in the logarithms of hyperparameters and of the density


def _mean_log_length(n_columns: int) -> float:
    """Mean of the logarithm of a length scale under its log-normal prior (Hvarfner et al. 2024, equation 5)."""
    return math.sqrt(2.0) + 0.5 * math.log(max(n_columns, 1))


def log_prior(
    params: GPParams, density_of: DensityOf = "length", log_noise: tuple[float, float] = GPConfig.log_noise_prior
) -> Array:
    """Log-density of the priors, up to a constant; see `GPConfig.density_of` and `GPConfig.log_noise_prior`.

    At the median length scale a fit to ten trials in six columns would be all but linear, and sure of it.
    """
    usual = _mean_log_length(params.log_length.shape[-1])
    lengths = jnp.sum(((params.log_length - usual) / _LENGTH_SPREAD) ** 2)
    if density_of == "length":
        lengths = lengths + 2.0 * jnp.sum(params.log_length)
    noise = ((params.log_noise - log_noise[0]) / log_noise[1]) ** 2
    return -0.5 * (lengths + params.log_scale**2 + noise)


def within_bounds(params: GPParams, least_noise: float = GPConfig.least_noise) -> GPParams:
    """The nearest hyperparameters for which a covariance can be worked with."""
    least = max(least_noise, 8.0 * float(jnp.finfo(params.log_noise.dtype).eps))
    return replace(
        params,
        log_length=jnp.clip(params.log_length, *_LENGTHS),
        log_scale=jnp.clip(params.log_scale, *_SCALES),
        log_noise=jnp.clip(params.log_noise, math.log(least), math.log(_MOST_NOISE)),
    )


class Start(NamedTuple):
    """Start of a search."""

    log_noise: Array
    """Scalar."""
    log_length: Array
    """f[D]"""


def maximise_from_starts(
    config: GPConfig,
    objective: Callable[[T], Array],
    start_at: Callable[[Start], T],
    project: Callable[[T], T],
    x: Array,
) -> T:
    """The best point that is found from short length scales with little noise, and from long ones with much.

    Objective and projection are those of `maximise`; of f[n, D] only the number of columns counts.
    """
    n_columns = x.shape[-1]
    lengths = [min(math.log(a * math.sqrt(n_columns)), _LENGTHS[1]) for a in config.first_lengths]

    def search(start: Start) -> tuple[T, Array]:
        first, (steps, rate) = start_at(start), (config.steps, config.learning_rate)
        return maximise(objective, first, steps=steps, learning_rate=rate, project=project)

    starts = Start(jnp.array(config.first_log_noises, x.dtype), jnp.array([[a] * n_columns for a in lengths], x.dtype))
    if config.optimiser == "bfgs":
        found, values = _search_by_bfgs(config, objective, jax.vmap(start_at)(starts), project)
    else:
        found, values = jax.vmap(search)(starts)
    best = jnp.argmax(values)
    return jax.tree.map(lambda a: a[best], found)


def _search_by_bfgs(
    config: GPConfig, objective: Callable[[T], Array], starts: T, project: Callable[[T], T]
) -> tuple[T, Array]:
    """What is found from S starts, S in front of each array, and the objective there, f[S]."""
    _, restore = ravel_pytree(jax.tree.map(lambda a: a[0], starts))
    flat = jax.vmap(lambda tree: ravel_pytree(tree)[0])(starts)
    low, high = (ravel_pytree(project(restore(jnp.full_like(flat[0], end))))[0] for end in (-jnp.inf, jnp.inf))
    value_and_gradient = jax.vmap(jax.value_and_grad(lambda point: objective(restore(point))))
    steps = max(config.steps - 1, 0)
    found = maximise_in_box(value_and_gradient, flat, low, high, steps=steps, reach=_REACH, tolerance=_TOLERANCE)
    return jax.vmap(restore)(found.points), found.values


def fit_gp(config: GPConfig, x: Array, y: Array, where: Array) -> GPParams:
    """Hyperparameters of the highest likelihood (with priors: density) of a history that is found from two starts.

    Args:
      config: what is searched, and how long.
      x: f[n, D].
      y: f[n], standardised responses.
      where: bool[n], the filled slots.
    """

    def objective(params: GPParams) -> Array:
        value = log_marginal_likelihood(params, x, y, where)
        return value + log_prior(params, config.density_of, config.log_noise_prior) if config.priors else value

    def start_at(start: Start) -> GPParams:
        return GPParams(start.log_length, jnp.zeros((), x.dtype), start.log_noise, config.kernel)

    project = partial(within_bounds, least_noise=config.least_noise)
    return maximise_from_starts(config, objective, start_at, project, x)
