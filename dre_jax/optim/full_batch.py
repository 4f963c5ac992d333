"""Training on the whole history in every step, because a history has only a few dozen rows."""

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

_UNROLL = 2  # steps in one iteration of the loop, as in fine-tuning


@dataclass(frozen=True, kw_only=True)
class HistoryFitConfig:
    """Fitting to a history.

    Raises:
      ConfigError: if a number is out of range or a name is unknown.
    """

    steps: int
    """Number of Adam steps before every trial."""
    learning_rate: float
    """Initial learning rate of Adam; a cosine decays it to zero."""

    def __post_init__(self) -> None:
        at_least(0, self, "steps")
        positive(self, "learning_rate")


@dataclass(frozen=True, kw_only=True)
class FullBatchConfig(HistoryFitConfig):
    """Training of a network on a history."""

    schedule: Schedule = "constant"
    """Schedule of the learning rate: constant, or a cosine decay to zero."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("schedule", self.schedule, get_args(Schedule))

    def learning_rates(self) -> optax.Schedule:
        """Returns the schedule of the learning rate."""
        return make_schedule(self.schedule, self.learning_rate, self.steps)


def train_full_batch(config: FullBatchConfig, loss: Callable[[T], Array], start: T) -> T:
    """Returns the parameters after minimising a loss by Adam; elements of the gradient that are not finite count as 0.

    If the loss is the sum of the losses of an ensemble's members, each member trains on its own, because Adam is
    elementwise.
    """
    if config.steps == 0:
        return start
    steps, rates = jnp.arange(config.steps), config.learning_rates()
    return descend(lambda params, _: loss(params), begin(start), rates, steps, unroll=_UNROLL)[0].params
