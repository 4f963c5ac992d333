"""Predicted responses of configurations, by a method that predicts with a mixture of Gaussians."""

from typing import Any, NamedTuple, cast

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import CapableMethod, Method
from dre_jax.suggest.layout import SpaceLayout
from dre_jax.suggest.weighting import response_transform

Floats = npt.NDArray[np.float64]


class Prediction(NamedTuple):
    """Predicted values of n configurations, without the noise of a trial."""

    mean: Floats
    """f64[n]"""
    deviation: Floats
    """f64[n], standard deviations: what the model does not know."""


@jit_with_less_effort("method", "layout", is_brief=few_numbers)
def predict_responses(
    method: Method, layout: SpaceLayout, params: Any, history: History, points: Array, key: Array
) -> tuple[Array, Array]:
    """Returns the mean and the standard deviation f[N] of responses at points f[N, P], without the noise of a trial.

    The scale is that of the history's responses. The method has the capability ``predicts_components``; it and the
    layout are static.
    """
    capable = cast(CapableMethod, method)
    candidates = Candidates(layout.columns(points, jnp), jnp.ones(len(points), bool))
    fitted_params = capable.fit_history(params, history, key)
    log_weight, means, deviations = capable.predict_components(fitted_params, history, candidates)
    weight = jnp.exp(log_weight)
    mean = means @ weight
    variance = ((means - mean[:, None]) ** 2 + deviations**2) @ weight
    return response_transform(method, fitted_params, history).restore(mean, jnp.sqrt(variance))
