"""Training on the whole history at every step: it is a few dozen rows, so there is nothing to draw batches for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, get_args

import jax.numpy as jnp
import optax
from jax import Array

from dre_jax.checks import at_least, one_of, positive
from dre_jax.optim.descent import begin, descend
from dre_jax.optim.schedule import Schedule, make_schedule

T = TypeVar("T")

_UNROLL = 2  # steps in a turn of the loop, as in fine-tuning


@dataclass(frozen=True, kw_only=True)
class HistoryFitConfig:
    """Fitting to a history.

    Raises:
      ConfigError: where a number is out of range or a name is unknown.
    """

    steps: int
    """Adam steps before every trial."""
    learning_rate: float
    """Adam's, at the start; it falls to zero along a cosine."""

    def __post_init__(self) -> None:
        at_least(0, self, "steps")
        positive(self, "learning_rate")


@dataclass(frozen=True, kw_only=True)
class FullBatchConfig(HistoryFitConfig):
    """Training of a network on a history."""

    schedule: Schedule = "constant"
    """Learning rate over the steps: constant, or a cosine decay to zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("schedule", self.schedule, get_args(Schedule))

    def learning_rates(self) -> optax.Schedule:
        """The learning rate of each step."""
        return make_schedule(self.schedule, self.learning_rate, self.steps)


def train_full_batch(config: FullBatchConfig, loss: Callable[[T], Array], start: T) -> T:
    """Parameters after Adam's steps down a loss; an element of its gradient that is not finite moves nothing.

    Members of an ensemble that stand in front of every leaf are trained side by side, each on its own, where the loss
    is the sum of theirs: Adam works element by element.
    """
    if config.steps == 0:
        return start
    steps, rates = jnp.arange(config.steps), config.learning_rates()
    return descend(lambda params, _: loss(params), begin(start), rates, steps, unroll=_UNROLL)[0].params
