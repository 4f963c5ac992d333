"""The next configuration from those tried so far: the part that ask and tell, Optuna and scikit-learn share.

An engine remembers nothing: the same trials, seed and number give the same suggestion, in every process that asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dre_jax.checks import at_least, one_of
from dre_jax.errors import DataError
from dre_jax.search.pending import PENDING_STRATEGIES, check_pending_strategy
from dre_jax.tuning.response_clipping import clip_responses
from dre_jax.tuning.space.compatibility import require_compatible_spaces
from dre_jax.tuning.space.space import Params, Space
from dre_jax.tuning.suggestion_runtime import suggestion_runtime
from dre_jax.tuning.surrogate import Surrogate

if TYPE_CHECKING:
    from dre_jax.search.candidates import CandidateConfig
    from dre_jax.search.method import Method

WITHOUT_SURROGATE = "gp"
"""The method without past tasks: of those without transfer the best rank at 50 trials (docs/results/methods.md)."""
FITTING: Mapping[str, Any] = {
    "fitting.optimiser": "bfgs",
    "fitting.steps": 30,
    "fitting.first_log_noises": (-9.0, -1.0),
    "fitting.log_noise_prior": (-6.0, 4.0),
    "fitting.least_noise": 1e-8,
}
"""Its settings: a better fit in a fifth of the time, and the little noise that float64 can tell from none. On tables
it is as docs/results have it."""
N_START = 4
"""Even points that are tried first where nothing is known of past tasks."""
_MOST_KNOWN = 20_000
_NOT_PICKLED = ("_params", "_method", "_worked_out")


class Observation(NamedTuple):
    """A trial that has a value."""

    params: Mapping[str, Any]
    """Values by name."""
    response: float
    """Higher is better; may be infinite."""


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """Settings of an engine.

    Raises:
      ConfigError: for an unknown pending strategy, or fewer than two trials to show.
    """

    pending_strategy: str = "mean"
    """Stand-in for the responses of running trials: the min, mean or max of those so far (the constant liar), or what
    the method predicts ("believer", the Kriging believer; both Ginsbourger, Le Riche and Carraro 2010). With "none"
    they are only not proposed again. With "draw" neither, and every trial is the best by one model, drawn of those that
    a method averages (Thompson sampling), whether others run or not."""
    longest: int = 192
    """Most trials that a method is shown, running ones included: the better half by response, and the latest."""
    failed_radius: float = 0.02
    """Nothing is proposed that is as near to a failed trial in every coordinate of the unit cube."""
    ignore_extra: bool = False
    """Use a surrogate that does not know some of the hyperparameters: those are drawn at random."""

    def __post_init__(self) -> None:
        one_of("pending_strategy", self.pending_strategy, PENDING_STRATEGIES)
        at_least(2, self, "longest")


class _Known(NamedTuple):
    """A configuration, checked."""

    identity: bytes
    """Equal for equal configurations, whose numbers may differ by a billionth of their range."""
    point: np.ndarray
    """f64[P], see `Space.point`."""


class Engine:
    """Suggestions for one search space.

    Example:
      >>> from dre_jax.tuning import Float, Space
      >>> engine = Engine(Space({"x": Float(0.0, 1.0)}))
      >>> sorted(engine.suggest([], number=0))
      ['x']
    """

    def __init__(
        self, space: Space, surrogate: Surrogate | None = None, *, seed: int = 0, config: EngineConfig | None = None
    ) -> None:
        """An engine.

        Args:
          space: what is searched.
          surrogate: what is known of past tasks.
          seed: of all suggestions.
          config: how it suggests.

        Raises:
          DataError: for a surrogate of another space; the message names the hyperparameters that differ.
          ConfigError: for a pending strategy that the surrogate's method does not support.
        """
        self.space = space
        self.surrogate = surrogate
        self.seed = seed
        self.config = config or EngineConfig()
        if surrogate is not None:
            require_compatible_spaces(space, surrogate.space, ignore_extra=self.config.ignore_extra)
        if self.config.pending_strategy in ("believer", "draw"):
            check_pending_strategy(self._method, self.config.pending_strategy)

    def suggest(
        self,
        observed: Sequence[Observation],
        *,
        number: int,
        pending: Iterable[Mapping[str, Any]] = (),
        failed: Iterable[Mapping[str, Any]] = (),
        held: Mapping[str, Any] | None = None,
    ) -> Params:
        """The configuration to evaluate next.

        Args:
          observed: trials that have a value.
          number: the trial's, as the study counts: another number gives another suggestion.
          pending: configurations that are being evaluated.
          failed: configurations that have no value and will have none.
          held: values of some hyperparameters that this trial has, whatever is suggested for the others.

        Raises:
          DataError: for configurations of another space, or NaN.
        """
        pending, failed = list(pending), list(failed)
        seen = {self._known(params).identity for params in [*(o.params for o in observed), *pending, *failed]}
        at = self._coordinates(held or {})
        for params in self._begin(len(seen), number, at):
            if self._known(params).identity not in seen:
                return params
        if self._can_value(observed):
            with suggestion_runtime, self._precision() as dtype:
                ranked = self._ranked(observed, pending, failed, number, at, dtype)
        else:
            ranked = self._even(number, at)
        fresh = (params for params in ranked if self._known(params).identity not in seen)
        found = next(fresh, None)
        if found is not None:
            return found
        # All that the method valued was seen: anything else, or, once a finite space is used up, anything.
        more = list(self._even(number, at))
        return next((params for params in more if self._known(params).identity not in seen), more[0])

    def _can_value(self, observed: Sequence[Observation]) -> bool:
        return bool(observed) or self.surrogate is not None

    def _coordinates(self, held: Mapping[str, Any]) -> np.ndarray:
        """Coordinates f64[P] of values that are given, NaN elsewhere."""
        found = np.full(len(self.space), np.nan)
        for i, name in enumerate(self.space.sequence):
            if name in held:
                found[i] = self.space.coordinate(name, held[name])
        return found

    def _begin(self, n_seen: int, number: int, at: np.ndarray) -> Iterable[Params]:
        """Configurations that come first, whatever the method."""
        if self.surrogate is None:
            return self._even(number, at) if n_seen < N_START else ()
        if n_seen >= len(self.surrogate.start):
            return ()
        even = self._even_points(0)  # the same at every trial, so that what was seen is known again
        joined = (self._joined(params, point, at) for params, point in zip(self.surrogate.start, even, strict=False))
        return (params for params in joined if params is not None)

    def _joined(self, params: Params, even: np.ndarray, at: np.ndarray) -> Params | None:
        """A configuration of the surrogate's in this space, even where it says nothing; None if it does not fit."""
        assert self.surrogate is not None
        try:
            point = _given(even, self._coordinates(params))
        except DataError:
            return None
        found = self.space.params(point)
        if {name for name in found if name in self.surrogate.space} != set(params):
            return None
        if not np.isnan(at).all():
            return self.space.params(_given(point, at))
        return self.space.check(found | params)  # to the last digit

    def _even(self, number: int, at: np.ndarray) -> Iterable[Params]:
        return (self.space.params(_given(point, at)) for point in self._even_points(number))

    def _even_points(self, number: int) -> np.ndarray:
        """Points of a scrambled Sobol sequence; of one sequence for the trials that come first."""
        from dre_jax.search.candidates import sobol_points

        first = number < N_START
        points = sobol_points(256, len(self.space), _seed(self.seed, 0 if first else number))
        return np.roll(points, -number if first else 0, axis=0)

    def _ranked(
        self,
        observed: Sequence[Observation],
        pending: Sequence[Mapping[str, Any]],
        failed: Sequence[Mapping[str, Any]],
        number: int,
        at: np.ndarray,
        dtype: type[np.floating[Any]],
    ) -> Iterable[Params]:
        """Configurations, the method's best first; JAX computes in the precision of ``dtype``."""
        import jax
        import jax.numpy as jnp

        from dre_jax.data.tasks import tie_levels
        from dre_jax.search.candidates import TrialRecord, propose, sobol_points
        from dre_jax.search.history import make_history
        from dre_jax.search.loop import initial_state
        from dre_jax.search.suggester import capacity_for

        points, running, broken = (
            np.array([self._known(params).point for params in group]).reshape(-1, len(self.space))
            for group in ([o.params for o in observed], pending, failed)
        )
        longest = self.config.longest
        room = max(longest - len(running), longest // 2)
        shown, responses = _shown(points, np.array([o.response for o in observed], np.float64), room)
        known = np.vstack([shown, running])
        capacity = capacity_for(len(known))
        if len(known) <= longest:
            capacity = min(capacity, longest)
        history = make_history(self._layout.columns(shown), clip_responses(responses), capacity, dtype)
        levels = np.pad(tie_levels(responses), (0, capacity - len(shown)))
        hidden = points if len(points) > len(shown) else points[:0]
        avoid = np.vstack([broken, hidden])
        radius = np.repeat([self.config.failed_radius, 1e-6], [len(broken), len(hidden)])
        # Where all coordinates have few values, a neighbour is another configuration.
        radius = np.minimum(radius, 1e-6) if np.isfinite(self.space.size) else radius
        slots = capacity_for(len(avoid))
        level, *others = jax.device_put(
            (
                levels,
                _padded(known, capacity).astype(dtype),
                (np.arange(capacity) >= len(shown)) & (np.arange(capacity) < len(known)),
                _padded(avoid, slots).astype(dtype),
                np.pad(radius, (0, slots - len(radius)), constant_values=-1.0).astype(dtype),
            )
        )
        tried = TrialRecord(history._replace(level=level), *others)
        key = jax.random.key(self.seed)
        state = initial_state(self._method, self._params, self._layout.n_columns, key)
        even = sobol_points(self._candidates.even, len(self.space), _seed(self.seed, number))
        found, _ = propose(
            self._method,
            self._layout,
            self._candidates,
            self._params,
            state,
            tried,
            jax.device_put(even.astype(dtype)),
            key,
            jnp.int32(number % 2**31),
            64,
            None if np.isnan(at).all() else jnp.asarray(at, dtype),
        )
        best, values = np.asarray(found.points), np.asarray(found.values)
        return (self.space.params(_given(point, at)) for point in best[values > -np.inf])

    def _known(self, params: Mapping[str, Any]) -> _Known:
        """A configuration's columns and point, worked out once: every suggestion asks for those of all trials."""
        try:
            key = (*params.items(), *map(type, params.values()))
            found = self._worked_out.get(key)
        except (AttributeError, TypeError):  # no configuration
            return _known(self.space, params)
        if found is None:
            if len(self._worked_out) >= _MOST_KNOWN:
                self._worked_out.clear()
            found = self._worked_out[key] = _known(self.space, params)
        return found

    @cached_property
    def _worked_out(self) -> dict[tuple[Any, ...], _Known]:
        return {}

    @cached_property
    def _layout(self) -> Any:
        return self.space.layout if self.surrogate is None else self.space.layout_in(self.surrogate.space)

    @cached_property
    def _candidates(self) -> CandidateConfig:
        from dre_jax.search.candidates import default_candidates

        return default_candidates(self._method, self._layout, self.config.pending_strategy)

    @cached_property
    def _method(self) -> Method:
        from dre_jax.methods import find

        return find(WITHOUT_SURROGATE).make(dict(FITTING)) if self.surrogate is None else self.surrogate.method

    @cached_property
    def _params(self) -> Any:
        import jax

        from dre_jax.search.precision import with_precision

        if self.surrogate is None:
            return None
        with self._precision() as dtype:
            return jax.device_put(with_precision(self.surrogate.params, dtype))

    def _precision(self) -> AbstractContextManager[type[np.floating[Any]]]:
        from dre_jax.search.precision import precision_of

        return precision_of(self._method)

    def __getstate__(self) -> dict[str, Any]:
        """Without what lies on a device, or is soon worked out anew."""
        return {name: value for name, value in self.__dict__.items() if name not in _NOT_PICKLED}


def _known(space: Space, params: Mapping[str, Any]) -> _Known:
    point = space.point(params)
    return _Known((np.round(point, 9) + 0.0).tobytes(), point)  # no zero with a sign


def _shown(points: np.ndarray, responses: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """The trials that a method is shown: all, or the better half and the latest."""
    if np.isnan(responses).any():
        raise DataError("a response must be a number, but got NaN")
    if len(responses) <= room:
        return points, responses
    best = np.argsort(-responses, kind="stable")[: room // 2]
    rest = np.setdiff1d(np.arange(len(responses)), best)[-(room - len(best)) :]
    rows = np.sort(np.concatenate([best, rest]))
    return points[rows], responses[rows]


def _given(point: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(at), point, at)


def _padded(rows: np.ndarray, slots: int) -> np.ndarray:
    return np.pad(rows, ((0, slots - len(rows)), (0, 0)))


def _seed(seed: int, number: int) -> int:
    """A seed of its own for every trial."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])
