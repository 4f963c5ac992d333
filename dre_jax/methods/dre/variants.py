"""Deep ranking ensembles by name: the library's, the paper's, and those with other losses (the paper, hypothesis 3)."""

from __future__ import annotations

from dre_jax.methods.dre.method import DRE
from dre_jax.methods.entry import SHORT, Entry

_DRE = Entry(
    name="dre",
    summary="deep ranking ensemble, meta-trained and fine-tuned before every trial",
    paper="Khazi, Pineda Arango and Grabocka 2023",
    transfer=True,
    default=DRE(),
    free=("fine_tuning", "acquisition"),
    reads_checkpoints=True,
)

_PAPER_SEARCH = {"fine_tuning.epochs": 1000, "fine_tuning.learning_rate": 1e-3, "acquisition.kind": "ei"}
_PAPER_MODEL = {"model.context": "shared", "model.initialiser": "torch_uniform", "training.own_lists": False}
_PAPER_LOSS = {"training.loss.weights": "inverse_log", "fine_tuning.loss.weights": "inverse_log"}
_RANDOM_WEIGHTS = {**_PAPER_SEARCH, "fine_tuning.learning_rate": 0.02, "transfer": False}

LOSSES = {
    "regression": ({"name": "mean_squared_error", "weights": "none"}, "squared error"),
    "pointwise": ({"name": "subset_regression", "weights": "none"}, "a point-wise ranking loss"),
    "pairwise": ({"name": "ranknet", "weights": "none"}, "a pair-wise ranking loss"),
    "listwise": ({"weights": "none"}, "the list-wise loss without weights"),
    "listwise-weighted": ({"weights": "inverse_log"}, "the list-wise loss with the paper's weights"),
}
"""Fields of `LossConfig` by the name of the method that trains with them, and what the loss is."""


def _with_loss(name: str, *, transfer: bool) -> Entry:
    """The ensemble that meta-trains and fine-tunes with a loss of `LOSSES`, as long and as fast as the paper's."""
    loss, words = LOSSES[name]
    settings = {f"{part}.loss.{key}": value for part in ("training", "fine_tuning") for key, value in loss.items()}
    return _DRE.variant(
        name if transfer else f"{name}-ri",
        f"deep ensemble with {words}, {'tuned and picking as dre-paper' if transfer else 'else as dre-ri'}",
        {**(_PAPER_SEARCH if transfer else _RANDOM_WEIGHTS), **settings},
        transfer=transfer,
        reads_checkpoints=False,
    )


ENTRIES = (
    _DRE,
    _DRE.variant(
        "dre-paper",
        "the same with the paper's choices: one deep set, expected improvement, 1000 epochs at 0.001",
        {**_PAPER_MODEL, **_PAPER_LOSS, **_PAPER_SEARCH},
    ),
    _DRE.variant(
        "dre-no-finetune",
        "deep ranking ensemble, meta-trained, not fine-tuned",
        {"fine_tuning.epochs": 0},
        short={"acquisition": SHORT["acquisition"]},
    ),
    _DRE.variant(
        "dre-ri",
        "deep ranking ensemble from random weights at every trial",
        {**_RANDOM_WEIGHTS, "fine_tuning.loss.weights": "inverse_log"},
        transfer=False,
        reads_checkpoints=False,
    ),
    *(_with_loss(name, transfer=transfer) for name in LOSSES for transfer in (True, False)),
)
