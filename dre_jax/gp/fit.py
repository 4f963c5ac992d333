"""Hyperparameters of a Gaussian process by maximum a posteriori: the marginal likelihood and log-normal priors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Bool, Float

from dre_jax.checks import Checked, NonNegative, Positive
from dre_jax.errors import ConfigError
from dre_jax.gp.kernels import Kernel
from dre_jax.gp.regression import GPParams, log_marginal_likelihood
from dre_jax.optim.descent import maximise
from dre_jax.optim.quasi_newton import maximise_in_box

T = TypeVar("T")


DensityOf = Literal["length", "logarithm"]
Optimiser = Literal["adam", "bfgs"]


@dataclass(frozen=True, kw_only=True)
class GPConfig(Checked):
    """Maximisation of the posterior density of the hyperparameters.

    Raises:
      ConfigError: if a number is out of range.
    """

    optimiser: Optimiser = "adam"
    """"adam", or projected "bfgs", which needs a third of the steps."""
    steps: NonNegative[int] = 100
    """Maximum number of points evaluated from each start, the start included."""
    learning_rate: Positive[float] = 0.2
    """Initial learning rate of Adam; a cosine decays it to zero."""
    first_lengths: tuple[float, float] = (0.08, 0.5)
    """Initial length scales, in units of the square root of the number of columns: short ones with little noise, and
    long ones with much noise. A likelihood often has a local maximum of each kind."""
    priors: bool = True
    """Whether priors are added to the likelihood: length scales proportional to the square root of the number of
    columns (Hvarfner et al. 2024), a signal variance near that of the responses, and a small noise variance."""
    first_log_noises: tuple[float, float] = (-4.0, -1.0)
    """Initial log noise variances: responses are exact, or mostly noise."""
    log_noise_prior: tuple[float, float] = (-6.0, 2.0)
    """Mean and standard deviation of the Gaussian prior of the log noise variance."""
    least_noise: Positive[float] = 1e-6
    """Lower bound of the noise variance; at least 8 times the machine epsilon."""
    kernel: Kernel = "matern52"
    """Correlation function of the signal."""
    density_of: DensityOf = "length"
    """Variable of the log-normal prior density of the length scales, which decides its mode. As a density of the
    length, as in the paper, the mode is a twentieth of the median. As a density of the logarithm the mode is the
    median, which suits the residual of an informative mean."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if min(self.first_lengths) <= 0:
            raise ConfigError(f"first_lengths > 0 must hold, but got first_lengths={self.first_lengths}")


_LOG_LENGTH_BOUNDS = (math.log(5e-3), math.log(200.0))
_LOG_SCALE_BOUNDS = (math.log(1e-2), math.log(1e2))
_MAX_NOISE = 1.0
_LOG_LENGTH_STD = math.sqrt(3.0)
_MAX_STEP, _TOLERANCE = 2.0, 1e-3  # of BFGS, in units of log hyperparameters and log density


def log_hyperprior(
    params: GPParams, density_of: DensityOf = "length", log_noise: tuple[float, float] = GPConfig.log_noise_prior
) -> Float[Array, ""]:
    """Returns the log prior density of the hyperparameters up to a constant; arguments as in `GPConfig`.

    With ``density_of="logarithm"`` a fit to ten trials in six columns is almost linear and overconfident.
    """
    # The prior mean of a log length scale is that of Hvarfner et al. 2024, equation 5.
    prior_mean = math.sqrt(2.0) + 0.5 * math.log(max(params.log_length.shape[-1], 1))
    lengths = jnp.sum(((params.log_length - prior_mean) / _LOG_LENGTH_STD) ** 2)
    if density_of == "length":
        lengths = lengths + 2.0 * jnp.sum(params.log_length)
    noise = ((params.log_noise - log_noise[0]) / log_noise[1]) ** 2
    return -0.5 * (lengths + params.log_scale**2 + noise)


