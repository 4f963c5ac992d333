"""Configurations of meta-training and fine-tuning: frozen, hashable, static under jit."""

from dataclasses import dataclass

import optax

from dre_jax.checks import Checked, NonNegative, Positive, one_of
from dre_jax.losses import LOSSES, PositionWeights
from dre_jax.optim.schedule import Schedule, make_schedule


@dataclass(frozen=True, kw_only=True)
class LossConfig(Checked):
    """The loss over a list.

    Raises:
      ConfigError: for an unknown name.

    Example:
      >>> LossConfig(weights="inverse_log").name
      'listmle'
    """

    name: str = "listmle"
    """One of `dre_jax.losses.LOSSES`."""
    weights: PositionWeights = "inverse_linear"
    """Weights of the positions."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("loss", self.name, LOSSES)


@dataclass(frozen=True, kw_only=True)
class MetaTrainConfig(Checked):
    """Meta-training of one search space (the paper, Algorithm 1).

    Raises:
      ConfigError: where a number is out of range or a name is unknown.

    Example:
      >>> MetaTrainConfig(steps=500).n_query
      100
    """

    steps: Positive[int] = 5000
    """Adam steps."""
    lists_per_step: Positive[int] = 1
    """Lists that each member draws for a step."""
    n_support: Positive[int] = 20
    """Rows that feed the deep set."""
    n_query: Positive[int] = 100
    """Rows that are ranked."""
    learning_rate: Positive[float] = 1e-3
    """Adam's, at the start."""
    schedule: Schedule = "constant"
    """Learning rate over the steps."""
    loss: LossConfig = LossConfig()
    """The loss."""
    own_lists: bool = True
    """Members draw lists of their own; otherwise all learn from the same."""
    evaluate_every: Positive[int] = 1000
    """Steps between two entries of the loss history, and between two checkpoints."""
    evaluation_lists: Positive[int] = 64
    """Fixed lists a member that the training and the validation loss are measured on."""
    patience: Positive[int] | None = None
    """Evaluations without a better validation loss before training stops, keeping the best; None trains to the end."""

    def learning_rates(self) -> optax.Schedule:
        """Returns the schedule of the learning rate."""
        return make_schedule(self.schedule, self.learning_rate, self.steps)


@dataclass(frozen=True, kw_only=True)
class FineTuneConfig(Checked):
    """Fine-tuning before a trial (the paper, Algorithm 2, line 3; the thesis on restarts and cosine annealing).

    Raises:
      ConfigError: where a number is out of range or a name is unknown.

    Example:
      >>> FineTuneConfig(epochs=1000, learning_rate=1e-3).schedule
      'constant'
    """

    epochs: NonNegative[int] = 100
    """Full-batch Adam steps at every trial; 0 does not fine-tune."""
    learning_rate: Positive[float] = 3e-4
    """Adam's, at the start."""
    schedule: Schedule = "constant"
    """Learning rate over the epochs."""
    loss: LossConfig = LossConfig()
    """The loss."""

    def learning_rates(self) -> optax.Schedule:
        """Returns the schedule of the learning rate."""
        return make_schedule(self.schedule, self.learning_rate, self.epochs)


PAPER_LOSS = LossConfig(weights="inverse_log")
"""The paper's (equation 1)."""

PAPER_META_TRAINING = MetaTrainConfig(own_lists=False, loss=PAPER_LOSS)
"""The reference code's: one list a step, the same for all members. The paper takes 500,000 steps (section 4.3)."""

PAPER_FINE_TUNING = FineTuneConfig(epochs=1000, learning_rate=1e-3, loss=PAPER_LOSS)
"""The paper's: ten times the epochs, at three times the learning rate (section 4.3)."""

META_TRAINING_PRESETS = {"default": MetaTrainConfig(), "paper": PAPER_META_TRAINING}
"""Meta-training by the names of the model's presets."""
