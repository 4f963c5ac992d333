"""Tasks whose configurations have learning curves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dre_jax.space.space import Params
from rivals.live_tasks import LiveFamily
from rivals.outcomes import scaled_regret
from rivals.problems import Problem
from rivals.yahpo import load_yahpo

STEPS = 27
"""Number of steps of a whole training."""
SHARES = np.arange(1, STEPS + 1) / STEPS
_SAMPLE = 5_000


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
