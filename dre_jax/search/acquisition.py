"""Acquisition functions in the space of ranks: higher = evaluate first (the paper, appendix A)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, Key

from dre_jax.checks import one_of
from dre_jax.errors import ConfigError
from dre_jax.runtime.arrays import AnyArray, namespace, special
from dre_jax.runtime.jit import jit_eager_calls
from dre_jax.runtime.kept_programs import keep_while
from dre_jax.runtime.plug_ins import load_plug_in, plug_ins
from dre_jax.search.ranks import mean_and_deviation, mean_tie_ranks

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_SMALLEST_DEVIATION = 1e-9
RESOLUTION = 1e-4
"""Standard deviations of responses below which differences matter little."""


@dataclass(frozen=True, kw_only=True)
class AcquisitionConfig:
    """Choice of an acquisition function.

    Raises:
      ConfigError: for an unknown kind.

    Example:
      >>> AcquisitionConfig(kind="ei")
      AcquisitionConfig(kind='ei', beta=1.0)
    """

    kind: str = "lcb"
    """One of `ACQUISITIONS`: lower confidence bound, expected improvement (the paper's), probability of improvement, or
    mean rank alone; or the name of an entry point."""
    beta: float = 1.0
    """Deviations that the confidence bound takes off the mean rank."""

    def __post_init__(self) -> None:
        find_acquisition(self.kind)

    @property
    def function(self) -> Acquisition:
        """The acquisition function of this kind."""
        return find_acquisition(self.kind)


def log_expected_improvement(
    mean: Float[AnyArray, " *#shape"],
    deviation: Float[AnyArray, " *#shape"],
    incumbent: Float[AnyArray, " *#shape"] | float,
) -> Float[AnyArray, " *#shape"]:
    """Returns the log expected improvement of a rank on the incumbent's, E[max(0, incumbent - r)], r Gaussian.

    In logarithms, because in float32 the improvement itself is zero as soon as the members agree on the incumbent
    (Ament et al. 2023). Arrays are of NumPy or JAX.

    Args:
      mean: mean ranks, lower is better.
      deviation: of the ranks; less than 1e-9 counts as 1e-9.
      incumbent: mean rank of the incumbent.
    """
    xp = namespace(mean)
    deviation = xp.maximum(deviation, _SMALLEST_DEVIATION)
    z = (incumbent - mean) / deviation
    return xp.log(deviation) + _log_h(z)


def _log_h(z: Float[AnyArray, " *shape"]) -> Float[AnyArray, " *shape"]:
    """Returns log(pdf(z) + z cdf(z)), on the left by its series.

    The series begins where its truncation loses as many digits as the difference does.
    """
    xp = namespace(z)
    seam = -18.0 if z.dtype == jnp.float64 else -8.0
    # Choices, not maxima: the gradient of a maximum is halved where both are equal.
    right = xp.where(z > seam, z, seam)
    pdf = xp.exp(-0.5 * right**2 - _LOG_SQRT_2PI)
    direct = xp.log(pdf + right * 0.5 * special(z).erfc(-math.sqrt(0.5) * right))
    left = xp.where(z > seam, seam, z)
    u = 1.0 / left**2
    series = u * (1.0 - u * (3.0 - u * (15.0 - u * (105.0 - 945.0 * u))))
    by_series = -0.5 * left**2 - _LOG_SQRT_2PI + xp.log(u) + xp.log(series / u)
    return xp.where(z > seam, direct, by_series)


def log_augmented_improvement(
    mean: Float[Array, " *shape"],
    deviation: Float[Array, " *shape"],
    incumbent: Float[Array, " *#shape"],
    noise: Float[Array, " *#shape"],
) -> Float[Array, " *shape"]:
    """Returns the log augmented expected improvement, E[max(0, incumbent - r)] (1 - n / sqrt(s^2 + n^2)).

    Lower is better. The factor (Huang et al. 2006) is small where the signal's deviation s is less than the noise's n:
    where a response is known as well as its noise allows, another evaluation tells nothing. Noise above `RESOLUTION`
    counts as `RESOLUTION`, so the factor matters only for searches that would continue at a known optimum.
    """
    deviation = jnp.maximum(deviation, _SMALLEST_DEVIATION)
    noise = jnp.minimum(noise, RESOLUTION)
    total = jnp.sqrt(deviation**2 + noise**2)
    log_factor = 2.0 * jnp.log(deviation) - jnp.log(total) - jnp.log(total + noise)
    return log_expected_improvement(mean, deviation, incumbent) + log_factor


def mixture_moments(
    log_weight: Float[Array, " K"], means: Float[Array, "K m"], variances: Float[Array, "K m"]
) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """Returns the means and variances of mixtures of K components."""
    share = jnp.exp(log_weight)[:, None]
    # Accelerators round the inputs of matrix products, but not those of elementwise products and sums.
    mean = jnp.sum(share * means, axis=0)
    variance = jnp.sum(share * (variances + (means - mean[None, :]) ** 2), axis=0)
    return mean, jnp.maximum(variance, jnp.finfo(variance.dtype).tiny)


def log_mixture_improvement(
    log_weight: Float[Array, " K"],
    means: Float[Array, "K m"],
    variances: Float[Array, "K m"],
    incumbent: Float[Array, ""],
    noise: Float[Array, " K"],
) -> Float[Array, " m"]:
    """Returns the log augmented expected improvement of mixtures on the best response; higher is better.

    It is the sum over components; ``noise`` has the deviations of an observation's noise. The improvement of one
    Gaussian with the moments of the mixture differs: a component of little weight and another mean increases the
    variance everywhere.
    """
    log_improvements = log_augmented_improvement(-means, jnp.sqrt(variances), -incumbent, noise[:, None])
    return jax.nn.logsumexp(log_weight[:, None] + log_improvements, axis=0)


def log_probability_of_improvement(
    mean: Float[Array, " *shape"], deviation: Float[Array, " *shape"], incumbent: Float[Array, " *#shape"]
) -> Float[Array, " *shape"]:
    """Returns the log probability that a Gaussian rank is better than the incumbent's; arguments as above."""
    z = (incumbent - mean) / jnp.maximum(deviation, _SMALLEST_DEVIATION)
    return jax.scipy.special.log_ndtr(z)


Values = Callable[[Any, Float[Array, " N"], Float[Array, " N"], Float[Array, ""]], Float[Array, " N"]]


@dataclass(frozen=True)
class Acquisition:
    """An acquisition function, and the scale of its values.

    Example:
      >>> Acquisition(lambda config, mean, deviation, incumbent: -mean, scale="linear").scale
      'linear'
    """

    fn: Values
    """Maps an `AcquisitionConfig`, predicted means and deviations (lower means are better), and the incumbent's mean
    (infinite before the first trial) to values, higher = evaluate first."""
    scale: Literal["log", "linear"]
    """"log": values are logarithms of an improvement or of its probability, so a weight is added as a logarithm.
    "linear": values have any unit, and are divided by their standard deviation before a weight applies."""
    is_expected_improvement: bool = False
    """Values are logarithms of the expected improvement, so a method may compute that of its own distribution."""

    def __post_init__(self) -> None:
        one_of("the scale of an acquisition function", self.scale, ("log", "linear"))


def _improvement(
    rule: Callable[[Float[Array, " N"], Float[Array, " N"], Float[Array, ""]], Float[Array, " N"]],
) -> Values:
    """Returns the acquisition of an improvement on the incumbent; before there is one, the mean decides."""

    def values(config: AcquisitionConfig, mean: Array, deviation: Array, incumbent: Array) -> Array:
        has_incumbent = jnp.isfinite(incumbent)
        return jnp.where(has_incumbent, rule(mean, deviation, jnp.where(has_incumbent, incumbent, 0.0)), -mean)

    return values


ACQUISITIONS: dict[str, Acquisition] = {
    "ei": Acquisition(_improvement(log_expected_improvement), scale="log", is_expected_improvement=True),
    "pi": Acquisition(_improvement(log_probability_of_improvement), scale="log"),
    "lcb": Acquisition(lambda config, mean, deviation, incumbent: -(mean - config.beta * deviation), scale="linear"),
    "mean_rank": Acquisition(lambda config, mean, deviation, incumbent: -mean, scale="linear"),
}
"""Acquisition functions by name: those of the library, and those that `register_acquisition` has added."""

_GROUP = "dre_jax.acquisitions"


def register_acquisition(name: str, acquisition: Acquisition) -> None:
    """Adds an acquisition function to `ACQUISITIONS`, so that `AcquisitionConfig(kind=...)` accepts it.

    Args:
      name: the name of the function.
      acquisition: the function, with the scale of its values. Parameters of its own are fields of a subclass of
        `AcquisitionConfig`.

    Raises:
      ConfigError: if the name belongs to another function, or ``acquisition`` is not an `Acquisition`.
    """
    if not isinstance(acquisition, Acquisition):
        raise ConfigError(f"acquisition function {name!r} must be Acquisition(fn, scale=...), but got {acquisition!r}")
    if ACQUISITIONS.setdefault(name, acquisition) != acquisition:
        raise ConfigError(f"an acquisition function must have a name of its own, but {name!r} is registered already")


def find_acquisition(name: str) -> Acquisition:
    """Returns the acquisition function of a name: one of `ACQUISITIONS`, or of an entry point.

    The object of an entry point of the group `dre_jax.acquisitions` is an `Acquisition`.

    Raises:
      ConfigError: for an unknown name; the message has the known names. For an entry point that cannot be loaded, or is
        no `Acquisition`.

    Example:
      >>> find_acquisition("mean_rank").scale
      'linear'
    """
    return ACQUISITIONS[name] if isinstance(name, str) and name in ACQUISITIONS else _load_installed(name)


@cache
def _load_installed(name: str) -> Acquisition:
    """Returns the acquisition function of an entry point; raises as `find_acquisition`."""
    acquisition = load_plug_in(_GROUP, name, Acquisition, "acquisition function")
    if acquisition is None:
        names = (*ACQUISITIONS, *plug_ins(_GROUP))
        raise ConfigError(f"acquisition must be one of {', '.join(names)}, but got {name!r}")
    return acquisition


_own = dict(ACQUISITIONS)
keep_while(lambda: _own == ACQUISITIONS and not _load_installed.cache_info().currsize)


EXPECTED_IMPROVEMENT = AcquisitionConfig(kind="ei")
"""The acquisition function of methods that predict responses."""


@jit_eager_calls("config")
def acquire_by_rank(
    config: AcquisitionConfig,
    scores: Float[Array, "M N"],
    where: Bool[Array, " N"],
    incumbent_scores: Float[Array, " M"],
    has_incumbent: Bool[Array, ""],
) -> Float[Array, " N"]:
    """Returns acquisition values of the members' scores; the incumbent is ranked with the candidates.

    Args:
      config: the acquisition function.
      scores: of the candidates by each member.
      where: the candidates that count; values of others are meaningless.
      incumbent_scores: of the incumbent by each member.
      has_incumbent: whether there is one; without one the mean rank decides.
    """
    everyone = jnp.concatenate([scores, incumbent_scores[:, None]], axis=1)
    counts = jnp.broadcast_to(jnp.append(where, has_incumbent), everyone.shape)
    mean, deviation = mean_and_deviation(mean_tie_ranks(everyone, counts))
    incumbent = jnp.where(has_incumbent, mean[-1], jnp.inf)
    return config.function.fn(config, mean[:-1], deviation[:-1], incumbent)


@jit_eager_calls("config")
def acquire_by_response(
    config: AcquisitionConfig,
    mean: Float[Array, " N"],
    deviation: Float[Array, " N"],
    incumbent: Float[Array, ""],
    noise: Float[Array, ""] | Float[Array, " N"] | None = None,
) -> Float[Array, " N"]:
    """Returns acquisition values of predicted responses with a mean and a standard deviation; higher is better.

    The incumbent is the best response so far; without one, minus infinity, the mean decides. "lcb" is here the upper
    confidence bound, and "mean_rank" the mean alone. The deviation of the noise augments the expected improvement.
    """
    if config.function.is_expected_improvement and noise is not None:
        augmented_ei = _improvement(partial(log_augmented_improvement, noise=noise))
        return augmented_ei(config, -mean, deviation, -incumbent)
    return config.function.fn(config, -mean, deviation, -incumbent)


def acquisition_of(method: object) -> Acquisition | None:
    """Returns the acquisition function of a method's field `acquisition`; None if it has none."""
    config = getattr(method, "acquisition", None)
    return config.function if isinstance(config, AcquisitionConfig) else None


UNDEFINED_INDEX = -2
"""The index that `pick` returns where all values are NaN."""


def undefined_values(method: object) -> ConfigError:
    """Returns the error for a method whose values of all candidates are NaN: another pick would be random search."""
    acquisition, name = getattr(method, "acquisition", None), type(method).__name__
    source = f" by the acquisition function {acquisition.kind!r}" if isinstance(acquisition, AcquisitionConfig) else ""
    return ConfigError(f"a method must value candidates, but all values of {name}{source} are NaN")


def pick(values: Float[Array, " N"], where: Bool[Array, " N"], key: Key[Array, ""]) -> Int[Array, ""]:
    """Returns the index of the highest value where ``where`` holds, -1 if it holds nowhere.

    NaN is the lowest; returns `UNDEFINED_INDEX` if all are NaN. Equal values are drawn by key, never by position.
    """
    is_undefined = jnp.all(jnp.isnan(values) | ~where)
    values = jnp.where(jnp.isnan(values), -jnp.inf, values)
    top = jnp.max(jnp.where(where, values, -jnp.inf))
    best = where & (values == top)
    # Whole words: the 23 bits of a float32 would themselves be tied among many thousands.
    coin = jax.random.bits(key, values.shape, jnp.uint32) | jnp.uint32(1)
    index = jnp.where(is_undefined, UNDEFINED_INDEX, jnp.argmax(jnp.where(best, coin, jnp.uint32(0))))
    return jnp.where(jnp.any(where), index, -1).astype(jnp.int32)
