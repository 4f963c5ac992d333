"""Families of test functions on the unit cube: every task is shifted, turned and scaled, and its optimum is known.

A task's loss is

    10^u (f(z(x)) - f*) + c,     z(x) = low + (high - low) (1/2 + R (x - 1/2) + s)

with a shift s for each task, one rotation R for a family that is rotated, and u uniform in [-6, 6].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from dre_jax.functions import formulas
from dre_jax.optim.quasi_newton import maximise_in_box
from dre_jax.space.parameters import Categorical, Float, Int
from dre_jax.space.sobol import sobol_points
from dre_jax.space.space import Space
from dre_jax.suggest.candidates import canonicalize

Floats = npt.NDArray[np.float64]
SPREAD_POINTS = 2048
"""Random points whose median loss is the unit of regret."""
_STARTS, _STEPS = 12, 400
_N_CHOICES, _HIGHEST = 3, 8


class FamilyTask(NamedTuple):
    """The random parts of a task, and its known optimum and scale; arrays in float64 or float32."""

    shift: Any
    """f[D]"""
    offset: Any
    """f[3]: terms that the choices of a mixed space add."""
    sign: Any
    """-1 for a reversed loss."""
    optimum: Any
    """Scalar: the least loss before scaling."""
    scale: Any
    least: Any
    """Scalar: the loss of the optimum."""
    spread: Any
    """Scalar: difference of the median loss of random points and the optimum."""
    noise: Any
    """Scalar: standard deviation of the noise of an evaluation."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Functions that are alike; for `dre_jax.optimize_functions`, ``family.loss`` on ``family.space``.

    Example:
      >>> family = FAMILIES["branin"]
      >>> task = family.draw(np.random.default_rng(0))
      >>> bool(family.regret(task, family.loss(task, jnp.array([0.5, 0.5]))) > 0.0)
      True
    """

    name: str
    formula: Callable[[Array], Array]
    """Of one point."""
    n_columns: int
    low: float | tuple[float, ...] = 0.0
    high: float | tuple[float, ...] = 1.0
    shift: float = 0.1
    """Maximum shift of a task in every column, as a share of the cube's edge."""
    rotated: bool = False
    noise: float = 0.0
    """Standard deviation of an evaluation's noise, in spreads."""
    minimiser: float | tuple[float, ...] = 0.0
    """Optimum of the formula, between `low` and `high`."""
    mixed: bool = False
    """The last three columns are a choice of three, a whole number, and a number that one of the choices has."""

    @cached_property
    def space(self) -> Space:
        """Numbers from 0 to 1, or some other parameters at the end."""
        names = [f"x{i}" for i in range(self.n_columns)]
        space: dict[str, Any] = {name: Float(0.0, 1.0) for name in names}
        if self.mixed:
            space[names[-3]] = Categorical(("a", "b", "c"))
            space[names[-2]] = Int(0, _HIGHEST)
            space[names[-1]] = Float(0.0, 1.0, when={names[-3]: "c"})
        return Space(space)

    def loss(self, task: FamilyTask, at: Array | Mapping[str, Array], key: Array | None = None) -> Array:
        """Returns the loss at a point f[D] of the unit cube, or of hyperparameters as `optimize_functions` has them.

        Args:
          task: a task of the family.
          at: the point, or hyperparameters.
          key: adds the noise of an evaluation; None for none.
        """
        loss = task.scale * (task.sign * self._plain(task, self._point(at)) - task.optimum) + task.least
        return loss if key is None else loss + task.noise * jax.random.normal(key, dtype=loss.dtype)

    def regret(self, task: FamilyTask, loss: Any) -> Any:
        """Returns how far losses without noise are from the optimum, 1 for that of the median random point."""
        return np.maximum(np.asarray(loss) - task.least, 0.0) / task.spread

    def draw(self, random: np.random.Generator, *, reverse: bool = False, refine: bool = True) -> FamilyTask:
        """Returns a task with arrays in float64.

        Args:
          random: generator that draws the task.
          reverse: whether the loss is reversed.
          refine: whether the optimum is searched for; otherwise it is that of the formula, or the best of many points.
        """
        shift, offset = random.uniform(-self.shift, self.shift, self.n_columns), random.normal(0.0, 0.1, 3)
        sign = np.float64(-1.0 if reverse else 1.0)
        unit = np.float64(1.0)
        plain = FamilyTask(shift, offset, sign, 0 * unit, unit, 0 * unit, unit, 0 * unit)
        optimum = (self._column(self.minimiser) - self._column(self.low)) / self._width()
        optimum = np.clip(0.5 + (optimum - shift - 0.5) @ self._rotation, 0.0, 1.0)
        losses = self.losses(plain, np.random.default_rng(0).random((SPREAD_POINTS, self.n_columns)))
        least = self._least(plain, optimum, refine=refine)
        spread = np.float64(np.median(losses) - least)
        size = np.float64(10 ** random.uniform(-6, 6))
        base = np.float64(random.normal())
        return FamilyTask(shift, offset, sign, least, size / spread, base * size, size, np.float64(self.noise * size))

    def losses(self, task: FamilyTask, points: Floats) -> Floats:
        """Returns losses f64[n] at points f64[n, D], in float64 for any setting of the process."""
        with jax.enable_x64(True):
            return np.asarray(_losses(self, *jax.device_put((task, np.asarray(points, np.float64)))))

    def _plain(self, task: FamilyTask, point: Array) -> Array:
        rotation, low, width = (jnp.asarray(a, point.dtype) for a in (self._rotation, self._low(), self._width()))
        turned = jnp.sum(rotation * (point - 0.5)[None, :], axis=1) if self.rotated else point - 0.5
        value = self.formula(low + width * (0.5 + turned + task.shift))
        if not self.mixed:
            return value
        level = jnp.clip(jnp.floor(point[-3] * _N_CHOICES), 0, _N_CHOICES - 1).astype(jnp.int32)
        return value + (jnp.asarray([0.3, 0.0, 0.1], point.dtype) + task.offset)[level]

    def _point(self, at: Array | Mapping[str, Array]) -> Array:
        if not isinstance(at, Mapping):
            return at
        dtype = at["x0"].dtype  # of a number
        parts = zip(self.space.sequence, self.space.layout.parts, strict=True)
        point = jnp.stack([part.coordinates(at[name].astype(dtype)) for name, part in parts])
        return canonicalize(self.space.layout, point)

    def _column(self, value: float | tuple[float, ...]) -> Floats:
        return np.broadcast_to(np.array(value, np.float64), self.n_columns)

    def _low(self) -> Floats:
        return self._column(self.low)

    def _width(self) -> Floats:
        return self._column(self.high) - self._column(self.low)

    @cached_property
    def _rotation(self) -> Floats:
        if not self.rotated:
            return np.eye(self.n_columns)
        from scipy.stats import ortho_group  # importing it takes half a second

        rotation: Floats = ortho_group.rvs(self.n_columns, random_state=np.random.default_rng(len(self.name)))
        return rotation

    def _least(self, task: FamilyTask, optimum: Floats, *, refine: bool) -> np.float64:
        """Returns the lowest loss, by searches from the formula's optimum and from the best of many points.

        Many points alone miss it where there are many local optima, or many columns.
        """
        points = sobol_points(2**14 if refine else 2**11, self.n_columns, 1).astype(np.float64)
        points = np.vstack([optimum, points])
        losses = self.losses(task, points)
        if not refine:
            return np.float64(losses.min())
        starts = points[[0, *1 + np.argsort(losses[1:])[:_STARTS]]]
        with jax.enable_x64(True):
            return np.float64(min(losses.min(), _lowest(self, *jax.device_put((task, starts)))))