def clip_hyperparameters(params: GPParams, least_noise: float = GPConfig.least_noise) -> GPParams:
    """Returns the hyperparameters clipped to bounds in which the covariance is numerically positive definite."""
    min_noise = max(least_noise, 8.0 * float(jnp.finfo(params.log_noise.dtype).eps))
    return replace(
        params,
        log_length=jnp.clip(params.log_length, *_LOG_LENGTH_BOUNDS),
        log_scale=jnp.clip(params.log_scale, *_LOG_SCALE_BOUNDS),
        log_noise=jnp.clip(params.log_noise, math.log(min_noise), math.log(_MAX_NOISE)),
    )


def maximise_from_starts(
    config: GPConfig,
    objective: Callable[[T], Float[Array, ""]],
    start_at: Callable[[GPParams], T],
    project: Callable[[T], T],
    x: Float[Array, "n D"],
) -> T:
    """Returns the best of the maxima from two starts: short length scales with little noise, long ones with much.

    ``start_at`` makes the initial parameters from those of a Gaussian process, and ``project`` maps parameters to the
    nearest valid ones. Only D and the dtype of ``x`` are used.
    """
    n_columns = x.shape[-1]
    lengths = [min(math.log(a * math.sqrt(n_columns)), _LOG_LENGTH_BOUNDS[1]) for a in config.first_lengths]
    log_length = jnp.array([[a] * n_columns for a in lengths], x.dtype)
    log_noise = jnp.array(config.first_log_noises, x.dtype)
    starts = jax.vmap(start_at)(GPParams(log_length, jnp.zeros_like(log_noise), log_noise, config.kernel))
    if config.optimiser == "bfgs":
        maxima, values = maximise_by_bfgs(objective, starts, project, steps=max(config.steps - 1, 0), reach=_MAX_STEP)
    else:
        search = partial(maximise, objective, steps=config.steps, learning_rate=config.learning_rate, project=project)
        maxima, values = jax.vmap(search)(starts)
    best = jnp.argmax(values)
    return jax.tree.map(lambda a: a[best], maxima)


def maximise_by_bfgs(
    objective: Callable[[T], Float[Array, ""]], starts: T, project: Callable[[T], T], *, steps: int, reach: float
) -> tuple[T, Float[Array, " S"]]:
    """Returns the maxima from S starts, S in front of each array, and the values of the objective.

    ``project`` maps parameters to the nearest of a box. A search evaluates at most ``steps`` points after its start,
    and changes no parameter by more than ``reach`` in a step.
    """
    _, restore = ravel_pytree(jax.tree.map(lambda a: a[0], starts))
    flat = jax.vmap(lambda tree: ravel_pytree(tree)[0])(starts)
    low, high = (ravel_pytree(project(restore(jnp.full_like(flat[0], end))))[0] for end in (-jnp.inf, jnp.inf))
    value_and_gradient = jax.vmap(jax.value_and_grad(lambda point: objective(restore(point))))
    maxima = maximise_in_box(value_and_gradient, flat, low, high, steps=steps, reach=reach, tolerance=_TOLERANCE)
    return jax.vmap(restore)(maxima.points), maxima.values


def fit_gp(
    config: GPConfig,
    x: Float[Array, "n D"],
    y: Float[Array, " n"],
    where: Bool[Array, " n"],
    noise_var: Float[Array, " n"] | None = None,
) -> GPParams:
    """Returns the hyperparameters of the highest posterior density (without priors: likelihood) from two starts.

    Args:
      config: priors, starts and optimiser.
      x: configurations.
      y: standardised responses.
      where: the filled slots.
      noise_var: known error variances of single responses; None for none.
    """

    def objective(params: GPParams) -> Array:
        value = log_marginal_likelihood(params, x, y, where, noise_var)
        return value + log_hyperprior(params, config.density_of, config.log_noise_prior) if config.priors else value

    project = partial(clip_hyperparameters, least_noise=config.least_noise)
    return maximise_from_starts(config, objective, lambda start: start, project, x)
