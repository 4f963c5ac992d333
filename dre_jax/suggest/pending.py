"""Pending trials: their stand-in responses while a method suggests the next trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Key

from dre_jax.errors import ConfigError
from dre_jax.search.acquisition import AcquisitionConfig
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import Method, as_posterior_sampling, value

PendingStrategy = Literal["min", "mean", "max", "believer", "draw", "none"]
PENDING_STRATEGIES = get_args(PendingStrategy)


def check_pending_strategy(method: Method, strategy: str) -> None:
    """Checks that a method supports a strategy for pending trials.

    Raises:
      ConfigError: for a believer without an acquisition function, or draws of a method without models to draw from.
    """
    if strategy == "believer":
        with_mean_acquisition(method)
    elif strategy == "draw":
        as_posterior_sampling(method)


def with_pending_trials(
    method: Method,
    params: Any,
    history: History,
    x: Float[Array, "C D"],
    pending: Bool[Array, " C"],
    strategy: str,
    key: Key[Array, ""],
) -> History:
    """Returns the history with imputed responses of the pending trials (Ginsbourger, Le Riche and Carraro 2010).

    The constant liar imputes the minimum, mean or maximum of the responses so far (minimum and mean spread a batch
    further than the maximum); the Kriging believer imputes the method's prediction of each. With "none" and "draw" the
    pending trials are left out of the history; `dre_jax.search.method.value` samples. The pending trials ``x`` are in
    slots that are empty in the history. Method and strategy are static.

    Raises `ConfigError` for a believer whose method has no acquisition function, and so no mean.
    """
    if strategy in ("none", "draw"):
        return history
    if strategy == "believer":
        everyone = Candidates(jnp.where(pending[:, None], x, history.x), history.where | pending)
        values = value(with_mean_acquisition(method), params, history, everyone, key)
        return impute_pending(history, x, pending, believer_responses(history, values))
    return impute_pending(history, x, pending, constant_liar_response(history, strategy))


def with_mean_acquisition(method: Method) -> Any:
    """Returns the method with the mean of its predictions in place of its acquisition function.

    Raises `ConfigError` if it has no acquisition function.
    """
    untyped_method: Any = method
    acquisition = getattr(method, "acquisition", None)
    if not isinstance(acquisition, AcquisitionConfig):
        raise ConfigError(f"a believer needs a method with an acquisition function, but got {type(method).__name__}")
    return replace(untyped_method, acquisition=replace(acquisition, kind="mean_rank"))


def constant_liar_response(history: History, strategy: str) -> Float[Array, ""]:
    """Returns one response for all pending trials: "min", "mean" or "max" of the completed ones, 0.5 without any."""
    if strategy == "mean":
        count = jnp.maximum(jnp.sum(history.where, dtype=history.response.dtype), 1.0)
        response = jnp.sum(jnp.where(history.where, history.response, 0.0)) / count
    elif strategy == "min":
        response = jnp.min(jnp.where(history.where, history.response, jnp.inf))
    else:
        response = jnp.max(jnp.where(history.where, history.response, -jnp.inf))
    return jnp.where(jnp.any(history.where), response, 0.5)


def believer_responses(history: History, values: Float[Array, " C"]) -> Float[Array, " C"]:
    """Returns responses that a method predicts, from its values of completed and pending trials.

    The values have a scale of their own, a rank's for example. So the i-th best value of the completed trials is mapped
    to the i-th best response, with linear interpolation and no extrapolation; 0.5 without completed trials.
    """

    def ascending(a: Array) -> Array:
        """Returns the entries in ascending order; empty slots repeat the maximum."""
        return jnp.sort(jnp.where(history.where, a, jnp.max(a, where=history.where, initial=-jnp.inf)))

    responses = jnp.interp(values, ascending(values), ascending(history.response))
    return jnp.where(jnp.any(history.where), responses, 0.5)


def impute_pending(
    history: History,
    x: Float[Array, "C D"],
    pending: Bool[Array, " C"],
    response: Float[Array, " C"] | Float[Array, ""],
) -> History:
    """Returns the history with responses of the pending configurations, which are in empty slots."""
    response = jnp.where(pending, response, history.response)
    # Between the levels, or level with those that are equal.
    at_least = history.where[None, :] & (history.response[None, :] >= response[:, None])
    equal = jnp.any(history.where[None, :] & (history.response[None, :] == response[:, None]), axis=1)
    last = jnp.max(jnp.where(at_least, history.level[None, :], -1), axis=1)
    between = jnp.where(pending, 2 * last + jnp.where(equal, 0, 1), 2 * history.level)
    # Of those between the same two levels, the higher come first.
    where = history.where | pending
    before = (between[None, :] < between[:, None]) | (
        (between[None, :] == between[:, None])
        & (pending[None, :] & pending[:, None])
        & (response[None, :] > response[:, None])
    )
    level = jnp.sum(before & where[None, :], axis=1, dtype=history.level.dtype)
    x = jnp.where(pending[:, None], x, history.x)
    return history._replace(x=x, response=response, level=level, where=where)
