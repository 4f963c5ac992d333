"""Predicted responses of configurations, by a method that predicts with a mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.data.tasks import unit_scale
from dre_jax.errors import ConfigError, DataError
from dre_jax.gp.response_scale import ResponseTransform, masked_mean
from dre_jax.runtime.jit import jit_with_less_effort
from dre_jax.search.history import Candidates, Components, History
from dre_jax.search.method import Method, PosteriorMethod, capabilities_of
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.scalars import plain_value, to_list
from dre_jax.suggest.proposals import condition_on_trials
from dre_jax.tuning.engine.prediction_scale import PredictionScale
from dre_jax.tuning.suggestion.signal import noise_share
from dre_jax.tuning.trials.trial import Trial

Floats = npt.NDArray[np.float64]

_BLOCK = 256
"""Configurations that a program predicts at once: it is the same for any number of them."""
_MAX_STEPS = 100
_TOLERANCE = 1e-10
_NEGLIGIBLE = 1e-9
"""Weight of a component without effect on quantiles."""


class _Moments(NamedTuple):
    mean: Floats
    deviation: Floats


class Prediction(_Moments):
    """Predicted values of n configurations: a pair of their means and deviations, which also has quantiles.

    A method predicts a mixture of Gaussians on a scale of its own, which increases with the values. Quantiles are those
    of the mixture, restored to values. `mean` is the mean on that scale, restored: the mean of the values where the
    scale is linear, and about their median (as a geometric mean) where it is logarithmic. `deviation` is half of the
    distance between the values one standard deviation below and above it.
    """

    mean: Floats
    """f64[n]"""
    deviation: Floats
    """f64[n]"""
    quantiles: Floats
    """f64[Q, n], in the order of the shares asked for."""

    def __new__(cls, mean: Floats, deviation: Floats, quantiles: Floats | None = None) -> Prediction:
        """Creates a prediction, by default without quantiles."""
        prediction = super().__new__(cls, mean, deviation)
        prediction.quantiles = np.empty((0, len(mean))) if quantiles is None else quantiles
        return prediction


class ScaledTrials(NamedTuple):
    """Trials on the scale of predictions."""

    history: History
    numbers: Floats
    """f64[n]: the responses of the history, on its scale [0, 1]."""
    scale: PredictionScale
    """From responses to these numbers."""

    def restore(self, unit: Floats) -> Floats:
        """Returns responses of numbers on the scale of the history."""
        return self.scale.invert(self.numbers.min() + np.ptp(self.numbers) * unit)


class HistoryFit(NamedTuple):
    """A method fitted to trials on the scale of predictions."""

    scaled: ScaledTrials
    fitted_params: Any
    """What the method's `fit_history` returned."""
    noise_var: float
    """Variance of the history's known noise, on its scale, beside the errors of single trials."""
    trials: tuple[Trial, ...] = ()


def fit_responses(
    method: Method,
    layout: SpaceLayout,
    strategy: str,
    params: Any,
    key: Array,
    history: History,
    points: Floats,
    responses: Floats,
    scale: PredictionScale,
    in_space: npt.NDArray[np.bool_],
    *,
    estimate_noise: bool,
) -> HistoryFit:
    """Returns a method with parameters ``params`` fitted to trials, for predictions.

    The history, of NumPy's arrays, has the responses f64[n] on the scale, of trials at the first of points f64[C, P].

    A search that takes noise for a signal of short length scales only explores more, but intervals would be too narrow.
    With ``estimate_noise``, `noise_share` therefore estimates the share of noise in the responses, and the method gets
    it as known noise. Otherwise, the program of the fit is that of suggestions.
    The points of trials that are not ``in_space``, bool[n], are only near them, so these say nothing of noise.
    """
    numbers, noise_var = scale.apply(responses), 0.0
    if estimate_noise and capabilities_of(method).heteroscedastic:
        unit = unit_scale(numbers)
        known = np.zeros(history.where.shape) if history.noise_var is None else np.asarray(history.noise_var)
        noise = noise_share(points[: len(unit)][in_space], unit[in_space]) * float(unit.var())
        noise_var = max(noise - float(known[: len(unit)].mean()), 0.0)
        total: Any = known + noise_var
        history = history._replace(noise_var=total)
    history, at, pending = jax.device_put((history, points, np.zeros(len(points), bool)))
    strategy = "none" if strategy == "draw" else strategy
    posterior = condition_on_trials(method, layout, strategy, params, history, at, pending, key)
    return HistoryFit(ScaledTrials(history, numbers, scale), posterior.fitted_params, noise_var)


class PredictedMixture(NamedTuple):
    """Predictions of n configurations by a mixture of K Gaussians, and the way to responses."""

    weight: Floats
    """f64[K], sums to one."""
    mean: Floats
    """f64[n, K]"""
    deviation: Floats
    """f64[n, K]"""
    transform: ResponseTransform
    """From the history's responses to the scale of the mixture."""

    def prediction(self, restore: Callable[[Floats], Floats], shares: Floats, *, is_maximised: bool) -> Prediction:
        """Returns the prediction of values, with quantiles at the shares f64[Q].

        ``restore`` is the increasing function from the history's responses to responses; values that are minimised are
        their negatives.
        """
        sign, shares = (1.0, shares) if is_maximised else (-1.0, 1.0 - shares)

        def value(scaled: Floats) -> Floats:
            return restore(self.transform.invert(scaled))

        mean = self.mean @ self.weight
        deviation = np.sqrt(((self.mean - mean[:, None]) ** 2 + self.deviation**2) @ self.weight)
        low, high = value(mean - deviation), value(mean + deviation)
        with np.errstate(invalid="ignore"):
            half = 0.5 * (high - low)
        quantiles = value(mixture_quantiles(shares, self.weight, self.mean, self.deviation))
        return Prediction(sign * value(mean), np.where(np.isnan(half), np.inf, half), sign * quantiles)


