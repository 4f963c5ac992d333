"""Learning to sort (the thesis, "Case study with inverse mapping"): scorers trained to put lists of numbers in order.

A smaller number is the more relevant one, so that a scorer has to fall over the number line. What is fixed by the
thesis: numbers uniform in [1, 100], no position weights, 100 lists a batch, scores limited to 2 tanh(0.01 s), accuracy
over 1000 lists, five runs. It leaves open, and we choose: a scorer of 3 x 32 (its baselines' size) from PyTorch's
initial weights, Adam at 0.001, fresh lists in every epoch of one batch, and test lists as long as those trained on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dre_jax.losses import RANKED_LOSSES, rank_sorted
from dre_jax.model import EnsembleParams, ModelConfig, Support, init, scores
from dre_jax.training.adam import Moments, StepSizes, apply_gradient, step_sizes, zero_moments
from dre_jax.training.config import MetaTrainConfig

RANGES = {"in range": (1.0, 100.0), "out of range": (-100.0, -1.0), "hybrid": (-50.0, 50.0)}
TRAINED_ON = RANGES["in range"]
LIMIT = 2.0

N_PAIRS = 20_000
State = tuple[EnsembleParams, Moments]
Shares = dict[str, np.ndarray]
"""Range -> f64[seeds]."""

fold_in = jax.vmap(jax.random.fold_in, in_axes=(0, None))


class Arm(NamedTuple):
    loss: str
    """Of `dre_jax.losses.RANKED_LOSSES`."""
    limit: float | None
    """Range of the scores, see `ModelConfig.range_limit`."""
    learning_rate: float = 1e-3
    """Adam's."""


ARMS = {
    "ListMLE": Arm("listmle", LIMIT),
    "ListMLE, rate 1e-4": Arm("listmle", LIMIT, 1e-4),
    "ListMLE, free range": Arm("listmle", None),
    "ListNet": Arm("listnet", LIMIT),
    "RankNet": Arm("ranknet", LIMIT),
    "Subset regression": Arm("subset_regression", LIMIT),
    "Squared error": Arm("mean_squared_error", LIMIT),
}
"""The first is the thesis' case study. Rate and range are not stated or in question; the losses are those that it
compares elsewhere, and plain regression."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of the study; static under jit."""

    arms: tuple[str, ...] = tuple(ARMS)
    list_sizes: tuple[int, ...] = (3, 30, 100)
    epochs: tuple[int, ...] = (100, 1000)
    seeds: int = 5
    batch: int = 100
    test_lists: int = 1000
    hidden: tuple[int, ...] = (32, 32, 32)

    def portion(self) -> int:
        """Epochs that are compiled together: the largest number that all numbers of epochs are multiples of."""
        return math.gcd(*self.epochs)


class Measured(NamedTuple):
    """Results of the seeds of one arm, list size and number of epochs."""

    arm: str
    list_size: int
    epochs: int
    accuracy: Shares
    """Of test lists that the scores put in order, the whole list."""
    pairs: Shares
    """Of pairs of numbers in order, whatever the list size."""
    tied: Shares
    """Of pairs of different numbers that score the same."""


def draw_numbers(key: Array, bounds: tuple[float, float], shape: tuple[int, ...]) -> Array:
    """Uniform numbers, ascending along the last axis: the most relevant first; f32[shape]."""
    return jnp.sort(jax.random.uniform(key, shape, minval=bounds[0], maxval=bounds[1]), axis=-1)


def relevance(numbers: Array) -> Array:
    """The response for the losses: 1 for the smallest number trained on, 0 for the largest."""
    low, high = TRAINED_ON
    return (high - numbers) / (high - low)


def _model(arm: Arm, sizes: Sizes) -> ModelConfig:
    return ModelConfig(
        members=1, hidden=sizes.hidden, context="none", range_limit=arm.limit, initialiser="torch_uniform"
    )


def score(model: ModelConfig, params: EnsembleParams, numbers: Array) -> Array:
    """Scores of one scorer; f32[...] -> f32[...]."""
    nothing = Support(jnp.zeros((0, 1)), jnp.zeros(0), jnp.zeros(0, bool))
    return scores(model, params, nothing, numbers.reshape(-1, 1))[0].reshape(numbers.shape)


