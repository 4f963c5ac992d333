"""The suggestion of a continuous search: the candidates that a method values most.

Candidates (`dre_jax.suggest.candidates`) are drawn in rounds: first a scrambled Sobol sequence and steps from the best
trials, then steps from the points that the method valued most. Everything between two trials is one compiled call.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, Key, UInt32

from dre_jax.runtime.jit import few_numbers, jit_with_less_effort
from dre_jax.search.history import Candidates, History
from dre_jax.search.loop import trial_keys
from dre_jax.search.method import HistoryMethod, Method, PastWeighingMethod
from dre_jax.search.stages import Valuation, valuation
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.projection import move
from dre_jax.suggest import weighting
from dre_jax.suggest.candidates import CandidateConfig, StepNumbers, canonicalize, draw_step_numbers, steps_from
from dre_jax.suggest.pending import with_pending_trials
from dre_jax.suggest.refinement import choose_starts, refine, supports_refinement

_FEW_SLOTS = 32
"""Capacity of a history up to which a user waits longer for the compiler than for its programs."""
_INCUMBENTS = 2  # best trials that are starts of a search by gradient


class TrialRecord(NamedTuple):
    """Evaluated and pending trials as points of the unit cube, and points that must not be proposed."""

    history: History
    """The completed trials, C slots."""
    points: Float[Array, "C P"]
    """Points of the completed and of the pending trials."""
    pending: Bool[Array, " C"]
    """Slots of the pending trials, empty in the history."""
    avoid: Float[Array, "A P"]
    """Points that are not proposed again."""
    radius: Float[Array, " A"]
    """Maximum distance in every coordinate at which a point counts as equal; negative for empty slots."""


class SuggestionInputs(NamedTuple):
    """The arrays that a suggestion is computed from."""

    params: Any
    """Result of the method's `fit`."""
    trials: TrialRecord
    """The trials so far."""
    sobol_points: Float[Array, "even P"]
    """Points of a Sobol sequence (`dre_jax.space.sobol`). Their precision is that of the suggestion."""
    key: Key[Array, ""]
    """The run's key."""
    number: Int[Array, ""]
    """The trial's number."""
    fixed_values: Float[Array, " P"] | None = None
    """Values of fixed coordinates; NaN where they are searched."""
    weights: weighting.Weights = weighting.NO_WEIGHTS
    """Factors of the method's values; see `dre_jax.suggest.weighting`."""


class Proposals(NamedTuple):
    """The configuration that a method would evaluate next."""

    points: Float[Array, "K P"]
    """Best first."""
    values: Float[Array, " K"]
    """The method's values; minus infinity where there was nothing left to propose."""
    is_undefined: Bool[Array, ""]
    """There were candidates, and all their values are NaN."""
    improvement: Float[Array, ""] | None = None
    """Expected improvement of the first point on the scale of the history's responses, times the probability that it is
    feasible; None for values that are no expected improvement. Meaningless without trials."""
    past_weight: Float[Array, ""] | None = None
    """How far the method relies on past tasks; None if it has no `past_weight`."""


@jit_with_less_effort("config", "n_parts", "dtype", is_brief=few_numbers)
def _draw_numbers(
    config: CandidateConfig, n_parts: int, dtype: Any, key: Key[Array, ""], trial: Int[Array, ""]
) -> tuple[Key[Array, ""], StepNumbers, UInt32[Array, "rounds N"]]:
    """Returns the method's key, and random numbers of all rounds: of steps, and to order equal values."""
    method_key, choice_key = trial_keys(key, trial)

    def draw_numbers(i: Array) -> tuple[StepNumbers, Array]:
        step_key, coin_key = jax.random.split(jax.random.fold_in(choice_key, i))
        numbers = draw_step_numbers(config, n_parts, dtype, step_key, trial)
        return numbers, jax.random.bits(coin_key, (config.even + config.steps,), jnp.uint32)

    return method_key, *jax.vmap(draw_numbers)(jnp.arange(config.refinements + 1 if config.steps else 1))


def propose(
    method: Method,
    layout: SpaceLayout,
    config: CandidateConfig,
    inputs: SuggestionInputs,
    n: int = 1,
) -> Proposals:
    """Returns the K points that a method values most, in the precision of ``inputs.sobol_points``.

    Among points of equal value, those of the Sobol sequence come first, in random order: a method with constant values
    is random search. All but the inputs are static.
    """
    trials = inputs.trials
    # A separate program, because it is the same for histories of all sizes.
    dtype = inputs.sobol_points.dtype
    method_key, steps, coins = _draw_numbers(config, layout.n_parts, dtype, inputs.key, inputs.number)
    # Another program, because it does not depend on the candidates and their weights.
    arrays = inputs.params, trials.history, trials.points, trials.pending
    posterior = condition_on_trials(method, layout, config.pending_strategy, *arrays, method_key)
    last = _draw_rounds(method, layout, config, inputs, posterior, method_key, steps, coins)
    return _choose(method, layout, config, n, inputs, posterior, last, method_key)


