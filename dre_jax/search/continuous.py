"""Methods of the one protocol in a continuous space: they value drawn points, and the best one is evaluated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.errors import ConfigError, DataError
from dre_jax.search.acquisition import pick
from dre_jax.search.history import Candidates, History, make_history, sort_history
from dre_jax.search.loop import begin, trial_keys
from dre_jax.search.method import Method, as_stateful
from dre_jax.search.suggester import capacity_for


@dataclass(frozen=True, kw_only=True)
class ContinuousConfig:
    """Which points are drawn for a method to value.

    Raises:
      ConfigError: for counts or widths that are not positive.
    """

    uniform: int = 1024
    """Points drawn uniformly from [0, 1]^D."""
    steps: int = 512
    """Gaussian steps from the best trials, cut at the borders; shared out evenly among them and the widths."""
    parents: int = 4
    """How many of the best trials are stepped from."""
    widths: tuple[float, ...] = (0.2, 0.05, 0.01)
    """Standard deviations of the steps."""
    changed: float = 0.5
    """Chance of a column to be changed by a step; at least one is."""

    def __post_init__(self) -> None:
        if min(self.uniform, self.parents) < 1 or self.steps < 0 or not self.widths or min(self.widths) <= 0:
            raise ConfigError(f"points to draw need positive counts and widths, but got {self}")


class ContinuousSuggester:
    """One run of a method in [0, 1]^D, with the call that HPO-B's continuous benchmark makes.

    Of points that a method values alike, one of the uniform draws is taken, by key: a method whose values are constant
    is uniform random search.

    Example:
      >>> from dre_jax.methods import RandomSearch
      >>> suggester = ContinuousSuggester(RandomSearch(), None, key=jax.random.key(0))
      >>> suggester.observe_and_suggest(np.zeros((2, 3)), np.array([[0.1], [0.5]])).shape
      (3,)
    """

    def __init__(
        self, method: Method, params: Any = None, *, key: Array, config: ContinuousConfig | None = None
    ) -> None:
        """A run of its own.

        Args:
          method: frozen and hashable.
          params: what the method's `fit` returned.
          key: the run's PRNG key.
          config: which points are drawn.
        """
        self._method = method
        self._params = params
        self._key = key
        self._config = config or ContinuousConfig()
        self._state: Any = None
        self._begun = False

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any = None) -> np.ndarray:
        """The point to evaluate next, f64[D] in [0, 1].

        Args:
          X_obs: [n, D], evaluated so far.
          y_obs: [n] or [n, 1], higher is better.
          X_pen: not there in continuous search.

        Raises:
          DataError: for shapes that do not fit, NaN or infinity, or nothing observed.
        """
        observed = np.asarray(X_obs, np.float32)
        if observed.ndim != 2 or 0 in observed.shape:
            raise DataError(f"X_obs must be an array (n, D) of at least one row, but got shape {observed.shape}")
        n = len(observed)
        history = make_history(observed, y_obs, capacity=capacity_for(n))
        if not self._begun:
            self._state, self._begun = begin(self._method, self._params, observed.shape[1], self._key), True
        point, self._state = _suggest(
            self._method, self._config, self._params, self._state, history, self._key, jnp.int32(n)
        )
        return np.asarray(point, np.float64)


def draw_points(config: ContinuousConfig, history: History, key: Array) -> Array:
    """Uniform points, then steps from the best trials.

    Args:
      config: how many.
      history: at least one slot filled.
      key: PRNG key.

    Returns:
      f32[uniform + steps, D] in [0, 1].
    """
    uniform_key, width_key, change_key, column_key, step_key = jax.random.split(key, 5)
    columns = history.x.shape[-1]
    uniform = jax.random.uniform(uniform_key, (config.uniform, columns))
    shape = (config.steps, columns)
    best = sort_history(history)
    # Fewer trials than parents: those that there are serve in turn.
    parent = jnp.arange(config.steps) % jnp.minimum(config.parents, jnp.sum(best.where))
    width = jax.random.choice(width_key, jnp.asarray(config.widths, jnp.float32), (config.steps, 1))
    changed = jax.random.bernoulli(change_key, config.changed, shape)
    one = jax.random.randint(column_key, (config.steps, 1), 0, columns) == jnp.arange(columns)[None, :]
    step = jnp.where(changed | one, width * jax.random.normal(step_key, shape), 0.0)
    return jnp.concatenate([uniform, jnp.clip(best.x[parent] + step, 0.0, 1.0)])


@partial(jax.jit, static_argnames=("method", "config"))
def _suggest(
    method: Method, config: ContinuousConfig, params: Any, state: Any, history: History, key: Array, trial: Array
) -> tuple[Array, Any]:
    """The point f32[D] that a method values most, and the state after that."""
    method_key, choice_key = trial_keys(key, trial)
    draw_key, choice_key = jax.random.split(choice_key)
    points = draw_points(config, history, draw_key)
    candidates = Candidates(points, jnp.ones(points.shape[0], bool))
    stateful = as_stateful(method)
    if stateful is None:
        values = method.acquire(params, history, candidates, method_key)
    else:
        values, state = stateful.advance(state, history, candidates, method_key)
    values = jnp.where(jnp.isnan(values), -jnp.inf, values)
    uniform = jnp.arange(points.shape[0]) < config.uniform
    level = jnp.max(values[: config.uniform])
    better = jnp.any(values > level)
    return points[pick(values, jnp.where(better, ~uniform, uniform), choice_key)], state
