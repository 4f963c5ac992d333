"""Searches that train configurations in steps: ours, Optuna's pruners, Syne Tune's schedulers, random search."""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dre_jax.space.space import Params
from dre_jax.tuning import Allowed, Evaluated, Fidelity, Optimizer, Space, Surrogate, past_of
from dre_jax.tuning.fidelity.next_trial import FidelitySearch
from rivals.budget_tasks import STEPS, BudgetTask, PastCurves
from rivals.problems import Problem

_LOST = 0.01
FIDELITY = Fidelity("steps", 1, STEPS)


class Losses(NamedTuple):
    """What a search has lost of the configurations that it started."""

    started: float
    is_lost: float
    """1 if `regret` is above 0.01, else 0."""
    regret: float
    """Of the best one that was trained to the end, minus that of the best final value of all."""


class Meter:
    """Trains configurations of a task, until a number of steps is spent."""

    def __init__(self, task: BudgetTask, total: int) -> None:
        self.task, self.total, self.spent = task, total, 0
        self.best_at_any_step, self.best_at_the_end = np.full(total + 1, -np.inf), np.full(total + 1, -np.inf)
        self._trained: dict[tuple[Any, ...], tuple[int, float]] = {}
        """The step that a configuration has reached, and its value at the last step."""

    @property
    def is_over(self) -> bool:
        return self.spent >= self.total

    def train(self, params: Params, start: int, end: int) -> float:
        """Trains a configuration from a step to another one, and returns its value there."""
        curve = self.task.curve(params)
        key = tuple(params.items())
        reached, _ = self._trained.get(key, (0, 0.0))
        self._trained[key] = max(reached, end), float(curve[-1])
        for step in range(start + 1, end + 1):
            self.spent += 1
            if self.spent <= self.total:
                best, last = self.best_at_any_step, self.best_at_the_end
                best[self.spent :] = np.maximum(best[self.spent :], curve[step - 1])
                if step == STEPS:
                    last[self.spent :] = np.maximum(last[self.spent :], curve[step - 1])
        return float(curve[end - 1])

    def losses(self) -> Losses:
        """Returns what the search has lost of the configurations that it started."""
        best = max(last for _, last in self._trained.values())
        finished = [last for reached, last in self._trained.values() if reached == STEPS]
        regrets = self.task.regret(np.array([best, max(finished, default=-np.inf)]))
        lost = float(regrets[1] - regrets[0])
        return Losses(len(self._trained), float(lost > _LOST), lost)


Method = Callable[[Meter, int], None]
"""Searches with a meter and a seed."""


def random_search(meter: Meter, seed: int) -> None:
    random = np.random.default_rng(seed)
    while not meter.is_over:
        meter.train(_random_params(meter.task, random), 0, STEPS)


def ours(meter: Meter, seed: int, *, has_past: bool, has_fidelity: bool = True, stops: bool = False) -> None:
    task = meter.task
    surrogate = _learn(task.problem) if has_past else None
    space = Space(task.problem.space, rules=[] if task.rows is None else [Allowed(task.rows)])
    fidelity = FIDELITY if has_fidelity else None
    optimizer = Optimizer(space, surrogate, direction="maximize", seed=seed, fidelity=fidelity)
    while not meter.is_over:
        trial = optimizer.ask()
        start = 0 if trial.resumes is None else int(optimizer.trials[trial.resumes].budget or 0)
        end = STEPS if trial.budget is None else int(trial.budget)
        if not stops:
            optimizer.tell(trial, meter.train(trial.params, start, end))
            continue
        for step in range(start + 1, end + 1):
            value = meter.train(trial.params, step - 1, step)
            trial.report(value, step)
            if step < end and trial.should_stop():
                break
        optimizer.tell(trial, value)


def after_pauses(meter: Meter, seed: int, *, rows: str) -> None:
    """Trains configurations to the end, with a past of searches that paused; see `_learn_from_pauses`."""
    assert meter.task.past_curves is not None
    surrogate = _learn_from_pauses(meter.task.past_curves, rows)
    optimizer = Optimizer(meter.task.problem.space, surrogate, direction="maximize", seed=seed)
    while not meter.is_over:
        trial = optimizer.ask()
        optimizer.tell(trial, meter.train(trial.params, 0, STEPS))


