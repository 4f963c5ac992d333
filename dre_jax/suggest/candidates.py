"""Candidates of a continuous search: valid configurations from a Sobol sequence and around the best trials.

They are points of the unit cube (`dre_jax.space.layout`). A step moves numbers a little, gives other levels to
categoricals, and moves one item of a permutation; inactive hyperparameters stay where they are.
`dre_jax.suggest.proposals` chooses among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int, Key

from dre_jax.checks import one_of
from dre_jax.errors import ConfigError
from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.search.method import Method, PastWeighingMethod, PosteriorMethod
from dre_jax.space.layout import SpaceLayout
from dre_jax.space.layout_orders import Order
from dre_jax.suggest.pending import PENDING_STRATEGIES
from dre_jax.suggest.refinement import supports_refinement

_MANY = 12
"""Number of hyperparameters above which candidates change few of them; see `default_candidates`."""


@dataclass(frozen=True, kw_only=True)
class CandidateConfig:
    """Settings for drawing the points that a method values.

    Raises `ConfigError` for counts or widths that are not positive, or a number of even points that is not a power of
    two.
    """

    even: int = 1024
    """Points of a scrambled Sobol sequence, a power of two."""
    steps: int = 512
    """Steps from the best points in each round, shared out evenly among the points and the widths."""
    parents: int = 4
    """Number of the best trials that steps start from; in later rounds, `sources` of the best points."""
    widths: tuple[float, ...] = (0.2, 0.05, 0.01)
    """Standard deviations of a number's step."""
    changed: float = 0.5
    """Probability that a step changes a hyperparameter; each step changes at least one."""
    bold: int = 0
    """Number of first trials whose steps change half of the hyperparameters, for any ``changed``."""
    refinements: int = 1
    """Rounds of steps from the points that the method valued most; each costs as much as the first valuation."""
    starts: int = 12
    """Number of starts, among the points that the method values most and the best trials, from which its values are
    maximised by gradient, if it has gradients; 0 for none."""
    ascent_steps: int = 30
    """Maximum number of steps of a search by gradient."""
    radius: float = 1.0
    """Maximum distance of a search by gradient from its start, in each coordinate."""
    pending_strategy: str = "mean"
    """How the responses of pending trials are imputed; see `dre_jax.suggest.pending`."""

    def __post_init__(self) -> None:
        counts = (self.steps, self.refinements, self.starts, self.ascent_steps)
        if (
            min(self.even, self.parents) < 1
            or min(counts) < 0
            or not self.widths
            or min(*self.widths, self.radius) <= 0
        ):
            raise ConfigError(f"points to draw need positive counts and widths, but got {self}")
        if self.even & (self.even - 1):
            raise ConfigError(f"the number of even points must be a power of two, but got even={self.even}")

        one_of("pending_strategy", self.pending_strategy, PENDING_STRATEGIES)

    @property
    def sources(self) -> int:
        """Number of points that later rounds step from."""
        return min(4 * self.parents, self.even)


def default_candidates(method: Method, layout: SpaceLayout, pending_strategy: str = "mean") -> CandidateConfig:
    """Returns the settings for a method and a space: fewer candidates are drawn if they are refined by gradient.

    Steps from the best points look for other levels, so a space of real numbers alone needs no second round of them.

    In spaces of more than 12 hyperparameters, most of what a model values is its own uncertainty, which is largest in
    corners. For a `PosteriorMethod` that does not weigh past tasks, most candidates there are the best
    trials with one or two hyperparameters changed. While there are fewer trials than hyperparameters, half of them are
    changed: no single effect is known well then, and a change of one or two gains little. Real numbers alone are also
    refined by gradient, each near its start. With choices or whole numbers, this makes searches no better.
    """
    if layout.n_parts > _MANY and isinstance(method, PosteriorMethod) and not isinstance(method, PastWeighingMethod):
        return CandidateConfig(
            even=64,
            steps=256,
            changed=1.0 / layout.n_parts,
            bold=layout.n_parts,
            refinements=0,
            starts=0 if any(layout.sizes) else 6,
            ascent_steps=12,
            radius=0.1,
            pending_strategy=pending_strategy,
        )
    if pending_strategy == "draw" or not supports_refinement(method, layout):
        return CandidateConfig(pending_strategy=pending_strategy)
    if any(layout.sizes):
        return CandidateConfig(even=512, steps=256, pending_strategy=pending_strategy)
    return CandidateConfig(even=256, steps=256, refinements=0, pending_strategy=pending_strategy)


