"""Tasks whose configurations have learning curves: of a live space, or of a table of curves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dre_jax.data.files import read_json
from dre_jax.errors import DataError
from dre_jax.space.space import Params
from dre_jax.tuning import Float, Int, Space
from rivals.live_tasks import LiveFamily
from rivals.outcomes import scaled_regret
from rivals.problems import Problem
from rivals.yahpo import load_yahpo

STEPS = 27
"""Number of steps of a whole training."""
SHARES = np.arange(1, STEPS + 1) / STEPS
_SAMPLE = 5_000
_LOG_RATIO = 50.0


@dataclass(frozen=True, eq=False)
class PastCurves:
    """Past tasks, which several tasks share."""

    problem: Problem
    curves: Mapping[str, Callable[[Params], np.ndarray]]
    """Values f64[STEPS] of a configuration after each step, by task."""
    trainings: int
    """Number of whole trainings that a search with pauses spends on each."""


@dataclass(frozen=True, eq=False)
class BudgetTask:
    """A task, whose values are maximised."""

    family: str
    name: str
    problem: Problem
    curve: Callable[[Params], np.ndarray]
    """Values f64[STEPS] of a configuration after each step."""
    final_values: np.ndarray
    """Of many random configurations, or of all rows of a table."""
    rows: Sequence[Params] | None = None
    """The configurations of a table."""
    past_curves: PastCurves | None = None
    """Those of the past tasks of a live space."""

    def regret(self, values: np.ndarray) -> np.ndarray:
        """Returns 0 at the best known final value, and 1 at the median one."""
        best, median = float(self.final_values.max()), float(np.median(self.final_values))
        return np.clip(scaled_regret(values, best, median), 0.0, 1.0)


def live_tasks(
    folder: Path, name: str, n_tasks: int, n_studies: int, n_trials: int, past_trainings: int
) -> Iterator[BudgetTask]:
    """Yields tasks of a space of YAHPO, with random trials of other tasks as the past, or their curves."""
    live, family = load_yahpo(folder, name), LiveFamily(name, folder, n_tasks, n_studies, n_trials)
    samples = family.samples()
    for group in family.groups():
        tasks = family.tasks(group, 0)
        problem = tasks[0].problem
        curves = {past: partial(live.curve, past, shares=SHARES) for past in problem.past}
        past_curves = PastCurves(problem, curves, past_trainings)
        for task in tasks:
            curve = partial(live.curve, task.name, shares=SHARES)
            values = samples[task.name][:_SAMPLE]
            yield BudgetTask(name, task.name, problem, curve, values, past_curves=past_curves)


def recorded_task(path: Path, n_rows: int) -> BudgetTask:
    """Returns the task of a JSON file: a list of ``{"config": ..., "curve": [[step, value], ...], "diverged": ...}``.

    A step counts as a share of its own training; a training that diverged keeps its worst value. Raises `DataError`
    for a file without trainings.
    """
    trainings = [one for one in read_json(path) if one["curve"]]
    if len(trainings) < 2:
        raise DataError(f"{path} must have trainings with curves, but has {len(trainings)}")
    trainings = [trainings[i] for i in np.random.default_rng(0).permutation(len(trainings))[:n_rows]]
    space = Space({name: _parameter([one["config"][name] for one in trainings]) for name in trainings[0]["config"]})
    rows = [space.check(one["config"]) for one in trainings]
    curves = np.array([_steps_of(one) for one in trainings])
    by_row = {tuple(row.values()): curve for row, curve in zip(rows, curves, strict=True)}
    name = path.name.removesuffix(".gz").removesuffix(".json")
    problem = Problem(space, {})
    return BudgetTask(name, name, problem, lambda params: by_row[tuple(params.values())], curves[:, -1], rows)


def _parameter(values: Sequence[float]) -> Float | Int:
    low, high = min(values), max(values)
    is_log = low > 0 and high / low > _LOG_RATIO
    is_whole = all(isinstance(value, int) for value in values)
    return Int(int(low), int(high), log=is_log) if is_whole else Float(low, high, log=is_log)


def _steps_of(training: Mapping[str, Any]) -> np.ndarray:
    steps, values = np.array(training["curve"], float).T
    if training["diverged"] or len(steps) < 2:
        return np.full(STEPS, values.min())
    return np.interp(SHARES * steps[-1], steps, values)