class Posterior(NamedTuple):
    """A method's fit to the trials."""

    history: History
    """The completed trials, and imputed responses of the pending ones."""
    fitted_params: Any
    """Result of the method's `fit_history`; None if it has none."""
    past_weight: Float[Array, ""] | None
    """See `Proposals`."""


def _has_few_slots(
    method: Method, layout: SpaceLayout, strategy: str, params: Any, history: History, *_: Array
) -> bool:
    return len(history.where) <= _FEW_SLOTS


@jit_with_less_effort("method", "layout", "strategy", purpose="the suggestions", is_brief=_has_few_slots)
def condition_on_trials(
    method: Method,
    layout: SpaceLayout,
    strategy: str,
    params: Any,
    history: History,
    points: Float[Array, "C P"],
    pending: Bool[Array, " C"],
    key: Key[Array, ""],
) -> Posterior:
    """Returns a method's fit to trials at points, some of which are pending."""
    columns = layout.columns(points)
    history = with_pending_trials(method, params, history, columns, pending, strategy, key)
    if not isinstance(method, HistoryMethod) or strategy == "draw":
        return Posterior(history, None, None)
    fitted_params = method.fit_history(params, history, key)
    weight = method.past_weight(fitted_params) if isinstance(method, PastWeighingMethod) else None
    return Posterior(history, fitted_params, weight)


class _Round(NamedTuple):
    """Points after a round, best first; where the next one steps from; no values."""

    points: Float[Array, "N P"]
    values: Float[Array, " N"]
    is_sobol: Bool[Array, " N"]
    parents: Float[Array, "B P"]
    n_parents: Int[Array, ""]
    is_undefined: Bool[Array, ""]
    scale: Float[Array, ""] | None
    """Divisor of values that are not logarithms, if values are weighted."""


@jit_with_less_effort("method", "layout", "config", purpose="the search for candidates")
def _draw_rounds(
    method: Method,
    layout: SpaceLayout,
    config: CandidateConfig,
    inputs: SuggestionInputs,
    posterior: Posterior,
    method_key: Key[Array, ""],
    steps: StepNumbers,
    coins: UInt32[Array, "rounds N"],
) -> _Round:
    """Returns the candidates after the last round."""
    trials, sobol_points = inputs.trials, inputs.sobol_points
    fixed_values, weights = inputs.fixed_values, inputs.weights
    is_weighted = any(weight is not None for weight in weights)
    is_log = weighting.values_are_logarithms(method, sample=config.pending_strategy == "draw")
    rate = _valuation(method, config, inputs.params, posterior, method_key)
    points = jnp.concatenate([sobol_points, jnp.zeros((config.steps, layout.n_parts), sobol_points.dtype)])
    is_sobol = jnp.arange(len(points)) < config.even
    parents = _best_trials(trials, config.sources)
    count = jnp.minimum(jnp.sum(trials.history.where, dtype=jnp.int32), config.parents)

    def draw_round(carry: _Round, numbers_of_round: tuple[StepNumbers, Array]) -> tuple[_Round, None]:
        steps, coins = numbers_of_round
        if config.steps:  # replace the points of least value
            new_points = steps_from(layout, config, carry.parents, carry.n_parents, steps)
            points = jnp.concatenate([carry.points[: config.even], new_points])
        else:
            points = carry.points
        points = _to_rules(layout, _fix_coordinates(points, fixed_values), fixed_values)
        is_sobol = carry.is_sobol & (jnp.arange(len(points)) < config.even)
        points = canonicalize(layout, points)
        candidates = Candidates(layout.columns(points), _may_be_proposed(layout, points, trials))
        values = rate(candidates)
        has_value = candidates.where & ~jnp.isnan(values)
        has_no_value = jnp.any(candidates.where) & ~jnp.any(has_value)
        values = jnp.where(has_value, values, -jnp.inf)
        scale = None
        if is_weighted:
            scale = None if is_log else weighting.value_scale(values, candidates.where)
            noise = jnp.where(weights.applies, weighting.tie_noise(values, coins), 0.0)
            values = _weigh(layout, weights, values, scale, points) + noise
        order = jnp.lexsort((coins, is_sobol, values))[::-1]
        points = points[order]
        parents, n_parents = points[: config.sources], jnp.int32(config.sources)
        return _Round(points, values[order], is_sobol[order], parents, n_parents, has_no_value, scale), None

    scale = None if is_log or not is_weighted else jnp.ones((), sobol_points.dtype)
    values = jnp.zeros(len(points), sobol_points.dtype)
    first = _Round(points, values, is_sobol, parents, count, jnp.bool_(False), scale)
    # A loop, so that the method is compiled once.
    return jax.lax.scan(draw_round, first, (steps, coins))[0]


