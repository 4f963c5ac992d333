"""Suggestions from the trials so far, for ask and tell, Optuna and scikit-learn.

An engine has no state: the same trials, seed and number give the same suggestion in every process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from dre_jax.errors import DataError
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.runtime.forks import check_not_forked
from dre_jax.runtime.jit import compile_ahead, seed_key
from dre_jax.runtime.reports import say_reports
from dre_jax.search.acquisition import undefined_values
from dre_jax.search.method import Method, capabilities_of
from dre_jax.space.space import Params, Space
from dre_jax.space.widening import widened_space
from dre_jax.suggest.candidates import CandidateConfig
from dre_jax.suggest.pending import check_pending_strategy
from dre_jax.suggest.precision import Dtype, supports_double, with_precision
from dre_jax.suggest.proposals import Proposals, SuggestionInputs
from dre_jax.suggest.weighting import Weights
from dre_jax.tuning.engine.engine_config import EngineConfig, checked_config
from dre_jax.tuning.engine.initial_design import InitialDesign
from dre_jax.tuning.engine.prediction_scale import choose_scale
from dre_jax.tuning.engine.predictions import HistoryFit, Prediction, fit_responses, predict_mixture
from dre_jax.tuning.engine.study_arrays import encode_study, total_cost
from dre_jax.tuning.objectives.criterion import Surrogates, criterion_of, search_space, surrogates_by_objective
from dre_jax.tuning.suggestion.beliefs import belief_weights, log_densities
from dre_jax.tuning.suggestion.cost import CostModel, cost_record, fit_cost, learn_past_cost
from dre_jax.tuning.suggestion.feasibility import propose_feasible
from dre_jax.tuning.suggestion.outcomes import outcomes_of
from dre_jax.tuning.suggestion.ranking import method_params, rank_trials
from dre_jax.tuning.suggestion.record import StudyRecord, known_columns, record_capacity, study_history
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState, state_capacity
from dre_jax.tuning.suggestion.suggest import PointSuggestion, suggest_point
from dre_jax.tuning.trials.encoding import EncodedTrials, ParamsEncoder, encode_trials, with_value
from dre_jax.tuning.trials.objectives import Objectives, find_objective, objectives_of, values_of
from dre_jax.tuning.trials.replicates import measurement_errors
from dre_jax.tuning.trials.responses import rank_infeasible_last, violation_of
from dre_jax.tuning.trials.selection import select_trials
from dre_jax.tuning.trials.trial import Trial

_N_PROPOSALS = 64
"""Points that the method proposes."""
_TRANSIENT_ATTRIBUTES = ("_last_fit", "_params", "_dtype", "_encoder", "_log_densities", "past_cost", "_engines")

Origin = Literal["given", "initial", "space-filling", "method"]
"""What decides on a configuration: the caller; the defaults, the start design of the surrogate and the Sobol points
that precede the method; the sequence that fills the space while the trials say nothing; or the method."""


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
    origin: Origin = "method"
    """What decided on the configuration."""


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
        method: Method | None = None,
        wider: Space | None = None,
    ) -> None:
        """Creates an engine, by default of one objective to minimise, without past tasks.

        A method without past tasks may take the place of the one that the settings name. It reads the trials in a space
        that is ``wider`` than that of the search; with past tasks, in the space of these.

        Raises `ConfigError` and `DataError` as `dre_jax.tuning.Optimizer`.
        """
        self.objectives = objectives = objectives_of() if objectives is None else objectives
        self.surrogates = surrogates_by_objective(surrogates, objectives)
        self.space = search_space(space, self.surrogates)
        self.seed = seed
        self.config = checked_config(config)
        self._own_method = method
        alone = self.config.method if method is None else method
        strategy, reference = self.config.pending_strategy, self.config.reference_point
        self.criterion = criterion_of(objectives, self.surrogates, alone, strategy, reference)
        self.past = self.criterion.past
        self.n_start = self.criterion.n_start(len(self.space))
        """Number of trials that precede those of the method, without a surrogate."""
        self._wider = self.space if wider is None else wider
        if self.past is not None:
            self.past.space.require_encodes(self.space)
            self._wider = self.past.space
        if self.config.pending_strategy in ("believer", "draw"):
            check_pending_strategy(self._method, self.config.pending_strategy)

    def of_objective(self, name: str) -> Engine:
        """Returns an engine of one of several objectives, the same at each call; itself if there is one."""
        if len(self.objectives) == 1:
            return self
        if name not in self._engines:
            objective, config = find_objective(self.objectives, name), replace(self.config, reference_point=None)
            surrogate = self.surrogates[name]
            self._engines[name] = Engine(self.space, (objective,), surrogate, seed=self.seed, config=config)
        return self._engines[name]

    def that_reads(self, trials: Iterable[Trial]) -> Engine:
        """Returns an engine that reads trials outside of the space too, the same at each call; itself without any."""
        outside = [trial._params for trial in trials if not trial.in_space]
        if not outside or self.past is not None:
            return self
        wider = widened_space(self.space, outside)
        if wider == self._wider:
            return self
        if wider not in self._engines:
            options: dict[str, Any] = {"seed": self.seed, "config": self.config, "method": self._own_method}
            self._engines[wider] = Engine(self.space, self.objectives, wider=wider, **options)
        return self._engines[wider]

    def unread_trials(self, trials: Iterable[Trial]) -> list[Trial]:
        """Returns the trials outside of the space that suggestions cannot use."""
        trials = list(trials)
        encoder = self.that_reads(trials)._encoder
        return [trial for trial in trials if not trial.in_space and encoder.encode_trial(trial) is None]

    @cached_property
    def _engines(self) -> dict[str | Space, Engine]:
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
        is_context: bool = False,
        has_further: bool = False,
        spent: float | None = None,
    ) -> Suggestion:
        """Returns the configuration to evaluate next, and the method's values for it.

        From failed trials and constraints, the engine learns where trials succeed and are feasible; see
        `dre_jax.tuning.suggestion.feasibility`. Another number of the trial gives another suggestion. ``pending`` are
        configurations that will be evaluated, beside those of running trials, and ``fixed`` values of hyperparameters
        that are not searched in this trial; if they are its context, it is to improve on the trials that have them too.
        With ``has_further``, the suggestion has the other configurations that the method values, unless it values them
        by a single draw. Configurations are encoded once, so a mapping must not change between calls.

        Raises `DataError` for configurations of another space, or NaN, and `ConfigError` if the method's values of all
        candidates are NaN.
        """
        check_not_forked()
        engine = self.that_reads(trials)
        if engine is not self:
            options: dict[str, Any] = {"number": number, "pending": pending, "fixed": fixed, "is_context": is_context}
            return engine.propose(trials, has_further=has_further, spent=spent, **options)
        study = encode_trials(self._encoder, trials, pending)
        coordinates = self.space.coordinates(fixed or {})
        start = None if self.past is None else self.past.start
        design = InitialDesign(self.space, start, self.seed, self._log_densities, self.n_start, number, coordinates)
        initial = self._first_new(design.initial_configurations(len(study.identities)), study)
        if initial is not None:
            return Suggestion(initial, origin="initial")
        errors = self._standard_errors(study.observations)
        spent = total_cost(trials) if spent is None else spent
        context = fixed if is_context else None
        state = encode_study(study, self.objectives, self.config, errors, spent, context)
        state = rank_trials(self.study_config, state)
        fixed_coordinates = None if np.isnan(coordinates).all() else coordinates
        with suggestion_runtime, jax.enable_x64(self._dtype is np.float64):
            suggestion = suggest_point(
                self.study_config,
                state,
                np.int32(number % 2**31),
                record_capacity(state, self.config.max_history),
                propose=lambda record: self._propose(state, record, design),
                filling_points=design.filling_points,
                is_exact=self._is_exact if len(self.space.rules) > 1 else None,
                fixed=fixed_coordinates,
            )
        return self._decode(suggestion, has_further)

    def _first_new(self, configurations: Iterable[Params], study: EncodedTrials) -> Params | None:
        """Returns the first configuration that the study has not had, or None."""
        has_had = study.identities
        return next((params for params in configurations if self._encoder.encode(params).identity not in has_had), None)

    def _standard_errors(self, observations: Sequence[Trial]) -> np.ndarray:
        """Returns the standard errors f64[n, M] of trials, 0 where none is known or the method uses none."""
        if self._reads_errors:
            by_objective: list[Sequence[Trial]] = [observations]
            if len(self.objectives) > 1:
                by_objective = [[trial.with_objective(name) for trial in observations] for name, _ in self.objectives]
            return np.stack([measurement_errors(trials) for trials in by_objective], axis=1)
        # The value of a stopped trial is a posterior, whose error not every method can use.
        if any(trial.stderr for trial in observations if trial.state == "complete" and not trial.measurements):
            self.criterion.require_standard_errors()
        return np.zeros((len(observations), len(self.objectives)))

    def _propose(self, state: StudyState, record: StudyRecord, design: InitialDesign) -> Proposals:
        """Returns what the method proposes, in arrays of NumPy, with the improvement in units of the responses."""
        config, layout, n, densities = self.study_config, self.space.layout, int(state.n), self._log_densities
        params = method_params(config, state, record, self._params)
        past_cost = costs = None
        if state.costs is not None:
            past_cost = self.past_cost
            costs = cost_record(config, state, n, has_past=past_cost is not None)
        outcomes, params, costs, trial_record, candidates, belief, fixed = jax.device_put(
            (
                outcomes_of(config, state, int(state.n + state.n_pending + state.n_failed)),
                params,
                costs if costs is not None and costs.applies else None,
                record.trials,
                design.candidate_points(self._candidates.even),
                None if densities is None else belief_weights(densities, layout, state, self.config.belief_weight),
                None if np.isnan(design.fixed_coordinates).all() else design.fixed_coordinates,
            )
        )
        number = jax.device_put(np.int32(design.number % 2**31))
        weights = Weights(None, belief, None if costs is None else fit_cost(config, costs, past_cost))
        inputs = SuggestionInputs(params, trial_record, candidates, seed_key(self.seed), number, fixed, weights)
        search = partial(propose_feasible, config, n=_N_PROPOSALS)
        compile_ahead(search, outcomes, inputs)
        proposals = jax.device_get(search(outcomes, inputs))
        if proposals.is_undefined:
            raise undefined_values(self._method)
        has_improvement = proposals.improvement is not None and record.spread > 0.0
        improvement: Any = float(record.spread) * proposals.improvement if has_improvement else None
        return proposals._replace(points=proposals.points.astype(np.float64), improvement=improvement)

    def _is_exact(self, point: np.ndarray) -> bool:
        """Returns whether the rules allow the configuration at a point f[P].

        `Space.params` meets one rule after the other to the last digit, so that another rule may be broken.
        """
        return self.space.allows(self.space.params(point))

    def _decode(self, suggestion: PointSuggestion, has_further: bool) -> Suggestion:
        """Returns the configuration at the point that was chosen, and what the method says of it."""
        proposals, information = suggestion.proposals, suggestion.information
        improvement, past_weight, further = None, None, tuple[Params, ...]()
        origin: Origin = "space-filling"
        if proposals is not None:
            is_new = proposals.values > -np.inf
            origin = "method" if is_new.any() and not suggestion.fills_space else origin
            improvement = _number(proposals.improvement) if suggestion.fills_space or is_new.any() else 0.0
            past_weight = _number(proposals.past_weight)
            is_drawn = self.config.pending_strategy == "draw"  # the values are those of a model drawn for one trial
            if has_further and not suggestion.fills_space and not is_drawn:
                further = tuple(filter(self.space.allows, map(self.space.params, proposals.points[is_new][1:])))
        if (information.is_plateau and information.is_long) or not suggestion.is_new:
            improvement = 0.0
        return Suggestion(self.space.params(suggestion.point), improvement, past_weight, further, origin)

    @cached_property
    def _log_densities(self) -> np.ndarray | None:
        return log_densities(self.space) if self.config.belief_weight else None

    @with_default_float_errors
    def predict(
        self, trials: Iterable[Trial], points: np.ndarray, shares: np.ndarray, *, noise: bool = False
    ) -> Prediction:
        """Predicts values of a single objective at points f64[n, P] of the unit cube, from the trials that have one.

        ``shares`` f64[Q] are those of the quantiles, and ``noise`` is whether predictions are of values of new trials.

        Raises `ConfigError` for several objectives and for a method that is no `PosteriorMethod`, and `DataError` for
        fewer than two different responses.
        """
        method = self.criterion.require_predictions()
        check_not_forked()
        observations = with_value(trials)
        engine = self.that_reads(observations)
        if engine is not self:
            return engine.predict(observations, points, shares, noise=noise)
        with suggestion_runtime, jax.enable_x64(self._dtype is np.float64):
            fit = self._fit(observations)
            mixture = predict_mixture(method, self._layout, fit, points.astype(self._dtype), noise=noise)
        is_maximised = self.objectives[0].direction == "maximize"
        return mixture.prediction(fit.scaled.restore, shares, is_maximised=is_maximised)

    def _fit(self, observations: Sequence[Trial]) -> HistoryFit:
        """Returns the method fitted to trials on the scale of predictions; of the same trials again, the same fit."""
        trials = tuple(observations)
        if self._last_fit is not None and self._last_fit.trials == trials:
            return self._last_fit
        encoded = encode_trials(self._encoder, observations, ())
        observations, outside = encoded.observations, encoded.outside
        responses = values_of(observations, self.objectives)[:, 0]
        if all(self.criterion.ranks_infeasible):
            violations = np.array([violation_of(trial) for trial in observations], np.float64)
            responses = rank_infeasible_last(responses, violations)
        rows = select_trials(responses, self.config.max_history)
        if len(np.unique(responses[rows])) < 2:
            raise DataError("predictions need trials with different values")
        points, outside = encoded.points[rows], None if outside is None else outside[rows]
        responses, errors = responses[rows], self._standard_errors([observations[row] for row in rows])[:, 0]
        columns = known_columns(self._layout, points, outside)
        scale = choose_scale(responses, columns, may_compress=self.past is None)
        capacity = state_capacity(len(rows), self.config.max_history)
        empty, where = capacity - len(rows), np.arange(capacity) < len(rows)
        points, columns = (np.pad(array, ((0, empty), (0, 0))) for array in (points, columns))
        numbers = responses, scale.apply(responses), errors * scale.slope(responses)
        levels, scaled, scaled_errors = (np.pad(array, (0, empty)) for array in numbers)
        known_errors = scaled_errors if errors.any() else None
        history = study_history(columns, levels, scaled, known_errors, where)
        in_space = np.ones(len(rows), bool) if outside is None else np.isnan(outside[:, 0])
        model = self._method, self._layout, self._candidates.pending_strategy, self._params, seed_key(self.seed)
        fit = fit_responses(*model, history, points, responses, scale, in_space, estimate_noise=self.past is None)
        self._last_fit = fit._replace(trials=trials)
        return self._last_fit

    @cached_property
    def past_cost(self) -> CostModel | None:
        """Costs as learned from past studies; None without any."""
        if self.past is None or self.past.studies is None:
            return None
        with jax.enable_x64(self._dtype is np.float64):
            return learn_past_cost(self._layout, self.past.studies, self._dtype)

    @cached_property
    def study_config(self) -> StudyConfig:
        """What does not change during a study."""
        config = self.config
        return StudyConfig(
            self._method,
            self.space.layout,
            self._layout,
            self._candidates,
            has_past=self.past is not None,
            n_start=self.n_start if self.past is None else 0,
            values_first_trial=self.criterion.values_first_trial,
            max_history=config.max_history,
            failed_radius=config.failed_radius,
            failure_model=config.failure_model,
            belief_weight=config.belief_weight,
            budget=config.budget,
            reference=self.criterion.reference,
            ranks_infeasible=self.criterion.ranks_infeasible,
            reports=True,
        )

    @cached_property
    def _encoder(self) -> ParamsEncoder:
        return ParamsEncoder(self.space, self._wider)

    @cached_property
    def _layout(self) -> Any:
        return self.space.layout if self._wider is self.space else self.space.layout_in(self._wider)

    @cached_property
    def _candidates(self) -> CandidateConfig:
        return self.criterion.candidates(self._layout, self.config.pending_strategy)

    @cached_property
    def _method(self) -> Method:
        return self.criterion.method

    @cached_property
    def _dtype(self) -> Dtype:
        return np.float64 if supports_double(self._method) else np.float32

    @cached_property
    def _reads_errors(self) -> bool:
        return capabilities_of(self._method).heteroscedastic

    @cached_property
    def _params(self) -> Any:
        if self.past is None:
            return None
        with jax.enable_x64(self._dtype is np.float64):
            return jax.device_put(with_precision(self.past.params, self._dtype))

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state without arrays on devices and caches."""
        return {name: value for name, value in self.__dict__.items() if name not in _TRANSIENT_ATTRIBUTES}


def _number(scalar: Any | None) -> float | None:
    return None if scalar is None else float(scalar)
