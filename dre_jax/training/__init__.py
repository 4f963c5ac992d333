"""Meta-training on past tasks, and fine-tuning on the task at hand."""

from dre_jax.training.config import PAPER_FINE_TUNING, FineTuneConfig, LossConfig, MetaTrainConfig
from dre_jax.training.fine_tuning import fine_tune
from dre_jax.training.trainer import MetaTrained, meta_train

__all__ = [
    "PAPER_FINE_TUNING",
    "FineTuneConfig",
    "LossConfig",
    "MetaTrainConfig",
    "MetaTrained",
    "fine_tune",
    "meta_train",
]
