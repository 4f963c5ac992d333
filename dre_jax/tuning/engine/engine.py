"""Suggestions from the trials so far: what ask and tell, Optuna and scikit-learn share.

An engine has no state: the same trials, seed and number give the same suggestion in every process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from dre_jax.data.tasks import tie_levels
from dre_jax.errors import DataError
from dre_jax.runtime.forks import check_not_forked
from dre_jax.runtime.jit import compile_ahead
from dre_jax.runtime.progress import say_reports
from dre_jax.search.acquisition import undefined_values
from dre_jax.search.history import History, make_history
from dre_jax.search.method import Method, capabilities_of
from dre_jax.suggest.candidates import CandidateConfig
from dre_jax.suggest.pending import check_pending_strategy
from dre_jax.suggest.precision import Dtype, precision_of, with_precision
from dre_jax.suggest.proposals import Proposals, SuggestionInputs, propose
from dre_jax.suggest.suggester import capacity_for, coarse_capacity_for
from dre_jax.suggest.weighting import Weights
from dre_jax.tuning.engine.cost import CostModel, learn_cost, learn_past_cost, share_left
from dre_jax.tuning.engine.engine_config import FIRST_CAPACITY, SAME, EngineConfig, checked_config
from dre_jax.tuning.engine.feasibility import feasibility_outcomes, fit_feasibility
from dre_jax.tuning.engine.initial_design import InitialDesign
from dre_jax.tuning.engine.plateau import information_of, order_by_outcome
from dre_jax.tuning.engine.predicted_responses import Prediction, predict_responses
from dre_jax.tuning.engine.response_clipping import clip_responses, relative_errors
from dre_jax.tuning.engine.suggestion_runtime import seed_key, suggestion_runtime
from dre_jax.tuning.engine.trial_record import ParamsEncoder, select_trials, trial_record
from dre_jax.tuning.objectives.objectives import values_of
from dre_jax.tuning.objectives.several import SeveralObjectives
from dre_jax.tuning.objectives.single import SingleObjective
from dre_jax.tuning.space.beliefs import log_densities, weight_after
from dre_jax.tuning.space.completion import coordinates_of, fix_coordinates
from dre_jax.tuning.space.space import Params, Space
from dre_jax.tuning.study.trial import Trial

_N_PROPOSALS = 64
"""Points that are compared with the trials on the host."""
_TRANSIENT_ATTRIBUTES = ("_params", "_encoder", "_log_densities", "_past_cost", "_engines")


class Suggestion(NamedTuple):
    """A configuration to evaluate next, and what the method says of it."""

    params: Params
    improvement: float | None = None
    """Expected improvement of the best candidate on the best response, in units of the responses, times the probability
    that it is feasible; None if the method was not used or has none, or all responses are equal."""
    past_weight: float | None = None
    """Weight of the hypotheses that the past holds; None if the method was not used or does not weigh the past."""


class Engine:
    """Suggestions for studies of one search space and the same objectives.

    Example:
      >>> from dre_jax.tuning import Float, Space
      >>> engine = Engine(Space({"x": Float(0.0, 1.0)}))
      >>> sorted(engine.propose([], number=0).params)
      ['x']
    """

    def __init__(
        self,
        space: Space,
        objectives: SingleObjective | SeveralObjectives | None = None,
        *,
        seed: int = 0,
        config: EngineConfig | None = None,
    ) -> None:
        """Creates an engine.

        Args:
          space: the search space.
          objectives: the objectives with their methods; by default one to minimise, without past tasks.
          seed: seed of all suggestions.
          config: settings.

        Raises:
          DataError: for a surrogate of another space; the message names the hyperparameters that differ.
          ConfigError: for a pending strategy that the surrogate's method does not support.
        """
        self.space = space
        self.objectives = SingleObjective() if objectives is None else objectives
        self.seed = seed
        self.config = checked_config(config)
        self._past = self.objectives.past
        if self._past is not None:
            self._past.space.require_encodes(space)
        if self.config.pending_strategy in ("believer", "draw"):
            check_pending_strategy(self._method, self.config.pending_strategy)

    @property
    def n_start(self) -> int:
        """Number of trials that precede those of the method, without a surrogate."""
        return self.objectives.n_start(len(self.space))

    def of_objective(self, name: str) -> Engine:
        """Returns an engine of one of several objectives, the same at each call; itself if there is one."""
        if isinstance(self.objectives, SingleObjective):
            return self
        if name not in self._engines:
            part = self.objectives.parts[name]
            self._engines[name] = Engine(self.space, part, seed=self.seed, config=self.config)
        return self._engines[name]

    @cached_property
    def _engines(self) -> dict[str, Engine]:
        return {}

    @say_reports()
    def propose(
        self,
        trials: Sequence[Trial],
        *,
        number: int,
        pending: Iterable[Mapping[str, Any]] = (),
        fixed: Mapping[str, Any] | None = None,
    ) -> Suggestion:
        """Returns the configuration to evaluate next, and what the method says of it.

        Args:
          trials: of the study. Of those that failed, and of the constraints of the others, the engine learns where
            trials succeed and are feasible; see `dre_jax.tuning.engine.feasibility`.
          number: number of the trial in the study; another number gives another suggestion.
          pending: configurations that will be evaluated, beside those of running trials.
          fixed: values of hyperparameters that are not searched in this trial.

        Configurations are encoded once, so a mapping must not change between calls.

        Raises:
          DataError: for configurations of another space, or NaN.
          ConfigError: if the method's values of all candidates are NaN.
        """
        check_not_forked()
        observations = _with_value(trials)
        running, failures = (
            [trial._params for trial in trials if trial.state == state] for state in ("running", "failed")
        )
        groups = ([trial._params for trial in observations], [*running, *pending], failures)
        encode = self._encoder.encode
        encodings = [[encode(params) for params in group] for group in groups]
        identities = {encoding.identity for group in encodings for encoding in group}
        held = coordinates_of(self.space, fixed or {})
        start = None if self._past is None else self._past.start
        design = InitialDesign(self.space, start, self.seed, self._log_densities, self.n_start, number, held)
        for params in design.initial_configurations(len(identities)):
            if encode(params).identity not in identities:
                return Suggestion(params)
        trial_points = [
            np.array([encoding.point for encoding in group]).reshape(-1, len(self.space)) for group in encodings
        ]
        points, _, failed_points = trial_points
        has_past = self._past is not None
        values = values_of(observations, self.objectives.directions)
        information = information_of(observations, points, values, has_past=has_past)
        fills_space = number % 4 < 4 * information.even_share
        candidates, improvement, past_weight = None, None, None
        # A trial that fills the space has the improvement that the method expects of another one.
        says_more = capabilities_of(self._method).improvement and not information.is_plateau
        if self._can_value(observations) and (says_more or not fills_space):
            with suggestion_runtime, self._precision() as dtype:
                left = share_left(self.config.budget, trials)
                ranking = self._rank_candidates(observations, trial_points, design, left, dtype)
                candidates, improvement, past_weight = ranking
        if candidates is None or fills_space:
            feasible = np.array([trial.is_feasible for trial in observations], bool)
            arrays, radius = (points, feasible, failed_points), self.config.failed_radius
            candidates = design.sobol_configurations(lambda even: order_by_outcome(even, *arrays, radius))
        improvement = 0.0 if information.is_plateau and information.is_long else improvement
        allowed = filter(self.space.allows, candidates)
        best = next((params for params in allowed if encode(params).identity not in identities), None)
        if best is not None:
            return Suggestion(best, improvement, past_weight)
        # All candidates have been evaluated: any other configuration, or one that is not running.
        others = (
            params
            for exclusions in (identities, {encoding.identity for encoding in encodings[1]}, set[bytes]())
            for params in design.other_configurations()
            if encode(params).identity not in exclusions
        )
        return Suggestion(next(others), 0.0, past_weight)

    def _responses(self, observations: Sequence[Trial]) -> np.ndarray:
        """Returns the responses f64[n] that order the trials."""
        return self.objectives.order(values_of(observations, self.objectives.directions))

    def _can_value(self, observations: Sequence[Trial]) -> bool:
        return bool(observations) or self.objectives.values_first_trial

    @cached_property
    def _log_densities(self) -> np.ndarray | None:
        return log_densities(self.space) if self.config.belief_weight else None

    def _rank_candidates(
        self,
        observations: Sequence[Trial],
        trial_points: Sequence[np.ndarray],
        design: InitialDesign,
        left: float,
        dtype: Dtype,
    ) -> tuple[Iterable[Params], float | None, float | None]:
        """Ranks candidates by the method; JAX computes in the precision of ``dtype``.

        ``trial_points`` f64[n, P] are those of trials with values, pending and failed trials; ``left`` is the share of
        the budget that is left.

        Returns:
          Configurations, the best first; the expected improvement of the first, and the weight of the past, or None.
        """
        (points, pending_points, failed_points), max_history = trial_points, self.config.max_history
        arrays = self._responses(observations), points, failed_points, pending_points
        outcomes, responses = feasibility_outcomes(self.config, observations, *arrays, dtype)
        responses = self.objectives.rank_like_past(observations, responses)
        rows = select_trials(responses, max(max_history - len(pending_points), max_history // 2))
        hidden_points = points if len(points) > len(rows) else points[:0]
        is_finite = bool(np.isfinite(self.space.size))
        # With real numbers, of the best candidates hardly one is evaluated: they are compared below, as they are few.
        avoid = np.vstack([failed_points, hidden_points]) if is_finite else failed_points
        slots = capacity_for(len(avoid)) if outcomes is None else coarse_capacity_for(len(avoid))
        # Where all coordinates have few values, a neighbour is another configuration.
        radius = SAME if is_finite else self.config.failed_radius
        history = self._history(observations, rows, points, responses, len(rows) + len(pending_points), dtype)
        trials = trial_record(history, points[rows], pending_points, avoid, slots, radius)
        even_points, fixed_coordinates = design.even_points(self._candidates.even), design.fixed_coordinates
        costs = np.array([np.nan if trial.cost is None else trial.cost for trial in observations], np.float64)
        past_cost = self._past_cost if np.isfinite(costs).any() else None
        inputs = SuggestionInputs(
            self.objectives.params_for(self._params, observations, responses, rows, len(trials.points), dtype),
            trials,
            jax.device_put(even_points.astype(dtype)),
            seed_key(self.seed),
            jax.device_put(np.int32(design.number % 2**31)),
            None if np.isnan(fixed_coordinates).all() else jax.device_put(fixed_coordinates.astype(dtype)),
            Weights(
                None,
                self._log_belief(points, responses, dtype),
                learn_cost(self.space.layout, points, costs, left, max_history, dtype, past_cost),
            ),
        )
        proposals = self._search(outcomes, inputs)
        if proposals.is_undefined:
            raise undefined_values(self._method)
        best, values = np.asarray(proposals.points), np.asarray(proposals.values)
        proposed_points = (fix_coordinates(point, fixed_coordinates) for point in best[values > -np.inf])
        configurations = (
            self.space.params(point)
            for point in proposed_points
            if is_finite or not len(hidden_points) or np.abs(hidden_points - point).max(axis=1).min() > SAME
        )
        spread = float(np.ptp(clip_responses(responses[rows]))) if len(rows) else 0.0
        improvement = None if proposals.improvement is None or not spread else float(proposals.improvement) * spread
        weight = proposals.past_weight
        return configurations, improvement, None if weight is None else float(weight)

    def _search(self, outcomes: Any, inputs: SuggestionInputs) -> Proposals:
        """Returns the best candidates by the method; ``outcomes`` are those of `feasibility_outcomes`."""

        def search(outcomes: Any, inputs: SuggestionInputs) -> Proposals:
            if outcomes is not None:
                weights = inputs.weights._replace(feasibility=fit_feasibility(self.space.layout, *outcomes))
                inputs = inputs._replace(weights=weights)
            return propose(self._method, self._layout, self._candidates, inputs, _N_PROPOSALS)

        compile_ahead(search, outcomes, inputs)
        return search(outcomes, inputs)

    def _history(
        self,
        observations: Sequence[Trial],
        rows: np.ndarray,
        points: np.ndarray,
        responses: np.ndarray,
        n_filled: int,
        dtype: Dtype,
    ) -> History:
        """Returns a history of some rows of the trials with a value, padded for so many trials."""
        capacity = max(capacity_for(n_filled), FIRST_CAPACITY)
        if n_filled <= self.config.max_history:
            capacity = min(capacity, self.config.max_history)
        # The value of a stopped trial is a posterior, whose error not every method can use.
        is_noise_known = capabilities_of(self._method).heteroscedastic
        states = ("complete", "stopped") if is_noise_known else ("complete",)
        history_trials = [observations[row] for row in rows]
        errors = np.array([(trial.stderr or 0.0) if trial.state in states else 0.0 for trial in history_trials])
        if errors.any():
            self.objectives.require_standard_errors()
        clipped_responses = clip_responses(responses[rows])
        history = make_history(self._layout.columns(points[rows]), clipped_responses, capacity, dtype)
        fields = {"level": tie_levels(responses[rows])}
        if errors.any():
            fields["noise_var"] = (relative_errors(errors, clipped_responses) ** 2).astype(dtype)
        padded_fields = {name: np.pad(values, (0, capacity - len(rows))) for name, values in fields.items()}
        return history._replace(**jax.device_put(padded_fields))

    def predict(self, trials: Iterable[Trial], points: np.ndarray) -> Prediction:
        """Predicts values of a single objective from the trials that have one.

        Args:
          trials: with values of the objective.
          points: f64[n, P], of the unit cube, see `Space.point`.

        Raises:
          ConfigError: for several objectives, and a method that does not declare ``predicts_components``.
          DataError: for fewer than two different responses.
        """
        self.objectives.require_predictions()
        check_not_forked()
        observations = _with_value(trials)
        responses = self.objectives.rank_like_past(observations, self._responses(observations))
        rows = select_trials(responses, self.config.max_history)
        clipped_responses = clip_responses(responses[rows])
        spread = np.ptp(clipped_responses) if len(rows) else 0.0
        if not spread:
            raise DataError("predictions need trials with different values")
        observed_points = np.array([self._encoder.encode(trial._params).point for trial in observations])
        with suggestion_runtime, self._precision() as dtype:
            history = self._history(observations, rows, observed_points, responses, len(rows), dtype)
            arrays = history, jax.device_put(points.astype(dtype)), seed_key(self.seed)
            moments = predict_responses(self._method, self._layout, self._params, *arrays)
        mean, deviation = (np.asarray(moment, np.float64) for moment in moments)
        response = clipped_responses.min() + spread * mean
        return Prediction(response if self.objectives.directions[""] == "maximize" else -response, spread * deviation)

    @cached_property
    def _past_cost(self) -> CostModel | None:
        """Costs as learned from past studies; None without any."""
        if self._past is None or self._past.studies is None:
            return None
        with self._precision() as dtype:
            return learn_past_cost(self._layout, self._past.studies, dtype)

    def _log_belief(self, points: np.ndarray, responses: np.ndarray, dtype: Dtype) -> Any:
        """Returns the log weights of what is likely, f[P, K + 1]; None if nothing is."""
        densities = self._log_densities
        if densities is None:
            return None
        power = weight_after(densities, self.space.layout, points, clip_responses(responses), self.config.belief_weight)
        return jax.device_put((power * (densities - densities.max(axis=1, keepdims=True))).astype(dtype))

    @cached_property
    def _encoder(self) -> ParamsEncoder:
        return ParamsEncoder(self.space)

    @cached_property
    def _layout(self) -> Any:
        return self.space.layout if self._past is None else self.space.layout_in(self._past.space)

    @cached_property
    def _candidates(self) -> CandidateConfig:
        return self.objectives.candidates(self._layout, self.config.pending_strategy)

    @property
    def _method(self) -> Method:
        return self.objectives.method

    @cached_property
    def _params(self) -> Any:
        if self._past is None:
            return None
        with self._precision() as dtype:
            return jax.device_put(with_precision(self._past.params, dtype))

    def _precision(self) -> AbstractContextManager[Dtype]:
        return precision_of(self._method)

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state without arrays on devices and caches."""
        return {name: value for name, value in self.__dict__.items() if name not in _TRANSIENT_ATTRIBUTES}


def _with_value(trials: Iterable[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.state in ("complete", "stopped")]
