"""`DRESampler`: this library's suggestions in an Optuna study."""

import contextlib
import math
import secrets
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.logging import get_logger
from optuna.samplers import BaseSampler, RandomSampler
from optuna.samplers._base import _INDEPENDENT_SAMPLING_WARNING_TEMPLATE, _process_constraints_after_trial
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_jax.checks import check_seed
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.completion import complete_part
from dre_jax.space.space import Params, Space
from dre_jax.summaries import summary
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.optuna.branches import learn_translation
from dre_jax.tuning.optuna.distributions import Translation, can_hold, translation_of
from dre_jax.tuning.optuna.trials import (
    IMPROVEMENT,
    TrialReader,
    latest_distributions,
    read_trials,
    share_suggestion,
    values_of,
)
from dre_jax.tuning.surrogates.by_objective import surrogates_for_task
from dre_jax.tuning.surrogates.sources import PastCheck
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import Objective
from dre_jax.tuning.trials.trial import VALUE, Trial

_logger = get_logger(__name__)
PAST_WEIGHT = "dre:past_weight"
"""User attribute of a trial: the weight of the past when it was suggested, for methods that weigh past tasks."""
_TRIES = 16
"""Maximum number of suggestions while other workers make the same one."""


class DRESampler(BaseSampler):
    """Sampler for Optuna studies with one objective or several.

    The sampler keeps no state outside of the study: samplers in any number of threads, processes and machines give
    different suggestions, whatever their seeds, and a pickled sampler continues unchanged. Running trials are pending,
    and pruned trials rank below the others (`dre_jax.tuning.optuna.trials`). The sampler learns from failed trials and
    constraints where trials succeed and are feasible (`dre_jax.tuning.suggestion.feasibility`). With several
    objectives, it maximises the expected hypervolume improvement (`dre_jax.tuning.objectives`). `report_cost` and
    `report_stderr` tell it what a trial cost, and how far off its value may be; `StopWhenGainBelow` ends a study.

    Example:
      >>> import optuna
      >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
      >>> study = optuna.create_study(sampler=DRESampler(seed=0))
      >>> study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=4)
      >>> len(study.trials)
      4
    """

    def __init__(
        self,
        search_space: Space | Mapping[str, BaseDistribution] | Surrogate | None = None,
        surrogate: Surrogate | Sequence[Surrogate | None] | None = None,
        *,
        seed: int | None = None,
        config: EngineConfig | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> None:
        """Creates a sampler.

        Args:
          search_space: the space to search from the first trial on; by default the surrogate's. Both are searched
            within the bounds of the latest trial. Without a surrogate, the default is learned from the trials: the
            hyperparameters of all complete trials, and those of branches, if values of others explain which trials have
            them. The first trials are then drawn at random. A surrogate may be passed as this argument.
          surrogate: knowledge of past tasks, of the study's direction; without one, the best method without transfer is
            used. With several objectives, a sequence of surrogates or None in their order.
          seed: the seed of all suggestions; None for a random one.
          config: treatment of pending and failed trials.
          independent_sampler: draws what is not in the search space; by default Optuna's `RandomSampler`, seeded by the
            trial.
          warn_independent_sampling: whether a warning tells, once for each hyperparameter, that the independent sampler
            draws it although trials are complete.
          constraints_func: returns the constraints of a finished trial, at most 0 where they are satisfied, as in
            Optuna's samplers. `trial.set_constraint` in the objective does the same.
          features: features of the task, as of `dre_jax.tuning.Optimizer`.

        Raises:
          ConfigError: for a seed that is not a whole number in [0, 2**32), or an argument that is not a surrogate or a
            search space.
          DataError: for a surrogate of another space; the message names what differs. For features as
            `dre_jax.tuning.Optimizer`.

        Warns:
          DataWarning: for features as `dre_jax.tuning.Optimizer`.
        """
        if isinstance(search_space, Surrogate):
            if surrogate is not None:
                raise ConfigError("a sampler has one surrogate, but got search_space= and surrogate=")
            search_space, surrogate = None, search_space
        surrogates = tuple(surrogate) if isinstance(surrogate, (list, tuple)) else (surrogate,)
        if not surrogates or not all(fitted is None or isinstance(fitted, Surrogate) for fitted in surrogates):
            rule = "surrogate must be a Surrogate or None, or a sequence of them for several objectives"
            raise ConfigError(f"{rule}, but got {surrogate!r}")
        if seed is not None:
            check_seed(seed)
        self._seed = secrets.randbits(32) if seed is None else int(seed)
        by_objective = {str(i): fitted for i, fitted in enumerate(surrogates)}
        by_objective, self.features = surrogates_for_task(by_objective, features)
        self._surrogates = surrogates = tuple(by_objective.values())
        self._config = config
        self._independent = independent_sampler
        self._warns = warn_independent_sampling
        self._warned_names: set[str] = set()
        self._past_checks: dict[str, PastCheck] = {}  # by study
        self._constraints_func = constraints_func
        spaces = (fitted.space for fitted in surrogates if fitted is not None)
        space = search_space if search_space is not None else next(spaces, None)
        self._search_space = None if space is None else translation_of(space)
        self._engine: Engine | None = None
        self._reader: TrialReader | None = None
        if self._search_space is not None:
            point = getattr(config, "reference_point", None)
            n_objectives = len(surrogates) if point is None else len(point)
            fitted_surrogates = self._surrogates_for(n_objectives)
            directions = [fitted.direction if fitted is not None else None for fitted in fitted_surrogates]
            self._engine_for(self._search_space.space, [direction or "minimize" for direction in directions])

    def __repr__(self) -> str:
        names = None if self._search_space is None else list(self._search_space.space)
        surrogates = [None if surrogate is None else surrogate.name for surrogate in self._surrogates]
        fields: dict[str, Any] = {"surrogates": surrogates if any(surrogates) else None, "seed": self._seed}
        return summary(self, search_space=names, **fields, features=self.features or None)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The distributions that are searched together: those with more than one value.

        Raises:
          ConfigError: for a study of another number of objectives than surrogates.
          DataError: for a study of another direction than the surrogate's.
        """
        surrogates = self._surrogates_for(len(study.directions))
        for surrogate, direction in zip(surrogates, study.directions, strict=True):
            if surrogate is not None:
                surrogate.require_direction(direction.name.lower())
        trials = study.get_trials(deepcopy=False)
        latest = latest_distributions(trials)
        if self._search_space is None:
            candidates = {name: d for name, d in latest.items() if not d.single() and can_hold(name, d)}
            learned_translation = learn_translation(trials, candidates)
            return {} if learned_translation is None else dict(learned_translation.distributions)
        # A dictionary of its own every time: `PartialFixedSampler` deletes names from it.
        translation = self._search_space.restrict(latest)
        return {name: translation.distributions[name] for name in translation.names()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Values for a trial.

        Warns:
          DataWarning: if the past studies of the surrogate mislead, as `dre_jax.tuning.Optimizer.ask`.
        """
        reader = self._reader_for(study, search_space) if search_space else None
        if reader is None:
            return {}
        translation = reader.translation
        engine = self._engine_for(translation.space, [direction.name.lower() for direction in study.directions])
        fixed_params = _fixed_values(trial, _other_trials(study, trial), translation, search_space)
        trials = self._read(study, trial, reader, engine)
        check = self._past_checks.setdefault(study.study_name, PastCheck())
        check.warn_if_misleading(trials, engine.objectives, engine.surrogates)
        for _ in range(_TRIES):
            suggestion = engine.propose(trials, number=trial.number, fixed=fixed_params)
            values = translation.to_optuna_values(suggestion.params)
            share_suggestion(study, trial, values, translation)
            # Write first, read then: of two workers with the same suggestion, at least one sees the other.
            written_params, before = translation.read_params(values), trials
            trials = self._read(study, trial, reader, engine)
            is_old, is_shared = (
                any(other._params == written_params for other in trials_read) for trials_read in (before, trials)
            )
            if is_old or not is_shared:
                break
        if suggestion.improvement is not None and math.isfinite(suggestion.improvement):
            study._storage.set_trial_system_attr(trial._trial_id, IMPROVEMENT, suggestion.improvement)
        if suggestion.past_weight is not None:
            study._storage.set_trial_user_attr(trial._trial_id, PAST_WEIGHT, suggestion.past_weight)
        return {name: value for name, value in values.items() if name in search_space}

    def _read(self, study: Study, trial: FrozenTrial, reader: TrialReader, engine: Engine) -> list[Trial]:
        """Returns the other trials of a study, as suggestions read them."""
        return read_trials(_other_trials(study, trial), reader, engine.objectives)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A value for a hyperparameter searched on its own."""
        self._warn_independent_sampling(study, trial, param_name)
        sampler = self._independent
        if sampler is None:  # by trial and name, so that workers of one seed do not draw the same
            entropy = [self._seed, trial.number, zlib.crc32(param_name.encode())]
            sampler = RandomSampler(seed=int(np.random.SeedSequence(entropy).generate_state(1)[0]))
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def reseed_rng(self) -> None:
        """Reseeds the independent sampler.

        Suggestions need no new seed to differ: they are drawn by the trial's number.
        """
        if self._independent is not None:
            self._independent.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Passes the call on to the independent sampler."""
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Stores the constraints, and passes the call on to the independent sampler."""
        if self._constraints_func is not None:
            _process_constraints_after_trial(self._constraints_func, study, trial, state)
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)

    def require_improvement(self, n_objectives: int = 1) -> None:
        """Raises `ConfigError` if suggestions have no expected improvement, which `StopWhenGainBelow` needs."""
        if n_objectives > 1:
            raise ConfigError("an expected gain needs a study of one objective")
        if self._engine is not None:  # a space that is learned from trials comes later
            self._engine.criterion.require_improvement()

    def require_standard_errors(self) -> None:
        """Raises `ConfigError` if suggestions take no standard errors; see `report_stderr`."""
        if self._engine is not None:
            self._engine.criterion.require_standard_errors()

    def _warn_independent_sampling(self, study: Study, trial: FrozenTrial, name: str) -> None:
        """Logs a warning, as Optuna's samplers do, but once for each hyperparameter."""
        if not self._warns or name in self._warned_names:
            return
        if self._search_space is not None and name in self._search_space.distributions:
            reason = "the search space has it inactive, or out of its range in this trial"
        elif self._search_space is not None:
            reason = "it is not in the search space"
        elif any(_ended_before(other, trial) and name in other.params for other in study.get_trials(deepcopy=False)):
            reason = "no condition explains which trials have it, its range has changed, or `Space` cannot hold it"
        else:
            return  # the first trials, or the first of a branch
        self._warned_names.add(name)
        sampler = type(self._independent) if self._independent is not None else RandomSampler
        message = _INDEPENDENT_SAMPLING_WARNING_TEMPLATE.format(
            param_name=name,
            trial_number=trial.number,
            independent_sampler_name=sampler.__name__,
            sampler_name=type(self).__name__,
            fallback_reason=reason,
        )
        _logger.warning(message)

    def _reader_for(self, study: Study, search_space: Mapping[str, BaseDistribution]) -> TrialReader | None:
        """Returns a reader of trials in the search space, or in the whole space if it contains the search space.

        None if the trials of other workers have left nothing of a search space that is learned from them.
        """
        if self._search_space is not None and search_space.keys() <= self._search_space.distributions.keys():
            translation = self._search_space.restrict(search_space)
        else:
            learned_translation = learn_translation(study.get_trials(deepcopy=False), search_space)
            if learned_translation is None:
                return None
            translation = learned_translation
        reader = self._reader
        if reader is None or reader.storage is not study._storage or reader.translation != translation:
            self._reader = reader = TrialReader(translation, study._storage)
        return reader

    def _surrogates_for(self, n_objectives: int) -> tuple[Surrogate | None, ...]:
        if self._surrogates == (None,):
            return self._surrogates * n_objectives
        if len(self._surrogates) != n_objectives:
            rule = f"a study of {n_objectives} objectives needs as many surrogates, in a list that may have None"
            raise ConfigError(f"{rule}, but the sampler has {len(self._surrogates)}")
        return self._surrogates

    def _engine_for(self, space: Space, directions: Sequence[str]) -> Engine:
        """Returns the engine of a space; the last engine is cached with its arrays on the device."""
        engine = self._engine
        names = list(map(str, range(len(directions)))) if len(directions) > 1 else [VALUE]
        objectives = tuple(map(Objective, names, directions))
        if engine is None or engine.space != space or engine.objectives != objectives:
            surrogates = dict(zip(names, self._surrogates_for(len(directions)), strict=True))
            self._engine = engine = Engine(space, objectives, surrogates, seed=self._seed, config=self._config)
        return engine

    def __getstate__(self) -> dict[str, Any]:
        """Returns the state without what is read from the study again."""
        return self.__dict__ | {"_reader": None}


def _ended_before(other: FrozenTrial, trial: FrozenTrial) -> bool:
    """Returns whether a trial was complete when another one started: it then determines the other's search space."""
    end, start = other.datetime_complete, trial.datetime_start
    return other.state == TrialState.COMPLETE and (end is None or start is None or end < start)


def _other_trials(study: Study, trial: FrozenTrial) -> list[FrozenTrial]:
    return [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]


def _fixed_values(
    trial: FrozenTrial, other_trials: Sequence[FrozenTrial], translation: Translation, search_space: Mapping[str, Any]
) -> Params:
    """Returns the values that are not searched: enqueued ones, and those that another sampler fixes.

    The latter may arrive too late; then those of the previous trial are assumed. Hyperparameters on which the enqueued
    values depend get a value for which these are active, unless the other sampler fixes them.
    """
    enqueued_params = _readable_values(values_of(trial, translation), translation)
    previous = next((other for other in reversed(other_trials) if other.params), trial).params
    fixed_values = {name: value for name, value in previous.items() if name not in search_space}
    with contextlib.suppress(DataError):  # values that no configuration has together
        completed_params = complete_part(translation.space, enqueued_params)
        return completed_params | _readable_values(fixed_values, translation) | enqueued_params
    return _readable_values(fixed_values, translation) | enqueued_params


def _readable_values(values: Mapping[str, Any], translation: Translation) -> Params:
    """Returns Optuna's values that the space has, and drops the others."""
    params: Params = {}
    for name in translation.names():
        if name in values:
            with contextlib.suppress(DataError):
                value = translation.from_optuna_value(name, values[name])
                translation.space.coordinate(name, value)
                params[name] = value
    return params
