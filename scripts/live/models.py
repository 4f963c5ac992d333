"""Families of scikit-learn models, which are fitted while they are tuned: search spaces that no choice was made on.

A past study is of a training problem and a new task is a test problem (`bundled.tasks`), which shares no row with it.
The optimum is not known: regret is 0 at the best of 256 random configurations, and where a configuration is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from bundled.tasks import Problem, test_problems, train_problems
from bundled.unseen import SPACES, response
from threadpoolctl import threadpool_limits

from dre_jax.tuning import Space
from live.functions import Floats, Task

_REFERENCE_POINTS = 256


@dataclass(frozen=True)
class ModelFamily:
    """The tasks of a search space of scikit-learn models."""

    name: str
    """As in `bundled.unseen.SPACES`."""

    @property
    def space(self) -> Space:
        """The models' hyperparameters."""
        return SPACES[self.name].space

    def draw(self, random: np.random.Generator, *, reverse: bool = False, past: bool = False) -> Task:
        """A task of the past, or a new one; `reverse` has the worst configuration as its optimum."""
        problems = train_problems() if past else test_problems()
        problem = problems[random.integers(len(problems))]
        sign = 1.0 if reverse else -1.0

        def loss(points: Floats) -> Floats:
            return sign * _scores(self.name, problem, points)

        least, median = (0.0, 1.0) if past else _reference(self.name, problem.name, sign)
        return Task(space=self.space, loss=loss, noise=0.0, least=least, spread=median - least)


def _scores(name: str, problem: Problem, points: Floats) -> Floats:
    """Returns the scores f64[n] of points f64[n, D] of the unit cube."""
    unseen = SPACES[name]
    rows = [unseen.space.encode(unseen.space.params(point)) for point in points]
    with threadpool_limits(1):
        return np.array([response(unseen, row, problem) for row in rows])


@cache
def _reference(name: str, problem_name: str, sign: float) -> tuple[float, float]:
    """Returns the lowest and the median loss of random configurations of a test problem."""
    problem = next(one for one in test_problems() if one.name == problem_name)
    points = np.random.default_rng(0).random((_REFERENCE_POINTS, len(SPACES[name].space)))
    losses = sign * _scores(name, problem, points)
    return float(np.min(losses)), float(np.median(losses))
