"""The call that HPO-B's handler makes of a method: `observe_and_suggest`."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Float64, Int, Key, UInt32

from dre_jax.errors import DataError
from dre_jax.runtime import devices
from dre_jax.runtime.jit import compile_ahead
from dre_jax.runtime.threads import on_one_thread
from dre_jax.search.acquisition import UNDEFINED_INDEX, undefined_values
from dre_jax.search.batch import bucket
from dre_jax.search.history import Candidates, History, capacity_for, make_history
from dre_jax.search.loop import jitted_suggest
from dre_jax.search.method import Method, capabilities_of
from dre_jax.space.layout import unit_cube
from dre_jax.space.sobol import sobol_points
from dre_jax.suggest.candidates import CandidateConfig, default_candidates
from dre_jax.suggest.precision import precision_of, with_precision
from dre_jax.suggest.proposals import SuggestionInputs, TrialRecord, propose
from dre_jax.summaries import summary


class Suggester:
    """One run of a method behind HPO-B's interface, on a table or in [0, 1]^D.

    The history and the candidates are padded to sizes that rarely change, so that few calls compile. Everything is
    computed on JAX's default device, wherever the parameters lie.

    Example:
      >>> from dre_jax.methods import RandomSearch
      >>> suggester = Suggester(RandomSearch(), None, seed=0)
      >>> index = suggester.observe_and_suggest(np.zeros((2, 3)), np.array([[0.1], [0.5]]), np.ones((4, 3)))
      >>> 0 <= index < 4
      True
      >>> suggester.observe_and_suggest(np.zeros((2, 3)), np.array([[0.1], [0.5]])).shape
      (3,)
    """

    def __init__(
        self,
        method: Method,
        params: Any = None,
        *,
        seed: int = 0,
        key: Key[Array, ""] | None = None,
        candidates: CandidateConfig | None = None,
    ) -> None:
        """Starts a run.

        Args:
          method: frozen and hashable.
          params: the result of the method's `fit`.
          seed: the seed of the run; runs of HPO-B's seeds need different ones.
          key: the run's PRNG key, in place of a seed.
          candidates: settings of the points that are drawn without a table; by default those of `default_candidates`.

        Raises:
          ConfigError: for a method's name or class.
        """
        capabilities_of(method)
        self._method = method
        # JAX compiles one program for arguments on a named device and another one otherwise, so all are put on the
        # device.
        self._device = devices.default()
        key = jax.random.key(seed) if key is None else key
        self._params, self._key = jax.device_put((params, key), self._device)
        self._candidates = candidates

    def __repr__(self) -> str:
        return summary(self, method=type(self._method).__name__, has_params=self._params is not None)

    @on_one_thread
    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any = None) -> Any:
        """Suggests what to evaluate next.

        Args:
          X_obs: [n, D], evaluated so far.
          y_obs: [n] or [n, 1], higher is better.
          X_pen: [m, D], not evaluated yet; left out where the search is continuous.

        Returns:
          The index of a row of X_pen; in continuous search the point f64[D] in [0, 1].

        Raises:
          DataError: for shapes that do not fit, NaN or infinity, or nothing to choose from.
          ConfigError: if the method's values of all candidates are NaN.
        """
        x_obs = np.asarray(X_obs, np.float64)
        if X_pen is None:
            if x_obs.ndim != 2 or 0 in x_obs.shape:
                raise DataError(f"X_obs must be an array (n, D) of at least one row, but got shape {x_obs.shape}")
            return self._point(x_obs, y_obs)
        pending = np.asarray(X_pen, np.float32)
        if pending.ndim != 2 or len(pending) == 0:
            raise DataError(f"X_pen must be an array (m, D) of at least one row, but got shape {pending.shape}")
        if x_obs.ndim != 2 or x_obs.shape[1] != pending.shape[1]:
            raise DataError(f"X_obs and X_pen must have one column count, but got {x_obs.shape} and {pending.shape}")
        if not np.isfinite(pending).all():
            raise DataError("X_pen must hold finite numbers, but got NaN or infinity")
        return self._row(make_history(x_obs, y_obs, capacity=capacity_for(len(x_obs))), len(x_obs), pending)

    def _row(self, history: History, n: int, pending: Float[np.ndarray, "m D"]) -> int:
        m = len(pending)
        # The pending rows shrink as the observed ones grow: their sum stays, and so does the padded size.
        padded_rows = np.pad(pending, ((0, bucket(n + m) - m), (0, 0)))
        arrays = history, (padded_rows, np.arange(len(padded_rows)) < m), np.int32(n)
        history, candidates, trial = jax.device_put(arrays, self._device)
        row = jitted_suggest(self._method, self._params, history, Candidates(*candidates), self._key, trial)
        if int(row) == UNDEFINED_INDEX:
            raise undefined_values(self._method)
        return int(row)

    def _point(self, x_obs: Float[np.ndarray, "n D"], y_obs: Any) -> Float64[np.ndarray, " D"]:
        n, layout = len(x_obs), unit_cube(x_obs.shape[1])
        config = self._candidates or default_candidates(self._method, layout)
        trial = jax.device_put(np.int32(n), self._device)
        seed = int(_draw_seed(self._key, trial))
        with precision_of(self._method) as dtype:
            history = make_history(x_obs, y_obs, capacity_for(n), dtype)
            none, nowhere = np.zeros(history.where.shape, bool), np.zeros((0, layout.n_parts), dtype)
            record = history, history.x, none, nowhere, np.zeros(0, dtype)
            points = sobol_points(config.even, layout.n_parts, seed).astype(dtype)
            arrays = with_precision(self._params, dtype), record, points
            params, record, points = jax.device_put(arrays, self._device)
            inputs = SuggestionInputs(params, TrialRecord(*record), points, self._key, trial)
            search = partial(propose, self._method, layout, config)
            compile_ahead(search, inputs)
            proposals = search(inputs)
            if proposals.is_undefined:
                raise undefined_values(self._method)
            return np.asarray(proposals.points, np.float64)[0]


@jax.jit
def _draw_seed(key: Key[Array, ""], trial: Int[Array, ""]) -> UInt32[Array, ""]:
    """Returns the seed of a trial's Sobol points."""
    return jax.random.bits(jax.random.fold_in(key, trial), dtype=jnp.uint32)
