"""Ask and tell for many studies at once: one compiled call suggests a configuration for each."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.checks import check_counts, check_seed
from dre_jax.data.checks import show
from dre_jax.errors import ConfigError, DataError
from dre_jax.methods.registry import entry_of
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.search.acquisition import undefined_values
from dre_jax.search.execution import ExecutionConfig, mesh_of, put, run_blocks
from dre_jax.search.method import Method
from dre_jax.space.space import Params, Space
from dre_jax.suggest.pending import PendingStrategy
from dre_jax.suggest.precision import precision_of, supports_double, with_precision
from dre_jax.summaries import summary
from dre_jax.tuning.compiled.designs import StudyDesigns, program_config, program_engine, stack
from dre_jax.tuning.compiled.study import SharedArrays
from dre_jax.tuning.compiled.suggestions import StudySuggestion, suggest_points
from dre_jax.tuning.objectives.criterion import Surrogates
from dre_jax.tuning.objectives.single import DEFAULT_METHOD, method_without_past
from dre_jax.tuning.study.managed_study import ManagedStudy, SuggestionProgram
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.study.study_record import StudyRecord
from dre_jax.tuning.suggestion.space_filling import SEQUENCE
from dre_jax.tuning.suggestion.state import StudyState
from dre_jax.tuning.trials.objectives import (
    best_trials,
    direction_arguments,
    objective_values,
    objectives_of,
    value_or_mapping,
)
from dre_jax.tuning.trials.trial import Trial, checked_cost, constraint_values


class StudyTrial(NamedTuple):
    """A trial of one of many studies."""

    study: int
    number: int
    """Number of the trial in its study."""
    params: Params


class Optimizers:
    """Many studies of one space. Each suggests what an `Optimizer` of its seed does.

    Example:
      >>> from dre_jax.tuning import Float
      >>> studies = Optimizers({"x": Float(0.0, 1.0)}, 3, method="random")
      >>> trials = studies.ask()
      >>> studies.tell(trials, [trial.params["x"] ** 2 for trial in trials])
      >>> [trial.study for trial in trials], studies.best(0)[0] == trials[0].params["x"] ** 2
      ([0, 1, 2], True)
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        n: int = 0,
        *,
        surrogate: Surrogates = None,
        method: str | Method = DEFAULT_METHOD,
        direction: str = "minimize",
        directions: Mapping[str, str] | None = None,
        pending_strategy: PendingStrategy = "mean",
        failure_model: bool = True,
        budget: float | None = None,
        reference_point: Any = None,
        execution: ExecutionConfig | None = None,
    ) -> None:
        """Begins n studies, with the seeds 0, 1 and so on.

        Args:
          space: a search space, or its hyperparameters by name.
          n: number of studies; `begin` adds others.
          surrogate: knowledge of past tasks, in place of a method. With several objectives, a mapping of them to
            surrogates or None.
          method: without past tasks.
          direction: of the values, "minimize" or "maximize".
          directions: of several objectives, by name, in place of ``direction``.
          pending_strategy: as `EngineConfig.pending_strategy`.
          failure_model: as `EngineConfig.failure_model`. The model is compiled once a trial fails.
          budget: as `EngineConfig.budget`, of each study.
          reference_point: as `EngineConfig.reference_point`.
          execution: how devices are used.

        Raises:
          ConfigError: for an unknown direction, or a method that needs past tasks.
          DataError: for a surrogate of another space.
        """
        check_counts(0, n=n)
        self._method = method
        self._engine = program_engine(
            space,
            objectives_of(direction, directions),
            surrogate,
            method,
            pending_strategy=pending_strategy,
            failure_model=failure_model,
            budget=budget,
            reference_point=reference_point,
        )
        self.space, self.objectives = self._engine.space, self._engine.objectives
        self._config = program_config(self._engine)
        self._mesh = mesh_of(execution)
        self._studies: dict[int, ManagedStudy] = {}
        self._names = itertools.count()
        for seed in range(n):
            self.begin(seed)

    def __repr__(self) -> str:
        records, objectives = [study.record for study in self._studies.values()], self.objectives
        is_single = len(objectives) == 1
        best = best_trials([trial for record in records for trial in record.trials], objectives) if is_single else []
        methods = {name: fitted.name for name, fitted in self._engine.surrogates.items() if fitted is not None}
        return summary(
            self,
            hyperparameters=list(self.space),
            **direction_arguments(objectives),
            surrogate=(value_or_mapping(methods) if is_single else methods) if methods else None,
            n_studies=len(records),
            n_trials=sum(len(record.trials) for record in records),
            best=best[0].value if best else None,
        )

    @property
    def studies(self) -> list[int]:
        """The names of the studies that have begun and not ended."""
        return list(self._studies)

    def begin(self, seed: int) -> int:
        """Begins a study; returns its name, a number that no other study gets."""
        check_seed(seed)
        name = next(self._names)
        with precision_of(self._config.method):
            designs = jax.device_get(self._designs.studies([seed], range(1)))
        self._studies[name] = ManagedStudy(seed, _first(designs), StudyRecord(self._engine, None))
        return name

    @cached_property
    def _designs(self) -> StudyDesigns:
        dtype, past = np.float64 if supports_double(self._config.method) else np.float32, self._engine.past
        return StudyDesigns(self.space, None if past is None else past.start, self._config.candidates.even, dtype)

    def end(self, study: int) -> None:
        """Ends a study, whose trials are forgotten. Raises `DataError` for an unknown name."""
        self._study(study)
        del self._studies[study]

    def best(self, study: int) -> tuple[float, Params]:
        """Returns the best value of the feasible trials of a study, and its configuration.

        Raises `DataError` before there is one, and with several objectives.
        """
        record = self._study(study).record
        if not record.directions and not any(trial.state == "complete" for trial in record.trials):
            raise DataError(f"study {study} has no trial with a value yet")
        best = record.best
        return float(best.value or 0.0), best.params

    def front(self, study: int) -> tuple[Trial, ...]:
        """Returns the Pareto-optimal trials of a study, as `Optimizer.front`; raises `DataError` as `trials`."""
        return self._study(study).record.front

    def hypervolume(self, study: int) -> float:
        """Returns the hypervolume between a study's front and the reference point, as `Optimizer.hypervolume`.

        Raises `ConfigError` without a reference point, and `DataError` as `trials`.
        """
        return self._study(study).record.hypervolume

    def trials(self, study: int) -> tuple[Trial, ...]:
        """Returns all trials of a study, by their numbers. Raises `DataError` if there is no such study."""
        return self._study(study).record.trials

    def optimizer(self, study: int) -> Optimizer:
        """Returns an `Optimizer` with the trials of a study, which suggests what the study would.

        The study itself stays as it is. `Optimizer.save` writes it to a file, for `Optimizer.load`.

        Raises:
          DataError: if there is no such study.
          ConfigError: for a method with settings, as an `Optimizer` takes it by its name.

        Example:
          >>> from dre_jax.tuning import Float
          >>> studies = Optimizers({"x": Float(0.0, 1.0)}, 2, method="random")
          >>> studies.tell(studies.ask(), [0.5, float("nan")])
          >>> [trial.state for trial in studies.optimizer(1).trials], studies.optimizer(0).best.value
          (['failed'], 0.5)
        """
        surrogates, config = self._engine.surrogates, self._engine.config
        if None in surrogates.values():
            config = replace(config, method=self._method_name())
        directions = direction_arguments(self.objectives)
        seed, is_single = self._study(study).seed, len(self.objectives) == 1
        optimizer = Optimizer(self.space, value_or_mapping(surrogates), **directions, seed=seed, config=config)
        for trial in self.trials(study):
            optimizer.add_running(trial.params)
            if trial.state == "failed":
                optimizer.tell_failed(trial.number, cost=trial.cost)
            elif trial.state == "complete":
                value: Any = trial.value if is_single else trial.values
                optimizer.tell(trial.number, value, cost=trial.cost, constraints=trial.constraints)
        return optimizer

    def save(self, study: int, path: str | os.PathLike[str]) -> None:
        """Writes a study to a file that `Optimizer.load` reads; raises as `optimizer` and `Optimizer.save`."""
        self.optimizer(study).save(path)

    def _method_name(self) -> str:
        if isinstance(self._method, str):
            return self._method
        name = entry_of(self._method).name
        if method_without_past(name) != self._method:
            raise ConfigError(f"an Optimizer takes its method by name, but this {name} has settings")
        return name

    @with_default_float_errors
    def ask(self, studies: Iterable[int] | None = None) -> list[StudyTrial]:
        """Returns the next trial of each study, in one compiled call for those with histories of similar size.

        Args:
          studies: names, each once; by default all.

        Raises:
          DataError: for an unknown study.
          ConfigError: for a single number in place of names, and if the method's values of all candidates are NaN.
        """
        if studies is not None and not isinstance(studies, Iterable):
            raise ConfigError(f"ask needs a list of studies, but got {studies!r}: ask([{studies!r}]) asks one study")
        names = self.studies if studies is None else list(dict.fromkeys(studies))
        states: dict[int, StudyState] = {}
        groups: dict[SuggestionProgram, list[int]] = {}
        for name in names:
            program, states[name] = self._study(name).encode()
            groups.setdefault(program, []).append(name)
        points: dict[int, np.ndarray] = {}
        with suggestion_runtime:
            for program, group in groups.items():
                for block in run_blocks(self._mesh, group, [program], partial(self._suggest, states)):
                    points |= block
        trials = []
        for name in names:
            study = self._studies[name]
            trial = study.record.add_running(self.space.params(points[name]))
            study.points.append(self.space.point(trial.params))
            trials.append(StudyTrial(name, trial.number, trial.params))
        return trials

    @with_default_float_errors
    def tell(
        self,
        trials: Sequence[StudyTrial],
        values: Sequence[Any],
        *,
        constraints: Sequence[Mapping[str, float | None]] | None = None,
        costs: Sequence[float | None] | None = None,
    ) -> None:
        """Records values of trials, in any order and at any time.

        Args:
          trials: trials that `ask` returned. Trials of studies that have ended do not count.
          values: the value of each trial, as `Optimizer.tell` takes it; NaN if it failed, None if it still runs.
          constraints: of each trial, as `Optimizer.tell` takes them; None without constraints.
          costs: of each trial, as `Optimizer.tell` takes it, also of those that failed; None without costs.

        Raises:
          DataError: for numbers of trials, values, constraints and costs that differ, a trial that has a value already,
            and as `Optimizer.tell`. All trials then stay as they are.
        """
        n = len(trials)
        constraints = [{}] * n if constraints is None else constraints
        costs = [None] * n if costs is None else costs
        for entry, entries in (("value or None", values), ("mapping of constraints", constraints), ("cost", costs)):
            if not isinstance(entries, Iterable) or len(entries) != n:
                raise DataError(f"each trial needs a {entry}, but got {n} trials and {show(entries)}")
        outcomes = zip(trials, values, constraints, costs, strict=True)
        ended = [outcome for outcome in outcomes if outcome[1] is not None and outcome[0].study in self._studies]
        for trial, value, constraint, cost in ended:
            record = self._studies[trial.study].record
            objective_values(value, self.objectives)
            constraint_values(constraint, record.trials)
            if cost is not None:
                checked_cost(cost)
            if record.trials[trial.number].state != "running":
                raise DataError(f"trial {trial.number} of study {trial.study} must be running, but is not")
        for trial, value, constraint, cost in ended:
            self._studies[trial.study].record.tell(trial.number, value, constraints=constraint, cost=cost)

    def _study(self, name: int) -> ManagedStudy:
        try:
            return self._studies[name]
        except KeyError:
            raise DataError(f"there must be a study {name!r}, but there are {len(self._studies)} others") from None

    def _continue_sequence(self, study: ManagedStudy) -> None:
        """Gives a study the block of the sequence that its next trial is in."""
        block = study.number // SEQUENCE
        if block != study.block:
            sequence = self._designs.sequence(study.seed, [block])
            study.design, study.block = study.design._replace(sequence=sequence), block

    def _suggest(
        self,
        states: Mapping[int, StudyState],
        names: Sequence[int],
        size: int,
        programs: Sequence[SuggestionProgram],
        count: int,
    ) -> dict[int, np.ndarray]:
        """Returns the next points of studies with arrays of trials by a program, for `run_blocks`."""
        (program,) = programs
        config = replace(self._config, failure_model=self._config.failure_model and program.has_failures)
        for name in names:
            self._continue_sequence(self._studies[name])
        padded_names = (*names, *[names[-1]] * (size - len(names)))
        padded = [self._studies[name] for name in padded_names]
        with precision_of(config.method) as dtype:
            suggestions = StudySuggestion(
                stack([states[name] for name in padded_names]),
                jax.tree.map(lambda *leaves: jnp.stack(leaves), *[study.design for study in padded]),
                stack([_first(self._designs.candidates(study.seed, [study.number])) for study in padded]),
                jnp.asarray([study.number for study in padded], jnp.int32),
            )
            past = self._engine.past
            params = None if past is None else with_precision(past.params, dtype)
            past_cost = self._engine.past_cost if program.has_costs else None
            arrays = SharedArrays(params, self._designs.log_densities, past_cost), np.int32(count)
            (shared, bound), studies = put(self._mesh, arrays, suggestions)
            results = suggest_points(config, self._mesh, shared, studies, bound)
            points, is_undefined = jax.device_get((results.point, results.is_undefined))
        if is_undefined[: len(names)].any():
            raise undefined_values(config.method)
        return dict(zip(names, np.asarray(points, np.float64), strict=False))


def _first(tree: Any) -> Any:
    return jax.tree.map(lambda a: a[0], tree)
