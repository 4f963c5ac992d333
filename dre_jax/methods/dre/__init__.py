"""Deep Ranking Ensembles (Khazi et al. 2023): the model, meta-training, fine-tuning, and the method.

Read `dre` first, then `model`, `trainer` and `steps` (meta-training), `fine_tuning`. The loops also exist in C++ for
CPUs and in CUDA (`backends`).
"""

from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.methods.dre.model.ensemble import EnsembleParams, Support, init, pad_ensemble, scores
from dre_jax.methods.dre.model.model_config import PAPER, PRESETS, ModelConfig, preset
from dre_jax.methods.dre.trainer import MetaTrainingResult, meta_train
from dre_jax.methods.dre.training_config import PAPER_FINE_TUNING, FineTuneConfig, LossConfig, MetaTrainConfig

__all__ = [
    "PAPER",
    "PAPER_FINE_TUNING",
    "PRESETS",
    "EnsembleParams",
    "FineTuneConfig",
    "LossConfig",
    "MetaTrainConfig",
    "MetaTrainingResult",
    "ModelConfig",
    "Support",
    "fine_tune",
    "init",
    "meta_train",
    "pad_ensemble",
    "preset",
    "scores",
]