@jit_with_less_effort("method", "layout", "config", "n")
def _choose(
    method: Method,
    layout: SpaceLayout,
    config: CandidateConfig,
    n: int,
    inputs: SuggestionInputs,
    posterior: Posterior,
    last: _Round,
    method_key: Key[Array, ""],
) -> Proposals:
    """Returns the best of the candidates and of searches by gradient from them."""
    trials, fixed_values, weights = inputs.trials, inputs.fixed_values, inputs.weights
    sample = config.pending_strategy == "draw"
    points, values = last.points, last.values
    if config.starts and not sample and supports_refinement(method, layout):
        is_weighted = any(weight is not None for weight in weights)
        rate = _valuation(method, config, inputs.params, posterior, method_key)

        def rate_points(points: Array) -> Array:
            points = _to_rules(layout, points, fixed_values)
            values = rate(Candidates(layout.columns(points), jnp.ones(len(points), bool)))
            return _weigh(layout, weights, values, last.scale, points) if is_weighted else values

        incumbents = _fix_coordinates(_best_trials(trials, config.sources)[:_INCUMBENTS], fixed_values)
        starts = jnp.concatenate([choose_starts(points, values, config.starts), incumbents])
        starts = canonicalize(layout, starts)
        maxima, worth = refine(layout, rate_points, starts, fixed_values, config.ascent_steps, config.radius)
        maxima = _to_rules(layout, maxima, fixed_values)
        worth = jnp.where(_may_be_proposed(layout, maxima, trials) & ~jnp.isnan(worth), worth, -jnp.inf)
        points, values = jnp.concatenate([points, maxima]), jnp.concatenate([values, worth])
        order = jnp.argsort(-values, stable=True)
        points, values = points[order], values[order]
    points, values, improvement = points[:n], values[:n], None
    if not sample and weighting.gives_improvement(method):
        log_improvement = values[0] - jnp.ravel(jnp.asarray(weights.log_further(layout, points[:1]), values.dtype))[0]
        # The scale is linear for responses above the median.
        transform = method.response_transform(posterior.fitted_params)
        improvement = jnp.exp(log_improvement) * transform.deviation
    return Proposals(points, values, last.is_undefined, improvement, posterior.past_weight)


_programs: tuple[Any, ...] = (condition_on_trials, _draw_rounds, _choose)
propose._cache_size = lambda: sum(program._cache_size() for program in _programs)  # type: ignore[attr-defined]


def _valuation(
    method: Method, config: CandidateConfig, params: Any, posterior: Posterior, key: Key[Array, ""]
) -> Valuation:
    sample = config.pending_strategy == "draw"
    return valuation(method, params, posterior.history, posterior.fitted_params, key, sample=sample)


def _to_rules(
    layout: SpaceLayout, points: Float[Array, "N P"], fixed_values: Float[Array, " P"] | None
) -> Float[Array, "N P"]:
    return move(layout, points, fixed_values) if layout.is_thin else points


def _weigh(
    layout: SpaceLayout,
    weights: weighting.Weights,
    values: Float[Array, " N"],
    scale: Float[Array, ""] | None,
    points: Float[Array, "N P"],
) -> Float[Array, " N"]:
    return weighting.weigh(values, scale, weights.feasibility, points, weights.log_further(layout, points))


def _fix_coordinates(points: Float[Array, "N P"], values: Float[Array, " P"] | None) -> Float[Array, "N P"]:
    """Returns points with the values of the fixed coordinates."""
    return points if values is None else jnp.where(jnp.isnan(values)[None, :], points, values[None, :])


def _best_trials(trials: TrialRecord, n: int) -> Float[Array, "{n} P"]:
    """Returns the points of the n best trials; the last is repeated if there are fewer."""
    last = jnp.iinfo(jnp.int32).max
    order = jnp.argsort(jnp.where(trials.history.where, trials.history.level, last), stable=True)
    return trials.points[order[jnp.minimum(jnp.arange(n), len(order) - 1)]]


def _may_be_proposed(layout: SpaceLayout, points: Float[Array, "N P"], trials: TrialRecord) -> Bool[Array, " N"]:
    """Returns which points are new and satisfy the rules of the space."""
    is_new = _is_new(points, trials)
    return is_new & layout.is_allowed(points) if layout.rules else is_new


def _is_new(points: Float[Array, "N P"], trials: TrialRecord) -> Bool[Array, " N"]:
    """Returns which points are neither evaluated, nor pending, nor to be avoided."""
    radius = jnp.concatenate([jnp.where(trials.history.where | trials.pending, 1e-6, -1.0), trials.radius])
    excluded_points = jnp.concatenate([trials.points, trials.avoid])

    def is_new(point: Array) -> Array:
        return jnp.all(jnp.max(jnp.abs(point[None] - excluded_points), axis=-1) > radius)

    return jax.vmap(is_new)(points)
