"""Training on the whole history in every step, because a history has only a few dozen rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Float

from dre_jax.checks import Checked, NonNegative, Positive
from dre_jax.optim.descent import begin, descend
from dre_jax.optim.schedule import Schedule, make_schedule

T = TypeVar("T")

_UNROLL = 2  # steps in one iteration of the loop, as in fine-tuning


@dataclass(frozen=True, kw_only=True)
class HistoryFitConfig(Checked):
    """Fitting to a history. Raises `ConfigError` if a number is out of range or a name is unknown."""

    steps: NonNegative[int]
    """Number of Adam steps before every trial."""
    learning_rate: Positive[float]
    """Initial learning rate of Adam; a cosine decays it to zero."""


@dataclass(frozen=True, kw_only=True)
class FullBatchConfig(HistoryFitConfig):
    """Training of a network on a history."""

    schedule: Schedule = "constant"
    """Schedule of the learning rate: constant, or a cosine decay to zero."""

    def learning_rates(self) -> optax.Schedule:
        """Returns the schedule of the learning rate."""
        return make_schedule(self.schedule, self.learning_rate, self.steps)


def train_full_batch(config: FullBatchConfig, loss: Callable[[T], Float[Array, ""]], start: T) -> T:
    """Returns the parameters after minimising a loss by Adam; elements of the gradient that are not finite count as 0.

    If the loss is the sum of the losses of an ensemble's members, each member trains on its own, because Adam is
    elementwise.
    """
    if config.steps == 0:
        return start
    steps, rates = jnp.arange(config.steps), config.learning_rates()
    return descend(lambda params, _: loss(params), begin(start), rates, steps, unroll=_UNROLL)[0].params
