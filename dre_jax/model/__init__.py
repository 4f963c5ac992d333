"""The model: networks, the ensemble over them, and the ranks of their scores."""

from dre_jax.model.config import PAPER, PRESETS, ModelConfig, preset
from dre_jax.model.ensemble import EnsembleParams, Support, check_columns, init, scores, scores_in_blocks, widen
from dre_jax.model.ranks import gaussian_ranks, mean_and_deviation, mean_tie_ranks

__all__ = [
    "PAPER",
    "PRESETS",
    "EnsembleParams",
    "ModelConfig",
    "Support",
    "check_columns",
    "gaussian_ranks",
    "init",
    "mean_and_deviation",
    "mean_tie_ranks",
    "preset",
    "scores",
    "scores_in_blocks",
    "widen",
]
