"""Suggestions from the trials so far, for ask and tell, Optuna and scikit-learn.

An engine has no state: the same trials, seed and number give the same suggestion in every process.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from dre_jax.errors import DataError
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.runtime.forks import check_not_forked
from dre_jax.runtime.jit import seed_key
from dre_jax.runtime.progress import say_reports
from dre_jax.search.acquisition import undefined_values
from dre_jax.search.history import History
from dre_jax.search.method import Method, capabilities_of
from dre_jax.space.completion import coordinates_of, fix_coordinates
from dre_jax.space.space import Params, Space
from dre_jax.suggest.candidates import CandidateConfig
from dre_jax.suggest.pending import check_pending_strategy
from dre_jax.suggest.precision import Dtype, precision_of, with_precision
from dre_jax.suggest.proposals import Proposals, SuggestionInputs, TrialRecord
from dre_jax.suggest.suggester import capacity_for, coarse_capacity_for
from dre_jax.suggest.weighting import Weights
from dre_jax.tuning.engine.beliefs import log_densities, weight_after
from dre_jax.tuning.engine.cost import CostModel, learn_cost, learn_past_cost, share_left
from dre_jax.tuning.engine.engine_config import FIRST_CAPACITY, SAME, EngineConfig, checked_config
from dre_jax.tuning.engine.feasibility import feasibility_outcomes, propose_feasible
from dre_jax.tuning.engine.initial_design import InitialDesign
from dre_jax.tuning.engine.plateau import information_of, order_by_outcome
from dre_jax.tuning.engine.prediction_scale import PredictionScale, choose_scale
from dre_jax.tuning.engine.predictions import HistoryFit, Prediction, fit_responses, predict_mixture
from dre_jax.tuning.objectives.criterion import Surrogates, criterion_of, search_space, surrogates_by_objective
from dre_jax.tuning.trials.objectives import Objectives, find_objective, objectives_of, values_of
from dre_jax.tuning.trials.responses import clip_responses
from dre_jax.tuning.trials.trial import Trial
from dre_jax.tuning.trials.trial_record import (
    EncodedTrials,
    ParamsEncoder,
    encode_trials,
    history_of,
    select_trials,
    trial_record,
    with_value,
)

_N_PROPOSALS = 64
"""Points that are compared with the trials on the host."""
_TRANSIENT_ATTRIBUTES = ("_last_fit", "_params", "_encoder", "_log_densities", "_past_cost", "_engines")


class Suggestion(NamedTuple):
    """A configuration to evaluate next, and the values of the method for it."""

    params: Params
    improvement: float | None = None
    """Expected improvement of the best candidate on the best response, in units of the responses, times the probability
    that it is feasible; None if the method was not used or has none, or all responses are equal."""
    past_weight: float | None = None
    """Total weight of the hypotheses that use past tasks; None if the method was not used or does not weigh them."""
    further: tuple[Params, ...] = ()
    """Other new configurations that the method values, from the same fit, the best first; if they were asked for."""


class Engine:
    """Suggestions for studies of one search space and the same objectives."""

    _last_fit: HistoryFit | None = None

    def __init__(
        self,
        space: Space | Mapping[str, Any] | None,
        objectives: Objectives | None = None,
        surrogates: Surrogates = None,
        *,
        seed: int = 0,
        config: EngineConfig | None = None,
    ) -> None:
        """Creates an engine, by default of one objective to minimise, without past tasks.

        Raises `ConfigError` and `DataError` as `dre_jax.tuning.Optimizer`.
        """
        self.objectives = objectives = objectives_of() if objectives is None else objectives
        self.surrogates = surrogates_by_objective(surrogates, objectives)
        self.space = search_space(space, self.surrogates)
        self.seed = seed
        self.config = checked_config(config)
        alone, strategy, reference = self.config.method, self.config.pending_strategy, self.config.reference_point
        self.criterion = criterion_of(objectives, self.surrogates, alone, strategy, reference)
        self._past = self.criterion.past
        if self._past is not None:
            self._past.space.require_encodes(self.space)
        if self.config.pending_strategy in ("believer", "draw"):
            check_pending_strategy(self._method, self.config.pending_strategy)

    @property
    def n_start(self) -> int:
        """Number of trials that precede those of the method, without a surrogate."""
        return self.criterion.n_start(len(self.space))

    def of_objective(self, name: str) -> Engine:
        """Returns an engine of one of several objectives, the same at each call; itself if there is one."""
        if len(self.objectives) == 1:
            return self
        if name not in self._engines:
            objective, config = find_objective(self.objectives, name), replace(self.config, reference_point=None)
            surrogate = self.surrogates[name]
            self._engines[name] = Engine(self.space, (objective,), surrogate, seed=self.seed, config=config)
        return self._engines[name]

    @cached_property
    def _engines(self) -> dict[str, Engine]:
        return {}

    @with_default_float_errors
    @say_reports()
    def propose(
        self,
        trials: Sequence[Trial],
        *,
        number: int,
        pending: Iterable[Mapping[str, Any]] = (),
        fixed: Mapping[str, Any] | None = None,
        has_further: bool = False,
    ) -> Suggestion:
        """Returns the configuration to evaluate next, and the method's values for it.

        From failed trials and constraints, the engine learns where trials succeed and are feasible; see
        `dre_jax.tuning.engine.feasibility`. Another number of the trial gives another suggestion. ``pending`` are
        configurations that will be evaluated, beside those of running trials, and ``fixed`` values of hyperparameters
        that are not searched in this trial. With ``has_further``, the suggestion has the other configurations that the
        method values, unless it values them by a single draw. Configurations are encoded once, so a mapping must not
        change between calls.

        Raises `DataError` for configurations of another space, or NaN, and `ConfigError` if the method's values of all
        candidates are NaN.
        """
        check_not_forked()
        study = self.criterion.set_diverged_apart(encode_trials(self._encoder, trials, pending))
        coordinates = coordinates_of(self.space, fixed or {})
        start = None if self._past is None else self._past.start
        design = InitialDesign(self.space, start, self.seed, self._log_densities, self.n_start, number, coordinates)
        initial = self._first_new(design.initial_configurations(len(study.identities)), study.identities)
        if initial is not None:
            return Suggestion(initial)
        values = values_of(study.observations, self.objectives)
        has_past = self._past is not None
        information = information_of(study.observations, study.points, values, has_past=has_past)
        fills_space = number % 4 < 4 * information.space_filling_share
        candidates, improvement, past_weight = None, None, None
        # A trial that fills the space has the improvement that the method expects of its own best candidate.
        says_more = capabilities_of(self._method).improvement and not information.is_plateau
        if self._can_value(study.observations) and (says_more or not fills_space):
            budget_share = share_left(self.config.budget, trials)
            candidates, improvement, past_weight = self._rank_candidates(study, design, budget_share)
        is_drawn = self.config.pending_strategy == "draw"  # the values are those of a model that is drawn for one trial
        has_further = has_further and candidates is not None and not fills_space and not is_drawn
        if candidates is None or fills_space:
            candidates = self._space_filling_configurations(study, design)
        improvement = 0.0 if information.is_plateau and information.is_long else improvement
        new_candidates = self._new(filter(self.space.allows, candidates), study.identities)
        best = next(new_candidates, None)
        if best is not None:
            return Suggestion(best, improvement, past_weight, tuple(new_candidates) if has_further else ())
        # All candidates have been evaluated: any other configuration, or one that is not running.
        exclusions = (study.identities, study.pending_identities, frozenset[bytes]())
        fallbacks = (self._first_new(design.other_configurations(), identities) for identities in exclusions)
        return Suggestion(next(params for params in fallbacks if params is not None), 0.0, past_weight)

    def _first_new(self, configurations: Iterable[Params], identities: Container[bytes]) -> Params | None:
        """Returns the first configuration whose identity is not in ``identities``, or None."""
        return next(self._new(configurations, identities), None)

    def _new(self, configurations: Iterable[Params], identities: Container[bytes]) -> Iterator[Params]:
        """Yields the configurations whose identities are not in ``identities``."""
        return (params for params in configurations if self._encoder.encode(params).identity not in identities)

    def _space_filling_configurations(self, study: EncodedTrials, design: InitialDesign) -> Iterable[Params]:
        """Returns configurations that fill the space, those near failed trials last."""
        feasible = np.array([trial.is_feasible for trial in study.observations], bool)
        has_failed = np.ones(len(study.failed_points), bool)
        outcomes = (
            np.vstack([study.points, study.failed_points]),
            np.concatenate([feasible, ~has_failed]),
            np.concatenate([~feasible & feasible.any(), has_failed]),
        )
        return design.sobol_configurations(lambda x: order_by_outcome(x, *outcomes, self.config.failed_radius))

    def _responses(self, observations: Sequence[Trial]) -> np.ndarray:
        """Returns the responses f64[n] that order the trials."""
        return self.criterion.order(values_of(observations, self.objectives))

    def _can_value(self, observations: Sequence[Trial]) -> bool:
        return bool(observations) or self.criterion.values_first_trial

    @cached_property
    def _log_densities(self) -> np.ndarray | None:
        return log_densities(self.space) if self.config.belief_weight else None

    def _rank_candidates(
        self, study: EncodedTrials, design: InitialDesign, budget_share: float
    ) -> tuple[Iterable[Params], float | None, float | None]:
        """Ranks candidates by the method.

        ``budget_share`` is the share of the budget that remains.

        Returns:
          Configurations, the best first; the expected improvement of the first, and the weight of the past, or None.
        """
        with suggestion_runtime, precision_of(self._method) as dtype:
            arrays = self._responses(study.observations), study.points, study.failed_points, study.pending_points
            outcomes, responses = feasibility_outcomes(self.config, study.observations, *arrays, dtype)
            responses = self.criterion.rank_like_past(study.observations, responses)
            max_history = self.config.max_history
            rows = select_trials(responses, max(max_history - len(study.pending_points), max_history // 2))
            record = self._trial_record(study, rows, responses, dtype, is_coarse=outcomes is not None)
            points, fixed_coordinates = design.candidate_points(self._candidates.even), design.fixed_coordinates
            slots = len(record.points)
            inputs = SuggestionInputs(
                self.criterion.params_for(self._params, study.observations, responses, rows, slots, dtype),
                record,
                jax.device_put(points.astype(dtype)),
                seed_key(self.seed),
                jax.device_put(np.int32(design.number % 2**31)),
                None if np.isnan(fixed_coordinates).all() else jax.device_put(fixed_coordinates.astype(dtype)),
                self._weights(study, responses, budget_share, dtype),
            )
            model = self._method, self._layout, self._candidates
            proposals = propose_feasible(*model, self.space.layout, outcomes, inputs, _N_PROPOSALS)
            if proposals.is_undefined:
                raise undefined_values(self._method)
            configurations = self._proposed_configurations(proposals, fixed_coordinates, self._hidden(study, rows))
            spread = float(np.ptp(clip_responses(responses[rows]))) if len(rows) else 0.0
            improvement, weight = proposals.improvement, proposals.past_weight
            return (
                configurations,
                None if improvement is None or not spread else float(improvement) * spread,
                None if weight is None else float(weight),
            )

    @cached_property
    def _is_finite(self) -> bool:
        return bool(np.isfinite(self.space.size))

    def _hidden(self, study: EncodedTrials, rows: np.ndarray) -> np.ndarray:
        """Returns the points f64[n, P] of all trials with a value if the method gets only some of them; else none."""
        return study.points if len(study.points) > len(rows) else study.points[:0]

    def _trial_record(
        self, study: EncodedTrials, rows: np.ndarray, responses: np.ndarray, dtype: Dtype, *, is_coarse: bool
    ) -> TrialRecord:
        """Returns rows of the trials with a value, and the pending trials, as the search for candidates reads them.

        ``is_coarse`` pads the points to avoid so that few programs are compiled.
        """
        # With real numbers, hardly any of the best candidates has been evaluated. They are few, and are compared later.
        is_finite, hidden = self._is_finite, self._hidden(study, rows)
        avoid = np.vstack([study.failed_points, hidden]) if is_finite else study.failed_points
        slots = coarse_capacity_for(len(avoid)) if is_coarse else capacity_for(len(avoid))
        # Where all coordinates have few values, a neighbour is another configuration.
        radius = SAME if is_finite else self.config.failed_radius
        n_filled = len(rows) + len(study.pending_points)
        history = self._history(study.observations, rows, study.points, responses, n_filled, dtype)
        return trial_record(history, study.points[rows], study.pending_points, avoid, slots, radius)

    def _weights(self, study: EncodedTrials, responses: np.ndarray, budget_share: float, dtype: Dtype) -> Weights:
        """Returns the factors of the method's values by beliefs and costs."""
        costs = np.array([np.nan if trial.cost is None else trial.cost for trial in study.observations], np.float64)
        past_cost = self._past_cost if np.isfinite(costs).any() else None
        arrays = self.space.layout, study.points, costs, budget_share, self.config.max_history, dtype, past_cost
        return Weights(None, self._log_belief(study.points, responses, dtype), learn_cost(*arrays))

    def _proposed_configurations(
        self, proposals: Proposals, fixed_coordinates: np.ndarray, hidden: np.ndarray
    ) -> Iterable[Params]:
        """Yields the configurations of proposed points, without those at a point of ``hidden`` f64[n, P]."""
        points, values = np.asarray(proposals.points), np.asarray(proposals.values)
        proposed_points = (fix_coordinates(point, fixed_coordinates) for point in points[values > -np.inf])
        return (
            self.space.params(point)
            for point in proposed_points
            if self._is_finite or not len(hidden) or np.abs(hidden - point).max(axis=1).min() > SAME
        )

    def _history(
        self,
        observations: Sequence[Trial],
        rows: np.ndarray,
        points: np.ndarray,
        responses: np.ndarray,
        n_filled: int,
        dtype: Dtype,
        scale: PredictionScale | None = None,
    ) -> History:
        """Returns a history of some rows of the trials with a value, padded to a capacity.

        Responses are clipped, or on a scale.
        """
        capacity = max(capacity_for(n_filled), FIRST_CAPACITY)
        if n_filled <= self.config.max_history:
            capacity = min(capacity, self.config.max_history)
        # The value of a stopped trial is a posterior, whose error not every method can use.
        is_noise_known = capabilities_of(self._method).heteroscedastic
        states = ("complete", "stopped") if is_noise_known else ("complete",)
        history_trials = [observations[row] for row in rows]
        errors = np.array([(trial.stderr or 0.0) if trial.state in states else 0.0 for trial in history_trials])
        if errors.any():
            self.criterion.require_standard_errors()
        scaled = clip_responses(responses[rows]) if scale is None else scale.apply(responses[rows])
        errors = errors if scale is None else errors * scale.slope(responses[rows])
        return history_of(self._layout.columns(points[rows]), responses[rows], scaled, errors, capacity, dtype)

    @with_default_float_errors
    def predict(
        self, trials: Iterable[Trial], points: np.ndarray, shares: np.ndarray, *, noise: bool = False
    ) -> Prediction:
        """Predicts values of a single objective at points f64[n, P] of the unit cube, from the trials that have one.

        ``shares`` f64[Q] are those of the quantiles, and ``noise`` is whether predictions are of values of new trials.

        Raises `ConfigError` for several objectives, and a method that does not declare ``predicts_components``, or with
        noise ``predicts_noise``, and `DataError` for fewer than two different responses.
        """
        self.criterion.require_predictions(noise=noise)
        check_not_forked()
        observations = with_value(trials)
        with suggestion_runtime, precision_of(self._method) as dtype:
            fit = self._fit(observations, dtype)
            mixture = predict_mixture(self._method, self._layout, fit, points.astype(dtype), noise=noise)
        is_maximised = self.objectives[0].direction == "maximize"
        return mixture.prediction(fit.scaled.restore, shares, is_maximised=is_maximised)

    def _fit(self, observations: Sequence[Trial], dtype: Dtype) -> HistoryFit:
        """Returns the method fitted to trials on the scale of predictions; of the same trials again, the same fit."""
        if self._last_fit is not None and self._last_fit.trials == tuple(observations):
            return self._last_fit
        responses = self.criterion.rank_like_past(observations, self._responses(observations))
        rows = select_trials(responses, self.config.max_history)
        if len(np.unique(responses[rows])) < 2:
            raise DataError("predictions need trials with different values")
        points = np.array([self._encoder.encode(trial._params).point for trial in observations])
        scale = choose_scale(responses[rows], self._layout.columns(points[rows]), may_compress=self._past is None)
        history = self._history(observations, rows, points, responses, len(rows), dtype, scale)
        model = self._method, self._layout, self._candidates.pending_strategy, self._params, seed_key(self.seed)
        fit = fit_responses(*model, history, points[rows], responses[rows], scale, estimate_noise=self._past is None)
        self._last_fit = fit._replace(trials=tuple(observations))
        return self._last_fit

    @cached_property
    def _past_cost(self) -> CostModel | None:
        """Costs as learned from past studies; None without any."""
        if self._past is None or self._past.studies is None:
            return None
        with precision_of(self._method) as dtype:
            return learn_past_cost(self._layout, self._past.studies, dtype)

    def _log_belief(self, points: np.ndarray, responses: np.ndarray, dtype: Dtype) -> Any:
        """Returns the log weights f[P, K + 1] of likely values; None if no value is likely."""
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
        return self.criterion.candidates(self._layout, self.config.pending_strategy)

    @property
    def _method(self) -> Method:
        return self.criterion.method

    @cached_property
    def _params(self) -> Any:
        if self._past is None:
            return None
        with precision_of(self._method) as dtype:
            return jax.device_put(with_precision(self._past.params, dtype))

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state without arrays on devices and caches."""
        return {name: value for name, value in self.__dict__.items() if name not in _TRANSIENT_ATTRIBUTES}
