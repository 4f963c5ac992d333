"""Families of functions of many mixed hyperparameters, of known optimum: few or all of them matter, alone or in pairs.

A task's loss is 0 at its optimum and 1 at the median of random configurations. Each hyperparameter that matters has a
weight w and an optimal value o, its own in each task. A number with the coordinate u adds 4 w |u - o|^p, and a choice
adds w t, with a uniform number t for each of its values and 0 for the best. In pairs, a number's o depends on the value
of a choice, or on another number: o = o' + (u' - o'') / 2, of which the optimum is the same. Tasks that are alike have
the same weights and tables, and optima that differ by up to 0.1, so that past tasks say where to search.
"""

import zlib
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dre_jax.suggest.candidates import canonicalize
from dre_jax.tuning import Categorical, Float, Int, Space
from live.functions import Task

Floats = npt.NDArray[np.float64]
_SPREAD_POINTS = 2048
_CHOICES = 4
_HIGHEST = 15  # whole numbers are 0, 1 and so on


@dataclass(frozen=True, kw_only=True)
class WideFamily:
    """Functions of many hyperparameters that are alike."""

    name: str
    n_floats: int
    n_ints: int
    n_choices: int
    active: int | None = None
    """How many hyperparameters matter, drawn for each task; None for all."""
    power: float = 2.0
    """The exponent p."""
    decay: float = 1.0
    """Ratio of a weight and the one before."""
    pairs: bool = False
    """Whether each number depends on another hyperparameter that matters."""
    alike: bool = False
    """Whether its tasks are alike."""

    @property
    def n_columns(self) -> int:
        """Number of hyperparameters."""
        return self.n_floats + self.n_ints + self.n_choices

    @cached_property
    def space(self) -> Space:
        """Numbers from 0 to 1, whole numbers, and choices of four."""
        space: dict[str, Any] = {f"x{i}": Float(0.0, 1.0) for i in range(self.n_floats)}
        space |= {f"n{i}": Int(0, _HIGHEST) for i in range(self.n_ints)}
        return Space(space | {f"c{i}": Categorical(tuple("abcd")) for i in range(self.n_choices)})

    def draw(self, random: np.random.Generator) -> Task:
        """A task."""
        n, n_numbers = self.n_columns, self.n_floats + self.n_ints
        snap_points = partial(canonicalize, self.space.layout)
        shared = np.random.default_rng(zlib.crc32(self.name.encode())) if self.alike else random
        order = shared.permutation(n)[: self.active]
        weights = np.zeros(n)
        weights[order] = self.decay ** np.arange(len(order))
        middle = shared.uniform(0.1, 0.9, n)
        if self.alike:
            middle = np.clip(middle + random.uniform(-0.1, 0.1, n), 0.1, 0.9)
        optimum = snap_points(middle[None])[0]
        tables = shared.uniform(0.2, 1.0, (n, _CHOICES)) * (np.arange(_CHOICES) != _level(optimum)[:, None])
        shifts = np.where(tables > 0, shared.uniform(-0.4, 0.4, (n, _CHOICES)), 0.0)
        partners = shared.permutation(order)[np.arange(n) % len(order)]

        def plain(points: Floats) -> Floats:
            levels = _level(points)
            numbers, choices = points[:, :n_numbers], levels[:, n_numbers:]
            center = np.tile(optimum[:n_numbers], (len(points), 1))
            if self.pairs:
                for i, partner in enumerate(partners[:n_numbers]):
                    by_number = 0.5 * (points[:, partner] - optimum[partner]) * (partner != i)
                    center[:, i] += by_number if partner < n_numbers else shifts[partner, levels[:, partner]]
            loss = np.abs(numbers - center) ** self.power @ weights[:n_numbers] * 4.0
            of_choices = np.stack([tables[n_numbers + i, column] for i, column in enumerate(choices.T)], axis=-1)
            return np.asarray(loss + of_choices @ weights[n_numbers:])

        unit = float(np.median(plain(snap_points(np.random.default_rng(0).random((_SPREAD_POINTS, n))))))
        return Task(space=self.space, loss=lambda points: plain(points) / unit, noise=0.0, least=0.0, spread=1.0)


def _level(points: Floats) -> npt.NDArray[np.intp]:
    return np.clip(np.floor(points * _CHOICES), 0, _CHOICES - 1).astype(int)


_FAMILIES = (
    WideFamily(name="wide-additive-30", n_floats=12, n_ints=9, n_choices=9),
    WideFamily(name="wide-sparse-60", n_floats=24, n_ints=18, n_choices=18, active=8),
    WideFamily(name="wide-pairs-19", n_floats=8, n_ints=5, n_choices=6, pairs=True),
    WideFamily(name="wide-decay-40", n_floats=16, n_ints=12, n_choices=12, decay=0.85),
    WideFamily(name="wide-additive-45", n_floats=18, n_ints=14, n_choices=13, power=1.0),
    WideFamily(name="wide-sparse-30", n_floats=12, n_ints=9, n_choices=9, active=6, pairs=True),
    WideFamily(name="wide-pairs-60", n_floats=30, n_ints=15, n_choices=15, pairs=True, decay=0.95),
    WideFamily(name="wide-decay-24", n_floats=16, n_ints=4, n_choices=4, decay=0.7, power=1.0),
    WideFamily(name="wide-alike-30", n_floats=12, n_ints=9, n_choices=9, decay=0.9, alike=True),
)
WIDE_FAMILIES = {family.name: family for family in _FAMILIES}
"""By name."""
WIDE_CHOICE = tuple(family.name for family in _FAMILIES[:4])
"""Families that defaults are chosen on."""
WIDE_REPORT = tuple(family.name for family in _FAMILIES[4:8])
"""Families that no choice is made on."""
