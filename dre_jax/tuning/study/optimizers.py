"""Ask and tell for many studies at once: one compiled call suggests a configuration for each."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.checks import check_counts, check_seed, one_of
from dre_jax.data.checks import show
from dre_jax.errors import ConfigError, DataError
from dre_jax.methods.registry import entry_of
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.search.acquisition import undefined_values
from dre_jax.search.batch import ExecutionConfig
from dre_jax.search.method import Method
from dre_jax.space.space import Params, Space
from dre_jax.suggest.pending import PendingStrategy
from dre_jax.suggest.precision import precision_of, supports_double, with_precision
from dre_jax.summaries import summary
from dre_jax.tuning.compiled.designs import StudyDesigns, history_capacity, stack, study_config
from dre_jax.tuning.compiled.parallel import mesh_of, put, run_blocks
from dre_jax.tuning.compiled.study import SharedArrays, StudyDesign
from dre_jax.tuning.compiled.suggestions import StudySuggestion, suggest_points
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.objectives.single import DEFAULT_METHOD, method_without_past
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.suggestion.space_filling import SEQUENCE
from dre_jax.tuning.suggestion.state import StudyState
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import DIRECTIONS
from dre_jax.tuning.trials.trial import Trial, objective_value


class StudyTrial(NamedTuple):
    """A trial of one of many studies."""

    study: int
    number: int
    """Number of the trial in its study."""
    params: Params


@dataclass
class _Study:
    seed: int
    design: StudyDesign
    """With the block of the sequence that the next trial is in."""
    block: int = 0
    params: list[Params] = field(default_factory=list)
    """Configurations of all trials."""
    pending: dict[int, np.ndarray] = field(default_factory=dict)
    """Points of the trials without an outcome, by number."""
    points: dict[int, np.ndarray] = field(default_factory=dict)
    """Points of the trials with a value, by number."""
    values: dict[int, float] = field(default_factory=dict)
    failures: dict[int, np.ndarray] = field(default_factory=dict)
    """Points of the failed trials, by number."""
    best: tuple[float, Params] | None = None

    @property
    def number(self) -> int:
        return len(self.params)

    @property
    def capacity(self) -> int:
        return history_capacity(len(self.points) + len(self.pending) + len(self.failures))


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
        surrogate: Surrogate | None = None,
        method: str | Method = DEFAULT_METHOD,
        direction: str = "minimize",
        pending_strategy: PendingStrategy = "mean",
        failure_model: bool = True,
        execution: ExecutionConfig | None = None,
    ) -> None:
        """Begins n studies, with the seeds 0, 1 and so on.

        Args:
          space: a search space, or its hyperparameters by name.
          n: number of studies; `begin` adds others.
          surrogate: knowledge of past tasks, in place of a method.
          method: without past tasks.
          direction: of the values, "minimize" or "maximize".
          pending_strategy: as `EngineConfig.pending_strategy`.
          failure_model: as `EngineConfig.failure_model`. The model is compiled once a trial fails.
          execution: how devices are used.

        Raises:
          ConfigError: for an unknown direction, or a method that needs past tasks.
          DataError: for a surrogate of another space.
        """
        one_of("direction", direction, DIRECTIONS)
        check_counts(0, n=n)
        self.space = space if isinstance(space, Space) else Space(space)
        self.direction = direction
        self._surrogate, self._sign = surrogate, 1.0 if direction == "maximize" else -1.0
        self._method, self._pending_strategy = method, pending_strategy
        self._config = study_config(self.space, method, surrogate, pending_strategy, failure_model=failure_model)
        self._mesh = mesh_of(execution)
        self._studies: dict[int, _Study] = {}
        self._names = itertools.count()
        for seed in range(n):
            self.begin(seed)

    def __repr__(self) -> str:
        best = [study.best[0] for study in self._studies.values() if study.best is not None]
        return summary(
            self,
            hyperparameters=list(self.space),
            direction=self.direction,
            surrogate=None if self._surrogate is None else self._surrogate.name,
            n_studies=len(self._studies),
            n_trials=sum(study.number for study in self._studies.values()),
            best=self._sign * max(self._sign * value for value in best) if best else None,
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
        self._studies[name] = _Study(seed, _first(designs))
        return name

    @cached_property
    def _designs(self) -> StudyDesigns:
        dtype = np.float64 if supports_double(self._config.method) else np.float32
        return StudyDesigns(self.space, self._surrogate, self._config.candidates.even, dtype)

    def end(self, study: int) -> None:
        """Ends a study, whose trials are forgotten. Raises `DataError` for an unknown name."""
        self._study(study)
        del self._studies[study]

    def best(self, study: int) -> tuple[float, Params]:
        """Returns the best value of a study, and its configuration. Raises `DataError` before there is one."""
        best = self._study(study).best
        if best is None:
            raise DataError(f"study {study} has no trial with a value yet")
        return best

    def trials(self, study: int) -> tuple[Trial, ...]:
        """Returns all trials of a study, by their numbers. Raises `DataError` if there is no such study."""
        state = self._study(study)

        def trial(number: int, params: Params) -> Trial:
            if number in state.values:
                return Trial(number, params, "complete", state.values[number])
            return Trial(number, params, "failed" if number in state.failures else "running")

        return tuple(trial(number, params) for number, params in enumerate(state.params))

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
        trials = self.trials(study)
        options: dict[str, Any] = {} if self._surrogate is not None else {"method": self._method_name()}
        model = self._config.failure_model
        config = EngineConfig(pending_strategy=self._pending_strategy, failure_model=model, **options)
        seed = self._study(study).seed
        optimizer = Optimizer(self.space, self._surrogate, direction=self.direction, seed=seed, config=config)
        for trial in trials:
            optimizer.enqueue(trial.params)
        for trial in optimizer.ask(len(trials)) if trials else ():
            outcome = trials[trial.number]
            if outcome.state == "failed":
                optimizer.tell_failed(trial)
            elif outcome.value is not None:
                optimizer.tell(trial, outcome.value)
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
        points: dict[int, np.ndarray] = {}
        groups: dict[tuple[int, bool], list[int]] = {}
        for name in names:
            # A program with the model of failures takes twice as long to compile.
            groups.setdefault((self._study(name).capacity, bool(self._studies[name].failures)), []).append(name)
        with suggestion_runtime:
            for program, group in groups.items():
                for block in run_blocks(self._mesh, group, [program], self._suggest):
                    points |= block
        trials = []
        for name in names:
            study = self._studies[name]
            params = self.space.params(points[name])
            trials.append(StudyTrial(name, study.number, params))
            study.pending[study.number] = self.space.point(params)
            study.params.append(params)
        return trials

    @with_default_float_errors
    def tell(self, trials: Sequence[StudyTrial], values: Sequence[float | None]) -> None:
        """Records values of trials, in any order and at any time.

        Args:
          trials: trials that `ask` returned. Trials of studies that have ended do not count.
          values: the value of each trial; NaN if it failed, None if it still runs.

        Raises:
          DataError: for numbers of trials and values that differ, a value that is not a number, and a trial that has a
            value already.
        """
        if not isinstance(values, Iterable) or len(trials) != len(values):
            raise DataError(f"each trial needs a value or None, but got {len(trials)} trials and {show(values)}")
        numbers = [None if value is None else objective_value(value) for value in values]
        for trial, value in zip(trials, numbers, strict=True):
            study = self._studies.get(trial.study)
            if value is None or study is None:
                continue
            point = study.pending.pop(trial.number, None)
            if point is None:
                raise DataError(f"trial {trial.number} of study {trial.study} must be running, but is not")
            if math.isnan(value):
                study.failures[trial.number] = point
                continue
            study.points[trial.number], study.values[trial.number] = point, value
            if study.best is None or self._sign * value > self._sign * study.best[0]:
                study.best = value, trial.params

    def _study(self, name: int) -> _Study:
        try:
            return self._studies[name]
        except KeyError:
            raise DataError(f"there must be a study {name!r}, but there are {len(self._studies)} others") from None

    def _continue_sequence(self, study: _Study) -> None:
        """Gives a study the block of the sequence that its next trial is in."""
        block = study.number // SEQUENCE
        if block != study.block:
            sequence = self._designs.sequence(study.seed, [block])
            study.design, study.block = study.design._replace(sequence=sequence), block

    def _suggest(
        self, names: Sequence[int], size: int, programs: Sequence[tuple[int, bool]], count: int
    ) -> dict[int, np.ndarray]:
        """Returns the next points of studies, for `run_blocks`, by the program of a capacity, with failures or not."""
        ((capacity, has_failures),) = programs
        config = replace(self._config, failure_model=self._config.failure_model and has_failures)
        for name in names:
            self._continue_sequence(self._studies[name])
        padded = [self._studies[name] for name in (*names, *[names[-1]] * (size - len(names)))]
        with precision_of(config.method) as dtype:
            suggestions = StudySuggestion(
                stack([_state(study, self._sign, capacity, dtype) for study in padded]),
                jax.tree.map(lambda *leaves: jnp.stack(leaves), *[study.design for study in padded]),
                stack([_first(self._designs.candidates(study.seed, [study.number])) for study in padded]),
                jnp.asarray([study.number for study in padded], jnp.int32),
            )
            params = None if self._surrogate is None else with_precision(self._surrogate.params, dtype)
            arrays = SharedArrays(params, self._designs.log_densities), np.int32(count)
            (shared, bound), studies = put(self._mesh, arrays, suggestions)
            results = suggest_points(config, self._mesh, shared, studies, bound)
            points, is_undefined = jax.device_get(results)
        if is_undefined[: len(names)].any():
            raise undefined_values(config.method)
        return dict(zip(names, np.asarray(points, np.float64), strict=False))


def _state(study: _Study, sign: float, capacity: int, dtype: Any) -> StudyState:
    """Returns a study as arrays, padded to a capacity."""
    numbers, pending = sorted(study.points), list(study.pending.values())  # in the order of `Optimizer.trials`
    completed, values = [study.points[number] for number in numbers], [study.values[number] for number in numbers]

    def rows(points: Sequence[np.ndarray]) -> Any:
        padded = np.zeros((capacity, study.design.initial.shape[-1]), dtype)
        padded[: len(points)] = np.reshape(points, (-1, padded.shape[1]))
        return padded

    responses: Any = np.pad(sign * np.array(values, np.float64), (0, capacity - len(completed))).astype(dtype)
    counts: Any = (np.int32(len(group)) for group in (completed, pending, study.failures))
    n, n_pending, n_failed = counts
    return StudyState(rows([*completed, *pending]), responses, n, n_pending, rows([*study.failures.values()]), n_failed)


def _first(tree: Any) -> Any:
    return jax.tree.map(lambda a: a[0], tree)