def is_in_order(numbers: Array, values: Array) -> Array:
    """Returns whether scores fall strictly over ascending numbers, equal ones aside; f32[..., n] twice -> bool[...]."""
    falls = values[..., 1:] < values[..., :-1]
    return jnp.all(falls | (numbers[..., 1:] == numbers[..., :-1]), axis=-1)


def has_tie(numbers: Array, values: Array) -> Array:
    """Returns whether different neighbours among ascending numbers score the same; f32[..., n] twice -> bool[...]."""
    same = values[..., 1:] == values[..., :-1]
    return jnp.any(same & (numbers[..., 1:] != numbers[..., :-1]), axis=-1)


def _start(model: ModelConfig, key: Array) -> State:
    params = init(model, 1, key)
    return params, zero_moments(params)


@partial(jax.jit, static_argnames=("arm", "sizes", "n"))
def _train(arm: Arm, sizes: Sizes, n: int, states: State, keys: Array, done: Array) -> State:
    """A portion of epochs, one fresh batch of lists each, for all seeds side by side."""
    model, loss_of = _model(arm, sizes), RANKED_LOSSES[arm.loss]
    rates = MetaTrainConfig(learning_rate=arm.learning_rate).learning_rates()

    def epoch(key: Array, state: State, inputs: tuple[Array, StepSizes]) -> tuple[State, None]:
        params, moments = state
        number, size = inputs
        numbers = draw_numbers(jax.random.fold_in(key, number), TRAINED_ON, (sizes.batch, n))
        response = relevance(numbers)
        lists = rank_sorted(response, response, jnp.ones(numbers.shape, bool), weights="none")
        gradient = jax.grad(lambda p: jnp.mean(loss_of(score(model, p, numbers), lists)))(params)
        return apply_gradient(params, gradient, moments, size), None

    epochs = done + jnp.arange(sizes.portion(), dtype=jnp.int32)
    inputs = epochs, step_sizes(rates, epochs)
    return jax.vmap(lambda state, key: lax.scan(partial(epoch, key), state, inputs)[0])(states, keys)


@partial(jax.jit, static_argnames=("model", "shape"))
def _measure(model: ModelConfig, shape: tuple[int, ...], params: EnsembleParams, keys: Array) -> dict[str, Array]:
    """By range the shares of lists in order and of lists with a tie, f32[2, seeds]; every seed has its own lists."""

    def one(params: EnsembleParams, key: Array, bounds: tuple[float, float]) -> Array:
        numbers = draw_numbers(key, bounds, shape)
        values = score(model, params, numbers)
        found = jnp.stack([is_in_order(numbers, values), has_tie(numbers, values)])
        return jnp.mean(found, axis=1, dtype=jnp.float32)

    return {
        name: jax.vmap(partial(one, bounds=bounds), out_axes=1)(params, fold_in(keys, i))
        for i, (name, bounds) in enumerate(RANGES.items())
    }


def run(name: str, n: int, sizes: Sizes) -> Iterator[Measured]:
    """One arm with one list size; a `Measured` for each number of epochs, ascending."""
    arm = ARMS[name]
    model = _model(arm, sizes)
    # The same seed starts from the same weights and sees the same lists, whatever the loss.
    keys = jax.vmap(jax.random.key)(jnp.arange(sizes.seeds))
    start_keys, list_keys, test_keys, pair_keys = (fold_in(keys, i) for i in range(4))
    states = jax.vmap(partial(_start, model))(start_keys)
    for done in range(sizes.portion(), max(sizes.epochs) + 1, sizes.portion()):
        states = _train(arm, sizes, n, states, list_keys, jnp.int32(done - sizes.portion()))
        if done in sizes.epochs:
            lists = _measure(model, (sizes.test_lists, n), states[0], test_keys)
            pairs = _measure(model, (N_PAIRS, 2), states[0], pair_keys)
            yield Measured(name, n, done, *(_shares(*one) for one in ((lists, 0), (pairs, 0), (pairs, 1))))


def _shares(found: dict[str, Array], row: int) -> Shares:
    return {name: np.asarray(shares[row], np.float64) for name, shares in found.items()}
