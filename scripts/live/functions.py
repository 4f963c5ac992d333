"""Families of functions on the unit cube: losses of known optimum, of which every task is shifted, turned and scaled.

Surjanovic and Bingham's collection of test functions has the formulas. A task's loss is

    10^u (f(z(x)) - f*) + c,     z(x) = low + (high - low) (1/2 + R (x - 1/2) + s)

with a shift s for each task, one rotation R for a family that is rotated, and u uniform in [-6, 6].
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.stats import ortho_group, qmc

from dre_jax.suggest.candidates import canonicalize
from dre_jax.tuning import Categorical, Float, Int, Space

Floats = npt.NDArray[np.float64]
_SPREAD_POINTS = 2048


def branin(x: Floats) -> Floats:
    """On [-5, 10] x [0, 15] (Dixon and Szego 1978)."""
    a = x[:, 1] - 5.1 / (4 * math.pi**2) * x[:, 0] ** 2 + 5 / math.pi * x[:, 0] - 6
    return a**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(x[:, 0]) + 10


_HARTMANN = {
    3: (
        np.array([[3.0, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]]),
        1e-4 * np.array([[3689.0, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
    ),
    6: (
        np.array(
            [
                [10.0, 3, 17, 3.5, 1.7, 8],
                [0.05, 10, 17, 0.1, 8, 14],
                [3, 3.5, 1.7, 10, 17, 8],
                [17, 8, 0.05, 10, 0.1, 14],
            ]
        ),
        1e-4
        * np.array(
            [
                [1312.0, 1696, 5569, 124, 8283, 5886],
                [2329, 4135, 8307, 3736, 1004, 9991],
                [2348, 1451, 3522, 2883, 3047, 6650],
                [4047, 8828, 8732, 5743, 1091, 381],
            ]
        ),
    ),
}


def hartmann(x: Floats) -> Floats:
    """Of three or six columns on the unit cube (Dixon and Szego 1978)."""
    a, p = _HARTMANN[x.shape[1]]
    bumps = np.exp(-(a[None] * (x[:, None, :] - p[None]) ** 2).sum(axis=2))
    return -bumps @ np.array([1.0, 1.2, 3.0, 3.2])


def ackley(x: Floats) -> Floats:
    """On [-5, 10]^D."""
    root, mean = np.sqrt((x**2).mean(axis=1)), np.cos(2 * math.pi * x).mean(axis=1)
    return -20 * np.exp(-0.2 * root) - np.exp(mean) + 20 + math.e


def rosenbrock(x: Floats) -> Floats:
    """On [-2, 2]^D."""
    return (100 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1 - x[:, :-1]) ** 2).sum(axis=1)


def levy(x: Floats) -> Floats:
    """On [-5, 5]^D."""
    w = 1 + (x - 1) / 4
    inner = (w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:, :-1] + 1) ** 2)
    last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * math.pi * w[:, -1]) ** 2)
    return np.sin(math.pi * w[:, 0]) ** 2 + inner.sum(axis=1) + last


def griewank(x: Floats) -> Floats:
    """On [-10, 10]^D."""
    waves = np.cos(x / np.sqrt(np.arange(1, x.shape[1] + 1))).prod(axis=1)
    return (x**2).sum(axis=1) / 4000 - waves + 1


def styblinski_tang(x: Floats) -> Floats:
    """On [-5, 5]^D."""
    return 0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=1)


def bowl(x: Floats) -> Floats:
    """A quadratic on [-1, 1]^D whose columns count less and less."""
    return (x**2 * 0.3 ** np.arange(x.shape[1])).sum(axis=1)


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

    def exact(self, params: Mapping[str, Any]) -> float:
        """The loss of a configuration."""
        return float(self.loss(self.space.point(params)[None])[0])

    def evaluate(self, params: Mapping[str, Any], random: np.random.Generator) -> float:
        """The loss of a configuration as a tuner sees it."""
        return self.exact(params) + self.noise * float(random.standard_normal())

    def regret(self, loss: float) -> float:
        """How far a loss is from the optimum, 1 for that of the median random point."""
        return max(loss - self.least, 0.0) / self.spread


@dataclass(frozen=True, kw_only=True)
class Family:
    """Functions that are alike."""

    name: str
    formula: Callable[[Floats], Floats]
    n_columns: int
    low: float | tuple[float, ...] = 0.0
    high: float | tuple[float, ...] = 1.0
    shift: float = 0.1
    """Tasks are shifted by as much of the cube's edge in every column, at most."""
    rotated: bool = False
    noise: float = 0.0
    """Standard deviation of an evaluation's noise, in spreads."""
    minimiser: float | tuple[float, ...] = 0.0
    """Where the formula's optimum is, between `low` and `high`."""
    mixed: bool = False
    """The last three columns are a choice of three, a whole number, and a number that one of the choices has."""

    @cached_property
    def space(self) -> Space:
        """Numbers from 0 to 1, or some other parameters at the end."""
        names = [f"x{i}" for i in range(self.n_columns)]
        space: dict[str, Any] = {name: Float(0.0, 1.0) for name in names}
        if self.mixed:
            space[names[-3]] = Categorical(("a", "b", "c"))
            space[names[-2]] = Int(0, 8)
            space[names[-1]] = Float(0.0, 1.0, when={names[-3]: "c"})
        return Space(space)

    def draw(self, random: np.random.Generator, *, reverse: bool = False, past: bool = False) -> Task:
        """A task; `reverse` turns its loss round, and the optimum of one of the past is known roughly."""
        shift = random.uniform(-self.shift, self.shift, self.n_columns)
        offset = random.normal(0.0, 0.1, 3)
        low, high = (np.broadcast_to(np.array(bound, np.float64), self.n_columns) for bound in (self.low, self.high))
        rotation = self._rotation()

        def plain(points: Floats) -> Floats:
            x = 0.5 + (points - 0.5) @ rotation.T + shift
            value = self.formula(low + (high - low) * x)
            return value + self._choice(points, offset) if self.mixed else value

        sign = -1.0 if reverse else 1.0
        snap_points = partial(canonicalize, self.space.layout, xp=np)
        at_random = sign * plain(snap_points(np.random.default_rng(0).random((_SPREAD_POINTS, self.n_columns))))
        optimum = (np.broadcast_to(np.array(self.minimiser, np.float64), self.n_columns) - low) / (high - low)
        optimum = np.clip(0.5 + (optimum - shift - 0.5) @ rotation, 0.0, 1.0)
        least = _least(lambda points: sign * plain(snap_points(points)), optimum, refine=not past)
        spread = float(np.median(at_random) - least)
        scale, base = 10 ** random.uniform(-6, 6) / spread, random.normal()

        def loss(points: Floats) -> Floats:
            return scale * (sign * plain(points) - least) + base * scale * spread

        unit = scale * spread
        return Task(space=self.space, loss=loss, noise=self.noise * unit, least=base * unit, spread=unit)

    def _rotation(self) -> Floats:
        if not self.rotated:
            return np.eye(self.n_columns)
        rotation: Floats = ortho_group.rvs(self.n_columns, random_state=np.random.default_rng(len(self.name)))
        return rotation

    def _choice(self, points: Floats, offset: Floats) -> Floats:
        """What the choice adds; of unit size beside the formula, whose last three columns it does not turn off."""
        level = np.clip(np.floor(points[:, -3] * 3), 0, 2).astype(int)
        return (np.array([0.3, 0.0, 0.1]) + offset)[level]


