"""Pasts of a family: how many studies, of how many trials, and how their configurations came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.tuning import Evaluated, past_of
from dre_jax.tuning.past.tasks import Past
from live.functions import FAMILIES, Family, Task

if TYPE_CHECKING:
    from live.models import ModelFamily

Kind = Literal["random", "tpe", "sub-region", "irrelevant", "reversed"]
_SUB_REGION = 0.4  # of the cube's edge


@dataclass(frozen=True)
class PastSetting:
    """A past to draw."""

    kind: Kind
    studies: int
    trials: int

    @property
    def name(self) -> str:
        """As the tables have it."""
        return f"{self.kind} {self.studies}x{self.trials}"

    def draw(self, family: Family | ModelFamily, random: np.random.Generator) -> Past:
        """Studies of a family."""
        studies = {f"study {i}": self._study(family, random) for i in range(self.studies)}
        return past_of(family.space, studies, direction="minimize")

    def _study(self, family: Family | ModelFamily, random: np.random.Generator) -> list[Evaluated]:
        source: Family | ModelFamily = family
        if self.kind == "irrelevant":
            if not isinstance(family, Family):
                raise ConfigError(f"pasts of {family.name} are of its own models, but got {self.name!r}")
            source = _other(family, random)
        task = source.draw(random, reverse=self.kind == "reversed", past=True)
        if self.kind == "tpe":
            return _by_tpe(task, self.trials, random)
        points = random.random((self.trials, len(family.space)))
        if self.kind == "sub-region":
            points = 0.1 + _SUB_REGION * points
        found = [family.space.params(point) for point in points]
        return [Evaluated(params, task.evaluate(params, random)) for params in found]


def settings() -> Mapping[str, PastSetting]:
    """By name."""
    made = [
        *(PastSetting("random", n, trials) for n in (1, 3, 5, 20, 50) for trials in (10, 20, 60)),
        *(PastSetting("tpe", n, 20) for n in (1, 3, 5, 20)),
        *(PastSetting(kind, n, 20) for kind in ("sub-region", "irrelevant", "reversed") for n in (1, 5, 20)),
    ]
    return {one.name: one for one in made}


def _other(family: Family, random: np.random.Generator) -> Family:
    """A function that has nothing to do with a family, on its space."""
    others = [f for f in FAMILIES.values() if f.formula is not family.formula and not _fixed_size(f)]
    other = others[random.integers(len(others))]
    bounds = (np.ravel(other.low)[0], np.ravel(other.high)[0])
    return Family(
        name=f"{other.name} {random.integers(10**6)}",
        formula=other.formula,
        n_columns=family.n_columns,
        low=float(bounds[0]),
        high=float(bounds[1]),
        shift=0.5,
        rotated=not family.mixed,
        mixed=family.mixed,
    )


def _fixed_size(family: Family) -> bool:
    return family.name.startswith(("branin", "hartmann"))


def _by_tpe(task: Task, n: int, random: np.random.Generator) -> list[Evaluated]:
    """The trials of a search by Optuna's TPE, in their order."""
    from live.contestants import optuna_study

    return optuna_study("tpe", task, n, random)
