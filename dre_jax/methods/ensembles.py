"""Deep ranking ensembles by name: the library's, the paper's, and those with other losses (the paper, hypothesis 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dre_jax.methods.dre import DRE
from dre_jax.methods.options import Options
from dre_jax.model import PAPER
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT
from dre_jax.training.config import (
    PAPER_FINE_TUNING,
    PAPER_META_TRAINING,
    FineTuneConfig,
    LossConfig,
    MetaTrainConfig,
)

_FROM_RANDOM_WEIGHTS = replace(PAPER_FINE_TUNING, learning_rate=0.02)


def _with(options: Options, own: DRE) -> DRE:
    """A configuration with what a user set of it."""
    tuning = own.fine_tuning
    epochs = tuning.epochs if options.epochs is None else options.epochs
    rate = tuning.learning_rate if options.learning_rate is None else options.learning_rate
    return replace(
        own,
        model=options.model or own.model,
        fine_tuning=replace(tuning, epochs=epochs, learning_rate=rate),
        acquisition=options.acquisition_or(own.acquisition),
    )


def dre(options: Options) -> DRE:
    """The library's own, as `docs/defaults.md` chose it."""
    return _with(options, DRE())


def dre_no_finetune(options: Options) -> DRE:
    """The same, never fine-tuned."""
    return _with(replace(options, epochs=None, learning_rate=None), DRE(fine_tuning=FineTuneConfig(epochs=0)))


def dre_paper(options: Options) -> DRE:
    """Network, loss, fine-tuning and acquisition of the paper (section 4.3), meta-trained as its code does."""
    own = DRE(
        model=PAPER, training=PAPER_META_TRAINING, fine_tuning=PAPER_FINE_TUNING, acquisition=EXPECTED_IMPROVEMENT
    )
    return _with(options, own)


def dre_ri(options: Options) -> DRE:
    """From random weights at every trial (the paper's DRE-RI)."""
    return _with(options, DRE(fine_tuning=_FROM_RANDOM_WEIGHTS, acquisition=EXPECTED_IMPROVEMENT, transfer=False))


def with_loss(loss: LossConfig, *, transfer: bool) -> Callable[[Options], DRE]:
    """Builds an ensemble that meta-trains and fine-tunes with a loss of its own, as long and as fast as the paper's."""
    fine_tuning = PAPER_FINE_TUNING if transfer else _FROM_RANDOM_WEIGHTS

    def build(options: Options) -> DRE:
        training = MetaTrainConfig(loss=loss)
        own = DRE(
            training=training,
            fine_tuning=replace(fine_tuning, loss=loss),
            acquisition=EXPECTED_IMPROVEMENT,
            transfer=transfer,
        )
        return _with(options, own)

    return build


LOSSES = {
    "regression": (LossConfig(name="mean_squared_error", weights="none"), "squared error"),
    "pointwise": (LossConfig(name="subset_regression", weights="none"), "a point-wise ranking loss"),
    "pairwise": (LossConfig(name="ranknet", weights="none"), "a pair-wise ranking loss"),
    "listwise": (LossConfig(weights="none"), "the list-wise loss without weights"),
    "listwise-weighted": (LossConfig(weights="inverse_log"), "the list-wise loss with the paper's weights"),
}
"""Losses by the name of the method that trains with them, and what they are."""
