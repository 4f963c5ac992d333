"""The state of meta-training: all that changes from step to step."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jax import Array

from dre_jax.methods.dre.model.ensemble import EnsembleParams
from dre_jax.optim.adam import Moments


class TrainState(NamedTuple):
    """The state of meta-training after some steps."""

    params: EnsembleParams
    """Parameters of the model."""
    moments: Moments
    """Moments of Adam."""
    step: Array
    """i32 scalar: steps done."""


class LossEntry(NamedTuple):
    """A line of the loss history."""

    step: int
    train: float
    """Loss over fixed lists of the training tasks."""
    validation: float | None
    """Loss over fixed lists of the validation tasks; None without any."""


@dataclass
class TrainingRun:
    """The state of a training, with its loss history."""

    state: TrainState
    history: list[LossEntry] = field(default_factory=list)
    best: EnsembleParams | None = None
    best_step: int | None = None
    resumed_from: int | None = None

    @property
    def params(self) -> EnsembleParams:
        """The best parameters by validation loss where the training keeps them, else the last."""
        return self.state.params if self.best is None else self.best

    def best_loss(self) -> float:
        """Returns the validation loss of the best parameters; infinity without them."""
        losses = [entry.validation for entry in self.history if entry.step == self.best_step]
        return losses[0] if losses and losses[0] is not None else np.inf

    def evaluations_without_gain(self) -> int:
        """Returns the number of evaluations since the best."""
        return sum(entry.step > (self.best_step or 0) for entry in self.history)
