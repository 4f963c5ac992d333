"""Deep ranking ensembles by name: the library's, the paper's, and those with other losses (the paper, hypothesis 3)."""

from __future__ import annotations

from dataclasses import replace

from dre_jax.methods.dre.method import DRE
from dre_jax.methods.dre.model_config import PAPER
from dre_jax.methods.dre.training_config import (
    PAPER_FINE_TUNING,
    PAPER_META_TRAINING,
    FineTuneConfig,
    LossConfig,
    MetaTrainConfig,
)
from dre_jax.methods.entry import SHORT, Entry
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT

_FREE = ("fine_tuning", "acquisition")
_PAPER = "Khazi, Pineda Arango and Grabocka 2023"
_FROM_RANDOM_WEIGHTS = replace(PAPER_FINE_TUNING, learning_rate=0.02)

LOSSES = {
    "regression": (LossConfig(name="mean_squared_error", weights="none"), "squared error"),
    "pointwise": (LossConfig(name="subset_regression", weights="none"), "a point-wise ranking loss"),
    "pairwise": (LossConfig(name="ranknet", weights="none"), "a pair-wise ranking loss"),
    "listwise": (LossConfig(weights="none"), "the list-wise loss without weights"),
    "listwise-weighted": (LossConfig(weights="inverse_log"), "the list-wise loss with the paper's weights"),
}
"""Losses by the name of the method that trains with them, and what they are."""


def _with_loss(loss: LossConfig, *, transfer: bool) -> DRE:
    """An ensemble that meta-trains and fine-tunes with a loss of its own, as long and as fast as the paper's."""
    return DRE(
        training=MetaTrainConfig(loss=loss),
        fine_tuning=replace(PAPER_FINE_TUNING if transfer else _FROM_RANDOM_WEIGHTS, loss=loss),
        acquisition=EXPECTED_IMPROVEMENT,
        transfer=transfer,
    )


ENTRIES = (
    Entry(
        name="dre",
        summary="deep ranking ensemble, meta-trained and fine-tuned before every trial",
        paper=_PAPER,
        transfer=True,
        default=DRE(),
        free=_FREE,
        reads_checkpoints=True,
    ),
    Entry(
        name="dre-paper",
        summary="the same with the paper's choices: one deep set, expected improvement, 1000 epochs at 0.001",
        paper=_PAPER,
        transfer=True,
        default=DRE(
            model=PAPER, training=PAPER_META_TRAINING, fine_tuning=PAPER_FINE_TUNING, acquisition=EXPECTED_IMPROVEMENT
        ),
        free=_FREE,
        reads_checkpoints=True,
    ),
    Entry(
        name="dre-no-finetune",
        summary="deep ranking ensemble, meta-trained, not fine-tuned",
        paper=_PAPER,
        transfer=True,
        default=DRE(fine_tuning=FineTuneConfig(epochs=0)),
        short={"acquisition": SHORT["acquisition"]},
        free=_FREE,
        reads_checkpoints=True,
    ),
    Entry(
        name="dre-ri",
        summary="deep ranking ensemble from random weights at every trial",
        paper=_PAPER,
        default=DRE(fine_tuning=_FROM_RANDOM_WEIGHTS, acquisition=EXPECTED_IMPROVEMENT, transfer=False),
    ),
    *(
        Entry(
            name=name if transfer else f"{name}-ri",
            summary=f"deep ensemble with {words}, {'tuned and picking as dre-paper' if transfer else 'else as dre-ri'}",
            paper=_PAPER,
            transfer=transfer,
            default=_with_loss(loss, transfer=transfer),
            free=_FREE,
        )
        for name, (loss, words) in LOSSES.items()
        for transfer in (True, False)
    ),
)