def canonicalize(layout: SpaceLayout, points: Float[AnyArray, "*batch P"]) -> Float[AnyArray, "*batch P"]:
    """Returns one point for all points of a configuration: the middle of a level, 0.5 where inactive."""
    xp, coordinates = namespace(points), []
    for i, (part, active) in enumerate(zip(layout.parts, layout.active(points), strict=True)):
        u = points[..., i]
        if part.levels:
            u = part.middle(u)
        coordinates.append(xp.where(active, u, 0.5))
    return xp.stack(coordinates, axis=-1)


class StepNumbers(NamedTuple):
    """Random numbers of one round of steps, for n steps and P parts."""

    width: Float[Array, "n 1"]
    """Standard deviations."""
    step: Float[Array, "n P"]
    """Normal numbers."""
    anywhere: Float[Array, "n P"]
    """Uniform numbers."""
    is_changed: Bool[Array, "n P"]
    """Whether a step changes a hyperparameter."""
    coin: Float[Array, "n P"]
    """Uniform numbers."""


def draw_step_numbers(
    config: CandidateConfig, n_parts: int, dtype: Any, key: Key[Array, ""], trial: Int[Array, ""] | int
) -> StepNumbers:
    """Draws the random numbers of one round of steps before a trial of some number."""
    width_key, change_key, coin_key, step_key, level_key = jax.random.split(key, 5)
    shape = (config.steps, n_parts)
    changed = jnp.where(trial < config.bold, jnp.asarray(0.5, dtype), jnp.asarray(config.changed, dtype))
    return StepNumbers(
        jax.random.choice(width_key, jnp.asarray(config.widths, dtype), (config.steps, 1)),
        jax.random.normal(step_key, shape, dtype),
        jax.random.uniform(level_key, shape, dtype),
        jax.random.bernoulli(change_key, changed, shape),
        jax.random.uniform(coin_key, shape, dtype),
    )


def steps_from(
    layout: SpaceLayout,
    config: CandidateConfig,
    parents: Float[Array, "B P"],
    count: Int[Array, ""],
    numbers: StepNumbers,
) -> Float[Array, "{config.steps} P"]:
    """Returns points that are one random step away from the best of the parents, best first.

    The first ``count`` parents exist. Without any, the steps start from the middle.
    """
    n = config.steps
    # If there are fewer parents than slots, they serve in turn.
    start = parents[jnp.arange(n, dtype=count.dtype) % jnp.maximum(jnp.minimum(count, parents.shape[0]), 1)]
    start = jnp.where(count > 0, start, 0.5)
    dtype = parents.dtype
    sizes = jnp.asarray(layout.sizes, dtype)
    # At least to the next value where there are few.
    width = jnp.maximum(numbers.width, jnp.where(sizes > 0, 1.0 / jnp.maximum(sizes, 1.0), 0.0)[None, :])
    near = jnp.clip(start + width * numbers.step, 0.0, 1.0)
    new = jnp.where(jnp.asarray(layout.is_unordered)[None, :], numbers.anywhere, near)
    for i, part in enumerate(layout.parts):
        if isinstance(part, Order):
            distance = numbers.width[:, 0] * numbers.step[:, i]
            new = new.at[:, i].set(part.step(start[:, i], distance, numbers.anywhere[:, i]))
    active = jnp.stack(layout.active(start), axis=-1)
    coin = jnp.where(active, numbers.coin, -1.0)
    has_largest_coin = coin == jnp.max(coin, axis=1, keepdims=True)
    # The old coordinate of a hyperparameter that becomes active has no meaning, so the new one is uniform.
    start = jnp.where(active, start, numbers.anywhere)
    return jnp.where((numbers.is_changed | has_largest_coin) & active, new, start)
