"""Trials that still run: what a method is told of them while it suggests the next one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax import Array

from dre_jax.errors import ConfigError
from dre_jax.search.history import Candidates, History
from dre_jax.search.method import Method, as_drawing, members_of, value

LIES = ("min", "mean", "max", "believer", "draw", "none")


def check_lie(method: Method, lie: str) -> None:
    """Refuses a lie that a method cannot tell.

    Raises:
      ConfigError: for a believer without an acquisition function, or draws of a method without models to draw from.
    """
    if lie == "believer":
        by_mean(method)
    elif lie == "draw":
        as_drawing(method)


def with_running(
    method: Method, params: Any, state: Any, told: History, x: Array, pending: Array, lie: str, key: Array
) -> History:
    """A history in which trials that still run have a value (Ginsbourger, Le Riche and Carraro 2010).

    What is claimed of them is the least, the mean or the best of the responses so far (the constant liar: the mean and
    the least spread a batch further than the best), or what the method expects of each (the Kriging believer). With
    "none" and "draw" they are not in the history; `dre_jax.search.method.value` draws.

    Args:
      method: static.
      params: what the method's `fit` returned.
      state: of the run.
      told: the trials that have a value.
      x: f32[C, D], configurations of the trials that run, in slots that are empty in the history.
      pending: bool[C], those slots.
      lie: one of `LIES`, static.
      key: PRNG key, for the method.

    Raises:
      ConfigError: for a believer whose method has no acquisition function, and so no mean.
    """
    if lie in ("none", "draw"):
        return told
    if lie == "believer":
        everyone = Candidates(jnp.where(pending[:, None], x, told.x), told.where | pending)
        values, _ = value(by_mean(method), params, state, told, everyone, key)
        return with_pending(told, x, pending, expected(told, values))
    return with_pending(told, x, pending, claimed(told, lie))


def by_mean(method: Method) -> Any:
    """The method with the mean of its predictions in place of its acquisition function.

    Raises:
      ConfigError: where it has none.
    """
    given: Any = method
    if members := members_of(method):
        return replace(given, members=tuple(by_mean(member) for member in members))
    if not hasattr(given, "acquisition"):
        raise ConfigError(f"a believer needs a method with an acquisition function, but got {type(method).__name__}")
    return replace(given, acquisition=replace(given.acquisition, kind="mean_rank"))


def claimed(told: History, lie: str) -> Array:
    """One response, a scalar, for all that run: the "min", "mean" or "max" of those told; 0.5 without any."""
    if lie == "mean":
        count = jnp.maximum(jnp.sum(told.where, dtype=told.response.dtype), 1.0)
        found = jnp.sum(jnp.where(told.where, told.response, 0.0)) / count
    elif lie == "min":
        found = jnp.min(jnp.where(told.where, told.response, jnp.inf))
    else:
        found = jnp.max(jnp.where(told.where, told.response, -jnp.inf))
    return jnp.where(jnp.any(told.where), found, 0.5)


def expected(told: History, values: Array) -> Array:
    """Responses f32[C] that a method expects, from its values f32[C] of what was told and what runs.

    Its values are on a scale of its own, a rank's for example. So the i-th best value of those told stands for the i-th
    best response, between them lines do, and nothing is better than the best; 0.5 without any told.
    """

    def ascending(a: Array) -> Array:
        """With empty slots behind the best, level with it."""
        return jnp.sort(jnp.where(told.where, a, jnp.max(a, where=told.where, initial=-jnp.inf)))

    found = jnp.interp(values, ascending(values), ascending(told.response))
    return jnp.where(jnp.any(told.where), found, 0.5)


def with_pending(told: History, x: Array, pending: Array, response: Array) -> History:
    """A history in which configurations f32[C, D] in empty slots bool[C] have responses, f32[C] or a scalar."""
    response = jnp.where(pending, response, told.response)
    # Between the levels, or level with those that are equal.
    at_least = told.where[None, :] & (told.response[None, :] >= response[:, None])
    equal = jnp.any(told.where[None, :] & (told.response[None, :] == response[:, None]), axis=1)
    last = jnp.max(jnp.where(at_least, told.level[None, :], -1), axis=1)
    between = jnp.where(pending, 2 * last + jnp.where(equal, 0, 1), 2 * told.level)
    # Of those between the same two levels, the higher come first.
    where = told.where | pending
    before = (between[None, :] < between[:, None]) | (
        (between[None, :] == between[:, None])
        & (pending[None, :] & pending[:, None])
        & (response[None, :] > response[:, None])
    )
    level = jnp.sum(before & where[None, :], axis=1, dtype=told.level.dtype)
    return History(jnp.where(pending[:, None], x, told.x), response, level, where)
