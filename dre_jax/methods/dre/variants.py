"""Deep ranking ensembles by name: the library's, the paper's, and those with other losses (the paper, hypothesis 3)."""

from dataclasses import replace

from dre_jax.methods.dre.dre import DRE
from dre_jax.methods.dre.model.model_config import PAPER
from dre_jax.methods.dre.training_config import PAPER_FINE_TUNING, PAPER_META_TRAINING, LossConfig, MetaTrainConfig
from dre_jax.methods.entries.entry import SHORT, Entry
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT

_DRE = Entry(
    name="dre",
    summary="deep ranking ensemble, meta-trained and fine-tuned before every trial",
    paper="Khazi, Pineda Arango and Grabocka 2023",
    transfer=True,
    default=DRE(),
    free=("fine_tuning", "acquisition"),
    reads_checkpoints=True,
)
_PAPER = DRE(model=PAPER, training=PAPER_META_TRAINING, fine_tuning=PAPER_FINE_TUNING, acquisition=EXPECTED_IMPROVEMENT)
_RANDOM_WEIGHTS = DRE(
    fine_tuning=replace(PAPER_FINE_TUNING, learning_rate=0.02), acquisition=EXPECTED_IMPROVEMENT, transfer=False
)

LOSS_METHODS = {
    "regression": (LossConfig(name="mean_squared_error", weights="none"), "squared error"),
    "pointwise": (LossConfig(name="subset_regression", weights="none"), "a point-wise ranking loss"),
    "pairwise": (LossConfig(name="ranknet", weights="none"), "a pair-wise ranking loss"),
    "listwise": (LossConfig(weights="none"), "the list-wise loss without weights"),
    "listwise-weighted": (LossConfig(weights="inverse_log"), "the list-wise loss with the paper's weights"),
}
"""Losses, with descriptions, by the name of the method that trains with them."""


def _with_loss(name: str, *, transfer: bool) -> Entry:
    """Returns the ensemble that meta-trains and fine-tunes with a loss, at the paper's length and rate."""
    loss, words = LOSS_METHODS[name]
    fine_tuning = replace((_PAPER if transfer else _RANDOM_WEIGHTS).fine_tuning, loss=loss)
    return replace(
        _DRE,
        name=name if transfer else f"{name}-ri",
        summary=f"deep ensemble with {words}, {'tuned and picking as dre-paper' if transfer else 'else as dre-ri'}",
        default=replace(
            _RANDOM_WEIGHTS, training=MetaTrainConfig(loss=loss), fine_tuning=fine_tuning, transfer=transfer
        ),
        transfer=transfer,
        reads_checkpoints=False,
    )


ENTRIES = (
    _DRE,
    replace(
        _DRE,
        name="dre-paper",
        summary="the same with the paper's choices: one deep set, expected improvement, 1000 epochs at 0.001",
        default=_PAPER,
    ),
    _DRE.variant(
        "dre-no-finetune",
        "deep ranking ensemble, meta-trained, not fine-tuned",
        {"fine_tuning.epochs": 0},
        short={"acquisition": SHORT["acquisition"]},
    ),
    replace(
        _DRE,
        name="dre-ri",
        summary="deep ranking ensemble from random weights at every trial",
        default=_RANDOM_WEIGHTS,
        transfer=False,
        reads_checkpoints=False,
    ),
    *(_with_loss(name, transfer=transfer) for name in LOSS_METHODS for transfer in (True, False)),
)
