"""Methods whose values a test knows, in place of a class in each test."""

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from dre_jax.search import Capabilities, History

NOTHING_DECLARED = Capabilities()


@dataclass(frozen=True)
class Valued:
    """Values candidates by a function of the history and their columns; methods of one function are equal."""

    value: Callable[[History, Array], Array]
    capabilities: Capabilities = NOTHING_DECLARED

    def fit(self, meta, key):
        return None

    def acquire(self, params, history, candidates, key):
        return self.value(history, candidates.x)

    sample_posterior = acquire


def near_the_best(history, x):
    """Returns minus the squared distances from the best trial; zeros before the first."""
    best = history.x[jnp.argmin(jnp.where(history.where, history.level, jnp.iinfo(jnp.int32).max))]
    return jnp.where(jnp.any(history.where), -jnp.sum((x - best[None]) ** 2, axis=-1), 0.0)


NEAREST = Valued(near_the_best)


def first_column(history, x):
    return x[:, 0]


RISING = Valued(first_column)