def _least(loss: Callable[[Floats], Floats], optimum: Floats, *, refine: bool) -> float:
    """The lowest loss on the unit cube: by searches from the formula's optimum and from the best of many points.

    Many points alone miss it where there are many local optima, or many columns.
    """
    n_columns = len(optimum)
    points = qmc.Sobol(n_columns, seed=np.random.default_rng(1)).random_base2(14 if refine else 11)
    points = np.vstack([optimum, points])
    values = loss(points)
    lowest = float(values.min())
    if not refine:
        return lowest
    best = points[1 + np.argsort(values[1:])[:12]]
    for start in (optimum, *best):
        end = minimize(lambda x: float(loss(x[None])[0]), start, bounds=[(0.0, 1.0)] * n_columns, method="L-BFGS-B")
        if n_columns <= 6:
            options = {"xatol": 1e-9, "fatol": 1e-12, "maxfev": 400 * n_columns}
            clipped_loss = lambda x: float(loss(np.clip(x, 0.0, 1.0)[None])[0])  # noqa: E731
            end = minimize(clipped_loss, end.x, method="Nelder-Mead", options=options)
        lowest = min(lowest, float(end.fun))
    return lowest


_FAMILIES = (
    Family(name="branin", formula=branin, n_columns=2, low=(-5.0, 0.0), high=(10.0, 15.0), minimiser=(math.pi, 2.275)),
    Family(
        name="hartmann-6",
        formula=hartmann,
        n_columns=6,
        minimiser=(0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
    ),
    Family(name="bowl-3", formula=bowl, n_columns=3, low=-1.0, shift=0.3),
    Family(name="ackley-5", formula=ackley, n_columns=5, low=-5.0, high=10.0),
    Family(name="hartmann-3-noisy", formula=hartmann, n_columns=3, noise=0.1, minimiser=(0.114614, 0.555649, 0.852547)),
    Family(name="mixed-5", formula=bowl, n_columns=5, low=-1.0, mixed=True),
    Family(name="hartmann-3", formula=hartmann, n_columns=3, minimiser=(0.114614, 0.555649, 0.852547)),
    Family(name="rosenbrock-4", formula=rosenbrock, n_columns=4, low=-2.0, high=2.0, minimiser=1.0),
    Family(name="levy-6", formula=levy, n_columns=6, low=-5.0, high=5.0, minimiser=1.0),
    Family(name="griewank-5", formula=griewank, n_columns=5, low=-10.0, high=10.0),
    Family(name="styblinski-tang-8", formula=styblinski_tang, n_columns=8, low=-5.0, high=5.0, minimiser=-2.903534),
    Family(name="rotated-bowl-10", formula=bowl, n_columns=10, low=-1.0, shift=0.3, rotated=True),
    Family(name="ackley-20", formula=ackley, n_columns=20, low=-5.0, high=10.0),
    Family(
        name="branin-noisy",
        formula=branin,
        n_columns=2,
        low=(-5.0, 0.0),
        high=(10.0, 15.0),
        noise=0.1,
        minimiser=(math.pi, 2.275),
    ),
    Family(name="mixed-levy-6", formula=levy, n_columns=6, low=-5.0, high=5.0, mixed=True, minimiser=1.0),
)
FAMILIES = {family.name: family for family in _FAMILIES}
"""By name."""
CHOICE = ("branin", "hartmann-6", "bowl-3", "ackley-5", "hartmann-3-noisy", "mixed-5")
"""Families that defaults are chosen on."""
REPORT = tuple(name for name in FAMILIES if name not in CHOICE)
"""Families that no choice is made on."""