def check_configurations(configurations: Any) -> Iterable[Mapping[str, Any]]:
    """Returns configurations; raises `DataError` for a data frame, or anything that is not iterable."""
    rule = "configurations must be mappings in a list"
    if hasattr(configurations, "columns"):
        raise DataError(f"{rule}, but got a data frame: pass frame.to_dict('records')")
    if not isinstance(configurations, Iterable):
        raise DataError(f"{rule}, but got {configurations!r}")
    return configurations


def check_quantiles(quantiles: Any) -> Floats:
    """Returns quantiles as f64[Q]. Raises `ConfigError` unless they are numbers between 0 and 1."""
    values = to_list(quantiles)
    shares = [plain_value(value) for value in values] if isinstance(values, (list, tuple)) else [None]
    if not all(isinstance(share, (int, float)) and 0.0 < share < 1.0 for share in shares):
        raise ConfigError(f"quantiles must be a list of numbers between 0 and 1, but got {quantiles!r}")
    return np.array(shares, np.float64)


@jit_with_less_effort("method", "layout")
def _predict_block(
    method: PosteriorMethod, layout: SpaceLayout, fitted_params: Any, history: History, noise_var: Array, points: Array
) -> tuple[Components, Array, ResponseTransform]:
    """Returns components, the deviations f[K] of their noise and the scale of predictions at points f[B, P]."""
    candidates = Candidates(layout.columns(points), jnp.ones(len(points), bool))
    components = method.predict_components(fitted_params, history, candidates)
    transform: ResponseTransform = method.response_transform(fitted_params)
    slopes = transform.slope(history.response)
    noise = method.noise_deviations(fitted_params, noise_var * masked_mean(slopes**2, history.where))
    return components, noise, transform


def predict_mixture(
    method: PosteriorMethod, layout: SpaceLayout, fit: HistoryFit, points: Any, *, noise: bool
) -> PredictedMixture:
    """Returns predictions at points f[n, P] of the unit cube, with or without the noise of a trial."""
    n = len(points)
    padded = np.pad(points, ((0, -n % _BLOCK or _BLOCK * (n == 0)), (0, 0)))
    arrays = fit.fitted_params, fit.scaled.history, jax.device_put(np.asarray(fit.noise_var, points.dtype))
    blocks = [
        jax.device_get(_predict_block(method, layout, *arrays, jax.device_put(block)))
        for block in np.split(padded, len(padded) // _BLOCK)
    ]
    first, noise_deviation, transform = blocks[0]
    mean, deviation = (
        np.concatenate([components[i] for components, *_ in blocks]).astype(np.float64)[:n] for i in (1, 2)
    )
    weight = np.exp(np.asarray(first.log_weight, np.float64))
    deviation = np.hypot(deviation, noise_deviation) if noise else deviation
    numbers: list[Any] = [np.float64(number) for number in transform]
    return PredictedMixture(weight / weight.sum(), mean, deviation, ResponseTransform(*numbers))


def mixture_quantiles(shares: Floats, weight: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Returns quantiles f64[Q, n] at shares f64[Q] in (0, 1) of n mixtures of K Gaussians.

    Newton's method, with bisection where it leaves the bracket of the components' quantiles.

    Args:
      shares: f64[Q].
      weight: f64[K], sums to one.
      mean: f64[n, K].
      deviation: f64[n, K], positive.

    Example:
      >>> mixture_quantiles(np.array([0.5, 0.975]), np.ones(1), np.zeros((1, 1)), np.ones((1, 1))).round(2).tolist()
      [[0.0], [1.96]]
    """
    from scipy.special import ndtr, ndtri  # importing it takes a tenth of a second

    counts = weight > _NEGLIGIBLE
    weight, mean, deviation = weight[counts] / weight[counts].sum(), mean[:, counts], deviation[:, counts]
    shares = shares[:, None]
    components = mean + deviation * ndtri(shares)[..., None]
    low, high = components.min(axis=-1), components.max(axis=-1)
    tolerance = _TOLERANCE * (high - low) + 1e-14 * np.abs(high)
    point = components @ weight
    for _ in range(_MAX_STEPS):
        standard = (point[..., None] - mean) / deviation
        error = ndtr(standard) @ weight - shares
        low, high = np.where(error <= 0.0, point, low), np.where(error >= 0.0, point, high)
        density = (np.exp(-0.5 * standard**2) / deviation) @ weight / np.sqrt(2.0 * np.pi)
        step = error / np.maximum(density, np.finfo(float).tiny)
        newton = point - np.clip(step, -1e300, 1e300)
        inside = (newton > low) & (newton < high)
        following = np.where(inside, newton, 0.5 * (low + high))
        is_done = (np.abs(following - point) <= tolerance).all()
        point = following
        if is_done:
            break
    return point
