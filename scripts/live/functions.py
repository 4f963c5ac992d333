"""Tasks of the families of test functions, as tuners see them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dre_jax.functions.families import FAMILIES, Family, FamilyTask, Floats
from dre_jax.tuning import Space


@dataclass(frozen=True, kw_only=True)
class Task:
    """One function of a family."""

    space: Space
    loss: Callable[[Floats], Floats]
    """Of points f64[n, D] of the unit cube, without noise."""
    noise: float
    """Standard deviation of what is added to an evaluation."""
    least: float
    """The loss of the optimum."""
    spread: float
    """How much higher the median loss of random points is."""
    drawn: FamilyTask | None = None
    """What the program of many searches takes; None for a function in NumPy."""

    def exact(self, params: Mapping[str, Any]) -> float:
        """The loss of a configuration."""
        return float(self.loss(self.space.point(params)[None])[0])

    def evaluate(self, params: Mapping[str, Any], random: np.random.Generator) -> float:
        """The loss of a configuration as a tuner sees it."""
        return self.exact(params) + self.noise * float(random.standard_normal())

    def regret(self, loss: float) -> float:
        """How far a loss is from the optimum, 1 for that of the median random point."""
        return max(loss - self.least, 0.0) / self.spread


def draw_task(family: Any, random: np.random.Generator, *, reverse: bool = False, past: bool = False) -> Task:
    """A task of a family; `reverse` turns its loss round, and the optimum of one of the past is known roughly."""
    if not isinstance(family, Family):  # of many hyperparameters
        wide: Task = family.draw(random)
        return wide
    task = family.draw(random, reverse=reverse, refine=not past)
    numbers = {"noise": float(task.noise), "least": float(task.least), "spread": float(task.spread)}
    return Task(space=family.space, loss=partial(family.losses, task), drawn=task, **numbers)


CHOICE = ("branin", "hartmann-6", "bowl-3", "ackley-5", "hartmann-3-noisy", "mixed-5")
"""Families that defaults are chosen on."""
REPORT = tuple(name for name in FAMILIES if name not in CHOICE)
"""Families that no choice is made on."""
