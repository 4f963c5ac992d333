"""Pasts of a family: how many studies, of how many trials, and how their configurations came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.tuning import Evaluated, Space, past_of
from dre_jax.tuning.past.tasks import Past
from live.functions import FAMILIES, ROUGH, Family

if TYPE_CHECKING:
    from live.models import ModelFamily

Kind = Literal["random", "tpe", "sub-region", "irrelevant", "reversed", "fewer", "half-fewer", "narrow"]
_REGIONS = {"sub-region": (0.1, 0.5), "narrow": (0.25, 0.75)}  # of every edge of the cube
_DEFAULT = 0.5  # coordinate of hyperparameters that earlier models did not have


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
        """What a method learns from."""
        return past_of(family.space, self.draw_studies(family, random), direction="minimize")

    def draw_studies(self, family: Family | ModelFamily, random: np.random.Generator) -> dict[str, list[Evaluated]]:
        """Studies of a family."""
        return {f"study {i}": self._study(family, random, i) for i in range(self.studies)}

    def _study(self, family: Family | ModelFamily, random: np.random.Generator, number: int) -> list[Evaluated]:
        source: Family | ModelFamily = family
        if self.kind == "irrelevant":
            if not isinstance(family, Family):
                raise ConfigError(f"pasts of {family.name} are of its own models, but got {self.name!r}")
            source = _other(family, random)
        task = source.draw(random, reverse=self.kind == "reversed", past=True)
        if self.kind == "tpe":
            from live.contestants import optuna_study

            return optuna_study("tpe", task, self.trials, random)
        points = random.random((self.trials, len(family.space)))
        low, high = _REGIONS.get(self.kind, (0.0, 1.0))
        points = low + (high - low) * points
        is_fewer = self.kind == "fewer" or (self.kind == "half-fewer" and number % 2 == 0)
        names = later_hyperparameters(family.space) if is_fewer else []
        points[:, [family.space.sequence.index(name) for name in names]] = _DEFAULT
        values = [(params, task.evaluate(params, random)) for params in map(family.space.params, points)]
        return [Evaluated({k: v for k, v in params.items() if k not in names}, value) for params, value in values]


def later_hyperparameters(space: Space) -> list[str]:
    """Two hyperparameters that the models of some pasts do not have, or one of a space of three or fewer."""
    parents = {parent for name in space for parent, _ in space[name].when}
    names = [name for name in space if not space[name].when and name not in parents]
    return names[: 1 if len(space) <= 3 else 2]


def settings() -> Mapping[str, PastSetting]:
    """By name."""
    pasts = [
        *(PastSetting("random", n, trials) for n in (1, 3, 5, 20, 50) for trials in (10, 20, 60)),
        *(PastSetting("tpe", n, 20) for n in (1, 3, 5, 20)),
        *(PastSetting(kind, n, 20) for kind in get_args(Kind)[2:] for n in (1, 5, 20)),
    ]
    return {one.name: one for one in pasts}


def _other(family: Family, random: np.random.Generator) -> Family:
    """A function that has nothing to do with a family, on its space."""
    # Rough families came later: pasts stay those of earlier results. Formulas of the others fit any number of columns.
    of_any_size = [
        f for f in FAMILIES.values() if f.name not in ROUGH and not f.name.startswith(("branin", "hartmann"))
    ]
    others = [f for f in of_any_size if f.formula is not family.formula]
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
