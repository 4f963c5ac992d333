"""Ask and tell: tunes a live model, with sequential or parallel trials."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dre_jax.checks import check_counts, check_positive, check_seed
from dre_jax.errors import ConfigError
from dre_jax.runtime.forks import check_not_forked
from dre_jax.space.completion import complete_part
from dre_jax.space.space import Params, Space
from dre_jax.tuning.engine.engine import Engine, Suggestion
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.engine.explanation import Explanation, explain_trial
from dre_jax.tuning.engine.fixed_values import propose_with
from dre_jax.tuning.engine.predictions import Prediction, check_configurations, check_quantiles
from dre_jax.tuning.engine.stopping import PATIENCE, gains_little
from dre_jax.tuning.engine.study_arrays import total_cost
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.fidelity.next_trial import FidelitySearch, NextTrial
from dre_jax.tuning.objectives.criterion import surrogates_by_objective
from dre_jax.tuning.past.curves import PastCurves
from dre_jax.tuning.study.batches import suggest_batch
from dre_jax.tuning.study.saved_study import SavedStudy
from dre_jax.tuning.study.trial_loop import Callback, Limits, evaluate_trials
from dre_jax.tuning.surrogates.by_objective import surrogates_for_task
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import (
    feasible_trials,
    find_objective,
    objectives_of,
)
from dre_jax.tuning.trials.trial import VALUE, Trial, find_trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOCKS = ("_lock", "_turn")


class Optimizer(SavedStudy):
    """Suggests configurations and learns from their values.

    `optimize` runs an objective; `ask` and `tell` leave the loop to the caller. Several threads may ask and tell: they
    ask one after the other, and tell at any time. The same seed and the same answers give the same suggestions.

    Example:
      >>> from dre_jax.tuning import Float
      >>> optimizer = Optimizer(Space({"x": Float(-1.0, 1.0)}), direction="minimize", seed=0)
      >>> for _ in range(3):
      ...     trial = optimizer.ask()
      ...     _ = optimizer.tell(trial, trial.params["x"] ** 2)
      >>> optimizer.optimize(lambda trial: trial["x"] ** 2, 2)
      >>> len(optimizer.trials), optimizer.best.value <= optimizer.trials[0].value
      (5, True)
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any] | None = None,
        surrogate: Surrogate | Mapping[str, Surrogate | None] | None = None,
        *,
        direction: str = "minimize",
        directions: Mapping[str, str] | None = None,
        seed: int = 0,
        config: EngineConfig | None = None,
        past_curves: PastCurves | None = None,
        features: Mapping[str, Any] | None = None,
        fidelity: Fidelity | None = None,
    ) -> None:
        """Creates a study without trials.

        Args:
          space: the search space; None for the surrogate's.
          surrogate: knowledge of past tasks; without one, the best method that needs none is used. With several
            objectives, a mapping of them to surrogates or None.
          direction: "minimize" or "maximize".
          directions: of several objectives, by name, in place of ``direction``.
          seed: seed of all suggestions.
          config: treatment of pending and failed trials.
          past_curves: learning curves of past studies, for `should_stop`.
          features: what is known of the task before its first trial, such as ``{"parameters": 7e9, "tokens": 1.4e11}``,
            for a surrogate whose past tasks have features (`Surrogate.for_task`); None is an unknown value. The study
            keeps them in its file for later surrogates, see `past_of`.
          fidelity: the budgets of trials, which then pause and are resumed: `Trial.budget` says until where a trial
            trains, `Trial.resumes` whose checkpoint it continues, and `tell` gives the value there.

        Raises:
          ConfigError: for an unknown direction, a seed that is not a whole number from 0, a missing space, a surrogate
            of several objectives whose method does not predict values, as `dre` does not.
          DataError: for a surrogate of another space or direction; the message says what differs. For features that no
            surrogate knows, if one knows others, and as `Surrogate.for_task`.

        Warns:
          DataWarning: without features, if a surrogate uses some; and as `Surrogate.for_task`.
        """
        check_seed(seed)
        self.seed = int(seed)
        objectives = objectives_of(direction, directions)
        if directions is None and isinstance(surrogate, Mapping):
            raise ConfigError("surrogates by objective need directions= of the objectives, but got none")
        surrogates = surrogates_by_objective(surrogate, objectives)
        surrogates, task_features = surrogates_for_task(surrogates, features)
        engine = Engine(space, objectives, surrogates, seed=self.seed, config=config)
        super().__init__(engine, past_curves, task_features, fidelity)
        self._fidelity_search = None if fidelity is None else FidelitySearch(engine, fidelity)
        self._improvements: list[float] = []  # expected, of the latest suggestions
        self._turn = threading.RLock()  # of asking, which may take seconds; others may tell meanwhile

    def __getstate__(self) -> dict[str, Any]:
        """Returns the study, without its locks."""
        with self._lock:
            state = {name: value for name, value in self.__dict__.items() if name not in _LOCKS}
            copies = {"_trials": list(self._trials), "_enqueued": list(self._enqueued), "_stamps": dict(self._stamps)}
            return state | copies

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restores the study, with locks of its own."""
        self.__dict__.update(state)
        self._lock, self._turn = threading.RLock(), threading.RLock()

    @property
    def surrogate(self) -> Surrogate | None:
        """Knowledge of past tasks; None without, and with several objectives."""
        return None if self.directions else self.named_surrogates[VALUE]

    @property
    def surrogates(self) -> dict[str, Surrogate | None]:
        """Knowledge of past tasks by objective; empty with one objective."""
        return dict(self.named_surrogates) if self.directions else {}

    @overload
    def ask(self, n: None = None, *, features: Mapping[str, Any] | None = None) -> Trial: ...
    @overload
    def ask(self, n: int, *, features: Mapping[str, Any] | None = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, *, features: Mapping[str, Any] | None = None) -> Trial | list[Trial]:
        """Returns the next trial, or a list of `n` trials.

        A list has different configurations, none of which is running. A single trial repeats a configuration once the
        space has no other one.

        Args:
          n: number of trials; None for one, which is not in a list.
          features: what is known of these trials, such as ``{"machine": "b"}``: values of hyperparameters that are not
            chosen. The others are suggested to improve on trials with the same values; all trials inform the method.

        Raises:
          ConfigError: for a number below 1, or above that of the configurations that are left. For features with
            several objectives or a fidelity, or while configurations are enqueued.
          DataError: for features that `enqueue` would refuse.

        Warns:
          DataWarning: if the past studies of the surrogate mislead, once a study. They are compared with the complete
            trials when there are 8, and whenever these have grown by a half; see `Sources.mislead`.
        """
        if n is not None:
            check_counts(1, n=n)
        context = None if features is None else self._context(features)
        trials = self._ask(n, lambda: False, context)
        return trials[0] if n is None else trials

    def ask_unless(self, is_late: Callable[[], bool]) -> Trial | None:
        """Returns the next trial, or None without starting one if a function returns True once it is suggested."""
        return next(iter(self._ask(None, is_late)), None)

    def _context(self, features: Mapping[str, Any]) -> Params:
        """Returns features of the next trials, as `ask` takes them."""
        for what, is_there in (("several objectives", self.directions), ("a fidelity", self.fidelity)):
            if is_there:
                raise ConfigError(f"a study with {what} takes no features of single trials, but got {dict(features)!r}")
        if self.enqueued:
            raise ConfigError(f"features of a trial need an empty queue, but {len(self.enqueued)} are enqueued")
        return complete_part(self.space, features)

    def _ask(self, n: int | None, is_late: Callable[[], bool], context: Params | None = None) -> list[Trial]:
        """Returns the next trials, none if it is late once they are suggested; see `ask`."""
        check_not_forked()  # before the lock, which a thread of the other process may have held
        with self._turn:
            if self._engine.past is not None:
                self._past_check.warn_if_misleading(self._trials, self.objectives, self.named_surrogates)
            enqueued = self.enqueued if context is None else ()  # what another thread has enqueued since waits
            steps = self._next_trials(enqueued, n, context)
            if is_late():
                return []
            with self._lock:
                del self._enqueued[: min(len(enqueued), len(steps))]
                improvements = [step.improvement for step in steps if step.resumes is None]
                self._improvements = [*self._improvements, *improvements][-PATIENCE:]
                trials = [self._append(step.params, budget=step.budget, resumes=step.resumes) for step in steps]
                return [trial.with_fields(study=self) for trial in trials]

    def _next_trials(self, enqueued: Sequence[Params], n: int | None, context: Params | None) -> list[NextTrial]:
        """Returns the next trials, of which the first ones have enqueued values, all in a context."""
        if self._fidelity_search is not None:
            return self._fidelity_search.next_trials(self.trials, enqueued, n or 1)
        suggest = partial(self._suggest, context=context)
        steps = zip(*suggest_batch(self.space, suggest, enqueued, self._running_params, n), strict=True)
        return [NextTrial(params, improvement=improvement) for params, improvement in steps]

    def _running_params(self) -> list[Mapping[str, Any]]:
        return [trial._params for trial in self.trials if trial.state == "running"]

    def enqueue(self, params: Mapping[str, Any]) -> None:
        """Adds values that the next trial must have, after those that wait already.

        Args:
          params: a configuration, or a part of one; the optimizer suggests the rest. Hyperparameters on which the part
            depends get a value for which it is active.

        Raises:
          DataError: for a hyperparameter that is unknown, a value that it does not take, or values that no
            configuration has together.
        """
        values = complete_part(self.space, params)
        with self._lock:
            self._enqueued.append(values)

    def predict(
        self,
        configurations: Iterable[Mapping[str, Any]],
        *,
        objective: str | None = None,
        quantiles: Sequence[float] = (0.05, 0.5, 0.95),
        noise: bool = True,
    ) -> Prediction:
        """Returns predicted values of configurations, given the trials so far and the past tasks.

        The prediction is a pair of means and standard deviations, and has quantiles; `Prediction` says how they are
        defined where the values span orders of magnitude. If past trials violate constraints, those of this study that
        do so rank below all others, too.

        Args:
          configurations: n of them, values by name.
          objective: which of several.
          quantiles: Q numbers between 0 and 1, for `Prediction.quantiles` f64[Q, n].
          noise: whether values of new trials are predicted, with their noise; otherwise the average of repeats.

        Raises:
          ConfigError: for a method that does not predict values, as `dre`, or no noise; an unknown objective, or a
            quantile that is not between 0 and 1.
          DataError: for a configuration of another space, or before two trials have different values.

        Example:
          >>> from dre_jax.tuning import Float
          >>> optimizer = Optimizer(Space({"x": Float(-1.0, 1.0)}), seed=0)
          >>> optimizer.optimize(lambda trial: trial["x"] ** 2, 6)
          >>> prediction = optimizer.predict([{"x": 0.0}, {"x": 1.0}])
          >>> near, far = prediction.mean
          >>> low, median, high = prediction.quantiles
          >>> bool(near < far), bool(low[1] < 1.0 < high[1])
          (True, True)
        """
        name, _ = find_objective(self.objectives, objective)
        points = [self.space.point(self.space.check(params)) for params in check_configurations(configurations)]
        arrays = np.reshape(points, (len(points), len(self.space))), check_quantiles(quantiles)
        trials = [trial.with_objective(name) for trial in self._observations(self.trials)]
        return self._engine.of_objective(name).predict(trials, *arrays, noise=noise)

    def _observations(self, trials: Sequence[Trial]) -> Sequence[Trial]:
        """Returns trials as the method reads them: of a training, the latest one with a forecast of its value."""
        return trials if self._fidelity_search is None else self._fidelity_search.observations(trials)

    def explain(self, trial: Trial | int) -> Explanation:
        """Returns why a trial has its configuration: what decided on it, and what the method expected of it.

        The study does not record its suggestions. The method suggests again, from the trials before this one as they
        are now: if other trials have ended since the suggestion, the explanation may differ, or have the origin
        "given".

        Args:
          trial: as `ask` returned it, or its number.

        Of a trial that resumes another one, it says how the value of that one ranked at its budget. With a fidelity,
        expected values are final ones.

        Raises:
          DataError: if the trial is of another study.

        Example:
          >>> from dre_jax.tuning import Float
          >>> optimizer = Optimizer(Space({"x": Float(-1.0, 1.0)}), seed=0)
          >>> optimizer.optimize(lambda trial: trial["x"] ** 2, 8)
          >>> optimizer.explain(0).origin, optimizer.explain(7).origin
          ('initial', 'method')
        """
        trials = self.trials
        trial, search = find_trial(trials, trial), self._fidelity_search
        with self._turn:
            if search is None:
                return explain_trial(self._engine, trials, trial)
            earlier = trials[: trial.number]
            standing = None if trial.resumes is None else search.standing(earlier, trials[trial.resumes])
            return explain_trial(self._engine, trials, trial, search.observations, standing)

    def best_by_prediction(self) -> Trial:
        """Returns the complete, feasible trial of the best predicted value, for objectives with noise.

        `best` has the best value of all, which is often that of the luckiest trial.

        Raises:
          ConfigError: if the method does not predict values.
          DataError: without a feasible trial, for fewer than two different values, and with several objectives.
        """
        _ = self.best  # raises without a best trial
        feasible = feasible_trials(self.trials)
        mean = self.predict([trial.params for trial in feasible], quantiles=(), noise=False).mean
        return feasible[int(np.argmax(mean) if self.direction == "maximize" else np.argmin(mean))]

    def figures(self) -> dict[str, Figure]:
        """Returns figures of the study by heading: history or front, curves, trainings, slices, contours, importance.

        Optuna draws the last three. A figure is matplotlib's: it shows itself in a notebook, and has ``savefig``.

        Raises:
          MissingExtraError: without Optuna.
        """
        from dre_jax.tuning.figures.study import study_figures

        return {
            heading: figure.figure
            for heading, figure in study_figures(self.space, self.trials, self.objectives).items()
        }

    def expected_improvement(self) -> float:
        """Returns how much the next trial is expected to improve on the best value, in units of the values.

        This is the expected improvement of the best candidate (Jones, Schonlau and Welch 1998), times the probability
        that the candidate succeeds and is feasible. Infinite before the method suggests. If all values are equal, or
        all but one or two worse ones, it is infinite up to 19 trials and 0 from 20 on.

        Raises:
          ConfigError: for a method that has no expected improvement.
        """
        self._engine.criterion.require_improvement()
        with self._turn:
            improvement = self._suggest([], None).improvement
        return math.inf if improvement is None else improvement

    def gain_is_below(self, threshold: float) -> bool:
        """Returns whether the last ten suggestions each had an expected improvement below a threshold, and gained less.

        Args:
          threshold: in units of the values.

        Raises:
          ConfigError: for a method that has no expected improvement, or a threshold that is not positive.
        """
        self._engine.criterion.require_improvement()
        check_positive(**{"the threshold of the expected gain": threshold})
        feasible = feasible_trials(self._trials)
        if self.fidelity is not None and not feasible:
            return False  # until a trial has reached the highest budget
        losses = {trial.number: -self._sign * float(trial.value) for trial in feasible if trial.value is not None}
        return gains_little(self._improvements, losses, len(self._trials), threshold)

    def optimize(
        self,
        f: Callable[[Trial], float | Mapping[str, float] | Sequence[float]],
        n_trials: int | None = None,
        *,
        total_budget: float | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
        stop_when_gain_below: float | None = None,
        callbacks: Callback | Iterable[Callback] = (),
        catch: type[Exception] | Iterable[type[Exception]] = (),
        n_jobs: int = 1,
    ) -> None:
        """Asks, evaluates and tells.

        Args:
          f: the objective. It returns the value of a trial as `tell` takes it, or NaN if the trial failed. `trial["x"]`
            is a value, `trial.params` has all.
          n_trials: number of further trials; by default as many as the time or the budget allows.
          total_budget: of a study with a fidelity, in its units: no trial starts once the trials of the study have
            trained for as much (`total_budget`).
          checkpoints: folder, in which each training gets one of its own, `Trial.checkpoint`, to save its state in.
          timeout: seconds after which no trial starts; those that run are completed. The time of suggestions counts.
          stop_when_gain_below: no trial starts once `gain_is_below` is true of this number.
          callbacks: functions of the optimizer and a trial that has ended; or one function.
          catch: classes of exceptions of the objective after which the loop continues: the trial counts as failed.
          n_jobs: number of threads that call the objective; -1 for one per core.

        Raises:
          ConfigError: without a number of trials, a time-out or a total budget, for a number that is not positive, a
            total budget without a fidelity, a callback that is not a function, or a class to catch that is not an
            `Exception`.
          DataError: for checkpoints that are no folder.
          Exception: of a callback, or of the objective unless it is caught; the trial then counts as failed.

        Warns:
          DataWarning: for each exception that is caught.
        """
        limits = Limits(n_trials, timeout, stop_when_gain_below, total_budget)
        folder = None if checkpoints is None else Path(checkpoints)
        evaluate_trials(self, f, limits, callbacks, catch, n_jobs, folder)

    def _suggest(
        self,
        batch: Sequence[Params],
        fixed: Params | None,
        has_further: bool = False,
        *,
        context: Params | None = None,
    ) -> Suggestion:
        """Returns the suggestion after a batch that is not among the trials yet.

        Args:
          batch: configurations of the next trials.
          fixed: values that the configuration must have; None for none.
          has_further: whether the suggestion has further configurations.
          context: values that it must have, and that trials have on which it is to improve; None for none.
        """
        trials = self.trials
        options: dict[str, Any] = {"number": len(trials) + len(batch), "pending": batch, "has_further": has_further}
        if context is not None:
            fixed, options = context, options | {"is_context": True}
        return propose_with(self._engine, self._observations(trials), fixed, spent=total_cost(trials), **options)