@partial(jax.jit, static_argnames="family")
def _losses(family: Family, task: FamilyTask, points: Array) -> Array:
    points = canonicalize(family.space.layout, points)
    return jax.vmap(partial(family.loss, task))(points)


@partial(jax.jit, static_argnames="family")
def _lowest(family: Family, task: FamilyTask, starts: Array) -> Array:
    """Returns the lowest loss of searches in the unit cube, of the real numbers, from starts f[S, D]."""
    starts = canonicalize(family.space.layout, starts)
    value_and_gradient = jax.vmap(jax.value_and_grad(lambda point: -family.loss(task, point)))
    real = jnp.asarray([size == 0 for size in family.space.layout.sizes])
    movable = real[None, :] & jnp.stack(family.space.layout.active(starts), axis=-1)
    edge = jnp.zeros(starts.shape[1], starts.dtype)
    options: dict[str, Any] = {"steps": _STEPS, "reach": 0.2, "tolerance": 1e-14, "movable": movable}
    return -jnp.max(maximise_in_box(value_and_gradient, starts, edge, edge + 1.0, **options).values)


def stack_tasks(tasks: Sequence[FamilyTask], dtype: Any = np.float64) -> FamilyTask:
    """Returns tasks as one, with the tasks in front of each array, for `optimize_functions`."""
    return jax.tree.map(lambda *leaves: np.stack(leaves).astype(dtype), *tasks)


_BRANIN: dict[str, Any] = {
    "formula": formulas.branin,
    "n_columns": 2,
    "low": (-5.0, 0.0),
    "high": (10.0, 15.0),
    "minimiser": (np.pi, 2.275),
}
_HARTMANN_3: dict[str, Any] = {
    "formula": formulas.hartmann,
    "n_columns": 3,
    "minimiser": (0.114614, 0.555649, 0.852547),
}
_ACKLEY: dict[str, Any] = {"formula": formulas.ackley, "low": -5.0, "high": 10.0}
_BOWL: dict[str, Any] = {"formula": formulas.bowl, "low": -1.0}
_LEVY: dict[str, Any] = {"formula": formulas.levy, "n_columns": 6, "low": -5.0, "high": 5.0, "minimiser": 1.0}
_FAMILIES = (
    Family(name="branin", **_BRANIN),
    Family(
        name="hartmann-6",
        formula=formulas.hartmann,
        n_columns=6,
        minimiser=(0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
    ),
    Family(name="bowl-3", **_BOWL, n_columns=3, shift=0.3),
    Family(name="ackley-5", **_ACKLEY, n_columns=5),
    Family(name="hartmann-3-noisy", **_HARTMANN_3, noise=0.1),
    Family(name="mixed-5", **_BOWL, n_columns=5, mixed=True),
    Family(name="hartmann-3", **_HARTMANN_3),
    Family(name="rosenbrock-4", formula=formulas.rosenbrock, n_columns=4, low=-2.0, high=2.0, minimiser=1.0),
    Family(name="levy-6", **_LEVY),
    Family(name="griewank-5", formula=formulas.griewank, n_columns=5, low=-10.0, high=10.0),
    Family(
        name="styblinski-tang-8",
        formula=formulas.styblinski_tang,
        n_columns=8,
        low=-5.0,
        high=5.0,
        minimiser=-2.903534,
    ),
    Family(name="rotated-bowl-10", **_BOWL, n_columns=10, shift=0.3, rotated=True),
    Family(name="ackley-20", **_ACKLEY, n_columns=20),
    Family(name="branin-noisy", **_BRANIN, noise=0.1),
    Family(name="mixed-levy-6", **_LEVY, mixed=True),
)
FAMILIES = {family.name: family for family in _FAMILIES}
"""By name."""