@lru_cache(maxsize=4)
def _learn_from_pauses(past: PastCurves, rows: str) -> Surrogate:
    """Returns a surrogate of searches with pauses.

    It learns from "finished" trainings, also from the "forecast" values of paused ones, from those of the ones that
    have come "far", a half of the steps, or from the true values of "all" trainings.
    """
    tasks = {}
    for name, study in _paused_searches(past).items():
        search, values = FidelitySearch(study._engine, FIDELITY), list[Evaluated]()
        for trial in search.observations(study.trials):
            is_used = rows in ("forecast", "all") or (rows == "far" and (trial.budget or 0) >= STEPS // 2)
            if trial.state == "complete" or is_used:
                value = float(past.curves[name](trial.params)[-1]) if rows == "all" else float(trial.value or 0.0)
                values.append(Evaluated(trial.params, value))
        tasks[name] = values
    return Surrogate.fit(past_of(past.problem.space, tasks, direction="maximize"), quiet=True)


@lru_cache(maxsize=1)
def _paused_searches(past: PastCurves) -> dict[str, Optimizer]:
    """Returns searches of the past tasks with pauses, without a past of their own."""
    studies = {}
    for seed, (name, curve) in enumerate(past.curves.items()):
        study = studies[name] = Optimizer(past.problem.space, direction="maximize", seed=seed, fidelity=FIDELITY)
        while study.total_budget < past.trainings * STEPS:
            trial = study.ask()
            study.tell(trial, float(curve(trial.params)[int(trial.budget or STEPS) - 1]))
    return studies


@lru_cache(maxsize=1)
def _learn(problem: Problem) -> Surrogate:
    return Surrogate.fit(past_of(problem.space, problem.past, direction="maximize"), quiet=True)


def optuna_search(meter: Meter, seed: int, *, sampler: str, pruner: str) -> None:
    import optuna
    from live.contestants import optuna_sampler, suggest

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if pruner == "asha":
        prunes: Any = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
    else:
        prunes = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=STEPS, reduction_factor=3)
    # Hyperband's brackets depend on the name.
    samples = optuna_sampler(sampler, seed)
    study = optuna.create_study(study_name="study", direction="maximize", sampler=samples, pruner=prunes)
    rows = meter.task.rows
    while not meter.is_over:
        trial = study.ask()
        space = meter.task.problem.space
        params = suggest(trial, space) if rows is None else rows[trial.suggest_int("row", 0, len(rows) - 1)]
        for step in range(1, STEPS + 1):
            value = meter.train(params, step - 1, step)
            trial.report(value, step)
            if step < STEPS and trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, value)


def syne_tune_search(meter: Meter, seed: int, *, scheduler: str) -> None:
    from syne_tune.backend.trial_status import Trial
    from syne_tune.optimizer import baselines

    from rivals.syne_tune_schedulers import domain

    space = meter.task.problem.space
    domains = {name: domain(parameter) for name, parameter in space.items()}  # type: ignore[arg-type]
    options = {"metric": "value", "time_attr": "step", "max_t": STEPS, "do_minimize": False, "random_seed": seed}
    search = getattr(baselines, scheduler)(domains, **options)
    number = 0
    while not meter.is_over:
        suggestion = search.suggest()
        trial, params = Trial(number, suggestion.config, datetime.now()), space.active_part(suggestion.config)
        number += 1
        search.on_trial_add(trial)
        for step in range(1, STEPS + 1):
            result = {"value": meter.train(params, step - 1, step), "step": step}
            if step == STEPS:
                search.on_trial_complete(trial, result)
            elif search.on_trial_result(trial, result) != "CONTINUE":
                search.on_trial_remove(trial)
                break


def _random_params(task: BudgetTask, random: np.random.Generator) -> Params:
    if task.rows is not None:
        return task.rows[int(random.integers(len(task.rows)))]
    return task.problem.space.params(random.random(len(task.problem.space)))
