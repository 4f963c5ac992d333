"""Learning to sort (the thesis, "Case study with inverse mapping"): scorers trained to put lists of numbers in order.

A smaller number is the more relevant one, so that a scorer has to fall over the number line. What is fixed by the
thesis: numbers uniform in [1, 100], no position weights, 100 lists a batch, scores limited to 2 tanh(0.01 s), accuracy
over 1000 lists, five runs. It leaves open, and we choose: a scorer of 3 x 32 (its baselines' size) from PyTorch's
initial weights, Adam at 0.001, fresh lists in every epoch of one batch, and test lists as long as those trained on.

So it is the library's meta-training on one task, a table of many numbers, by an ensemble without a deep set whose
members are the runs: each has its own initial weights and draws its own lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax import LossConfig, MetaTrainConfig, ModelConfig, SearchSpace, Task, meta_train
from dre_jax.methods.dre.ensemble import EnsembleParams, Support, scores

RANGES = {"in range": (1.0, 100.0), "out of range": (-100.0, -1.0), "hybrid": (-50.0, 50.0)}
TRAINED_ON = RANGES["in range"]
LIMIT = 2.0
N_NUMBERS, N_PAIRS = 20_000, 20_000
Shares = dict[str, np.ndarray]
"""Range -> f64[seeds]."""


class Arm(NamedTuple):
    loss: str
    """Of `dre_jax.losses.LOSSES`."""
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
    """Sizes of the study."""

    arms: tuple[str, ...] = tuple(ARMS)
    list_sizes: tuple[int, ...] = (3, 30, 100)
    epochs: tuple[int, ...] = (100, 1000)
    seeds: int = 5
    batch: int = 100
    test_lists: int = 1000
    hidden: tuple[int, ...] = (32, 32, 32)


class Measured(NamedTuple):
    """Results of the seeds of one arm, list size and number of epochs."""

    arm: str
    list_size: int
    epochs: int
    accuracy: Shares
    """Of test lists that the scores put in order, the whole list."""
    pairs: Shares
    """Of pairs of numbers in order, whatever the list size; one that scores the same is not."""


def draw_numbers(rng: np.random.Generator, bounds: tuple[float, float], shape: tuple[int, ...]) -> np.ndarray:
    """Uniform numbers, ascending along the last axis: the most relevant first; f32[shape]."""
    return np.sort(rng.uniform(*bounds, shape).astype(np.float32), axis=-1)


@cache
def numbers_to_sort() -> SearchSpace:
    numbers = draw_numbers(np.random.default_rng(0), TRAINED_ON, (N_NUMBERS,))
    return SearchSpace("numbers", train={"numbers": Task("numbers", numbers[:, None], -numbers.astype(np.float64))})


def model_of(arm: Arm, sizes: Sizes) -> ModelConfig:
    return ModelConfig(
        members=sizes.seeds, hidden=sizes.hidden, context="none", range_limit=arm.limit, initialiser="torch_uniform"
    )


def train(arm: Arm, n: int, epochs: int, sizes: Sizes) -> EnsembleParams:
    """The scorers of all seeds; the same seed starts from the same weights, whatever the loss."""
    config = MetaTrainConfig(
        steps=epochs,
        lists_per_step=sizes.batch,
        n_query=n,
        n_support=1,
        learning_rate=arm.learning_rate,
        loss=LossConfig(name=arm.loss, weights="none"),
        evaluate_every=epochs,
        evaluation_lists=1,
    )
    return meta_train(numbers_to_sort(), model_of(arm, sizes), config, key=jax.random.key(0)).params


def score(model: ModelConfig, params: EnsembleParams, numbers: np.ndarray) -> np.ndarray:
    """Scores of all seeds; f32[...] -> f32[seeds, ...]."""
    nothing = Support(jnp.zeros((0, 1)), jnp.zeros(0), jnp.zeros(0, bool))
    found = scores(model, params, nothing, jnp.asarray(numbers.reshape(-1, 1)))
    return np.asarray(found).reshape(-1, *numbers.shape)


def is_in_order(numbers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns whether scores fall strictly over ascending numbers, equal ones aside; f32[..., n] twice -> bool[...]."""
    return np.all((np.diff(values) < 0) | (np.diff(numbers) == 0), axis=-1)


def measure(model: ModelConfig, params: EnsembleParams, shape: tuple[int, int]) -> Shares:
    """Shares of lists in order; the same lists for all seeds."""
    found = {}
    for i, (name, bounds) in enumerate(RANGES.items()):
        numbers = draw_numbers(np.random.default_rng([1, i]), bounds, shape)
        found[name] = is_in_order(numbers, score(model, params, numbers)).mean(axis=-1)
    return found


def run(name: str, n: int, sizes: Sizes) -> Iterator[Measured]:
    """One arm with one list size; a `Measured` for each number of epochs."""
    model = model_of(ARMS[name], sizes)
    for epochs in sizes.epochs:
        params = train(ARMS[name], n, epochs, sizes)
        lists, pairs = (measure(model, params, shape) for shape in ((sizes.test_lists, n), (N_PAIRS, 2)))
        yield Measured(name, n, epochs, lists, pairs)
