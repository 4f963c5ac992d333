"""Methods by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace

from dre_jax.errors import ConfigError
from dre_jax.methods.dre import DRE
from dre_jax.methods.random_search import RandomSearch
from dre_jax.model import ModelConfig
from dre_jax.search.acquisition import AcquisitionConfig, Kind
from dre_jax.search.method import Method
from dre_jax.training.config import PAPER_FINE_TUNING, FineTuneConfig


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user can set of a method; None leaves the method's own value."""

    model: ModelConfig | None = None
    """Sizes: the checkpoint's, where there is one."""
    epochs: int | None = None
    """Fine-tuning epochs before every trial."""
    learning_rate: float | None = None
    """Fine-tuning's learning rate."""
    acquisition: Kind | None = None
    """Acquisition function."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A method that can be asked for by name."""

    name: str
    summary: str
    paper: str
    transfer: bool
    """Learns from past tasks."""
    build: Callable[[Options], Method]
    reads_checkpoints: bool = False
    """Starts from what `dre-jax meta-train` wrote, where it is given, instead of being fitted anew."""
    extra: str | None = None
    """The extra to install, if the core packages are not enough."""


def _fine_tuning(options: Options, default: FineTuneConfig) -> FineTuneConfig:
    """A method's own fine-tuning with what the user set of it."""
    epochs = default.epochs if options.epochs is None else options.epochs
    rate = default.learning_rate if options.learning_rate is None else options.learning_rate
    return replace(default, epochs=epochs, learning_rate=rate)


def _ensemble(options: Options, fine_tuning: FineTuneConfig, *, transfer: bool = True) -> DRE:
    """A deep ranking ensemble with what the user set."""
    acquisition = AcquisitionConfig() if options.acquisition is None else AcquisitionConfig(kind=options.acquisition)
    model = options.model or ModelConfig()
    return DRE(model=model, fine_tuning=fine_tuning, acquisition=acquisition, transfer=transfer)


def _dre(options: Options) -> DRE:
    return _ensemble(options, _fine_tuning(options, FineTuneConfig()))


def _dre_no_finetune(options: Options) -> DRE:
    return _ensemble(options, FineTuneConfig(epochs=0))


def _dre_paper(options: Options) -> DRE:
    return _ensemble(_with_ei(options), _fine_tuning(options, PAPER_FINE_TUNING))


def _dre_ri(options: Options) -> DRE:
    default = replace(PAPER_FINE_TUNING, learning_rate=0.02)
    return _ensemble(_with_ei(options), _fine_tuning(options, default), transfer=False)


def _with_ei(options: Options) -> Options:
    """The paper's acquisition function, where the user names none."""
    return replace(options, acquisition=options.acquisition or "ei")


def _random(options: Options) -> RandomSearch:
    return RandomSearch()


_DRE_PAPER = "Khazi, Pineda Arango and Grabocka 2023"

METHODS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            name="dre",
            summary="deep ranking ensemble, meta-trained and fine-tuned before every trial",
            paper=_DRE_PAPER,
            transfer=True,
            build=_dre,
            reads_checkpoints=True,
        ),
        Entry(
            name="dre-paper",
            summary="the same as the paper has it: expected improvement, 1000 epochs at 0.001",
            paper=_DRE_PAPER,
            transfer=True,
            build=_dre_paper,
            reads_checkpoints=True,
        ),
        Entry(
            name="dre-no-finetune",
            summary="deep ranking ensemble, meta-trained, not fine-tuned",
            paper=_DRE_PAPER,
            transfer=True,
            build=_dre_no_finetune,
            reads_checkpoints=True,
        ),
        Entry(
            name="dre-ri",
            summary="deep ranking ensemble from random weights at every trial",
            paper=_DRE_PAPER,
            transfer=False,
            build=_dre_ri,
        ),
        Entry(
            name="random",
            summary="random search",
            paper="Bergstra and Bengio 2012",
            transfer=False,
            build=_random,
        ),
    )
}
"""All methods, by name."""


def find(name: str) -> Entry:
    """The method of a name.

    Raises:
      ConfigError: for an unknown name; the message lists those that there are.

    Example:
      >>> find("random").transfer
      False
    """
    if name in METHODS:
        return METHODS[name]
    near = difflib.get_close_matches(name, METHODS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"the method must be one of {', '.join(METHODS)}, but got {name!r}{hint}")
