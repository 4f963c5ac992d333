"""Tasks of 50 to 200 hyperparameters without past studies: functions, and a support vector machine on digits."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from jax import Array

from dre_jax.functions import formulas
from dre_jax.functions.families import Family, FamilyTask
from dre_jax.space.space import Params
from dre_jax.tuning import Float, Space
from rivals.live_tasks import random_params
from rivals.problems import Problem, Task

_N_SAMPLES = 1000
_DESIGN = 2
_N_TRAINED = 300
_HARTMANN = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)


def _first_six(z: Array) -> Array:
    return formulas.hartmann(z[:6])


def _first_twenty(z: Array) -> Array:
    return formulas.ackley(z[:20])


def _uneven_bowl(z: Array) -> Array:
    """Returns a bowl whose curvature falls from 1 in the first column to 1/100 in the last."""
    return (np.logspace(0.0, -2.0, len(z)).astype(np.float32) * z**2).sum()


_FUNCTIONS = {
    family.name: family
    for family in (
        Family(name="hartmann-6-of-100", formula=_first_six, n_columns=100, minimiser=(*_HARTMANN, *[0.5] * 94)),
        Family(name="levy-50", formula=formulas.levy, n_columns=50, low=-5.0, high=5.0, shift=0.3, minimiser=1.0),
        Family(name="bowl-50", formula=_uneven_bowl, n_columns=50, low=-1.0, shift=0.3),
        Family(name="rosenbrock-60", formula=formulas.rosenbrock, n_columns=60, low=-2.0, high=2.0, minimiser=1.0),
        Family(name="ackley-20-of-200", formula=_first_twenty, n_columns=200, low=-5.0, high=10.0, shift=0.3),
    )
}
_DIGITS = {"0 to 4": range(5), "5 to 9": range(5, 10), "even": range(0, 10, 2), "odd": range(1, 10, 2)}
WIDE = (*_FUNCTIONS, "digits-66")


@dataclass(frozen=True)
class WideFamily:
    """A function of many numbers, each of whose tasks is shifted, or the scales of 64 pixels with C and gamma."""

    name: str
    """One of `WIDE`."""
    n_tasks: int
    """Maximum number of tasks."""

    def groups(self) -> range:
        """Returns the numbers of the tasks."""
        return range(self.n_tasks if self.name in _FUNCTIONS else min(self.n_tasks, len(_DIGITS)))

    def tasks(self, group: int, seed: int) -> list[Task]:
        """Returns one task; the design of two random trials is drawn by seed."""
        random = np.random.default_rng([zlib.crc32(self.name.encode()), group, seed])
        if self.name in _FUNCTIONS:
            space, name = _FUNCTIONS[self.name].space, str(group)
            evaluate = partial(_evaluate, self.name, group)
        else:
            space, name = _digits_space(), list(_DIGITS)[group]
            evaluate = partial(_accuracies, name)
        return [Task(name, _problem(space), random_params(space, _DESIGN, random), evaluate=evaluate)]

    def samples(self) -> dict[str, np.ndarray]:
        """Returns the values of random configurations of each task, and the optimum of a function, by task."""
        tasks = [(group, task) for group in self.groups() for task in self.tasks(group, 0)]
        return {task.name: self._samples(group, task) for group, task in tasks}

    def _samples(self, group: int, task: Task) -> np.ndarray:
        assert task.evaluate is not None
        is_function = self.name in _FUNCTIONS
        n_samples = _N_SAMPLES if is_function else _N_SAMPLES // 10
        values = task.evaluate(random_params(task.problem.space, n_samples, np.random.default_rng(0)))
        return np.append(values, -float(_drawn(self.name, group).least)) if is_function else values


@cache
def _problem(space: Space) -> Problem:
    return Problem(space, {})


@cache
def _drawn(name: str, group: int) -> FamilyTask:
    return _FUNCTIONS[name].draw(np.random.default_rng([3, group]), refine=False)


def _evaluate(name: str, group: int, configurations: Sequence[Params]) -> np.ndarray:
    family = _FUNCTIONS[name]
    points = np.array([[params[name] for name in family.space.sequence] for params in configurations])
    return -family.losses(_drawn(name, group), points)


@cache
def _digits_space() -> Space:
    scales = {f"scale{i}": Float(0.1, 10.0, log=True) for i in range(64)}
    return Space({"C": Float(1e-3, 1e3, log=True), "gamma": Float(1e-5, 1e-1, log=True), **scales})


def _accuracies(name: str, configurations: Sequence[Params]) -> np.ndarray:
    """Returns the accuracy of machines that are trained on 300 images of five digits, on all others."""
    from sklearn.svm import SVC

    images, labels = _digits(name)
    values = []
    for params in configurations:
        scaled = images * np.array([params[f"scale{i}"] for i in range(64)])
        machine = SVC(C=params["C"], gamma=params["gamma"]).fit(scaled[:_N_TRAINED], labels[:_N_TRAINED])
        values.append(machine.score(scaled[_N_TRAINED:], labels[_N_TRAINED:]))
    return np.array(values)


@cache
def _digits(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(labels, list(_DIGITS[name]))))
    return images[rows] / 16.0, labels[rows]
