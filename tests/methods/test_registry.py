"""Names of methods and what is said of them; what they do is in test_conformance.py."""

from typing import get_args

import jax
import pytest

from dre_jax import ConfigError, DataError, SearchSpace
from dre_jax.losses import LOSSES
from dre_jax.losses.order import PositionWeights
from dre_jax.methods import METHODS, find
from dre_jax.methods.dre.model.model_config import Context
from dre_jax.methods.registry import ALIASES, real_name
from dre_jax.search.acquisition import ACQUISITIONS, Acquisition, register_acquisition
from dre_jax.tuning.past.readers import find_reader
from tests.error_messages import raises_line

PAPER_METHODS = {
    "DRE, and as published": ("dre", "dre-paper"),
    "ablations of meta-learning": ("dre-no-finetune", "dre-ri"),
    "ablations of the loss": ("regression", "pointwise", "pairwise", "listwise", "listwise-weighted"),
    "these from random weights": tuple(
        f"{loss}-ri" for loss in ("regression", "pointwise", "pairwise", "listwise", "listwise-weighted")
    ),
    "random search": ("random",),
    "Gaussian processes": ("gp", "hebo", "metis"),
    "deep kernels": ("dkgp", "fsbo", "dklm"),
    "Bayesian networks": ("dngo", "bohamiann"),
    "deep ensembles of 5 and 10": ("deep-ensemble", "deep-ensemble-10"),
    "random forests": ("rf", "smac"),
    "Parzen estimators": ("tpe", "tpe-multivariate"),
    "from past tasks": ("rgpe", "tst", "taf", "gcp", "gcp-ts", "empirical-gp"),
}
"""All that the papers compare or explain. Nothing of it may be removed, however slow or weak."""


@pytest.mark.parametrize("kind", PAPER_METHODS)
def test_every_method_of_the_papers_is_registered(kind):
    assert [name for name in PAPER_METHODS[kind] if name not in METHODS] == []


def test_every_choice_that_the_papers_ablate_is_a_setting():
    assert {"own", "shared", "none"} <= set(get_args(Context))
    assert {"ei", "pi", "lcb", "mean_rank"} <= set(ACQUISITIONS)
    assert {"listmle", "listnet", "ranknet", "subset_regression", "mean_squared_error"} <= set(LOSSES)
    assert {"inverse_log", "inverse_linear", "attention", "none"} <= set(get_args(PositionWeights))


@pytest.mark.parametrize("name", METHODS)
def test_entries(name):
    entry = METHODS[name]
    assert entry.summary
    assert entry.paper
    assert find(name) is entry
    assert (entry.host is None) != (entry.default is None)
    if entry.host is None:
        assert hash(entry.make()) == hash(entry.default)  # static under jit
        return
    assert callable(entry.host.observe_and_suggest)
    assert not entry.transfer
    assert entry.extra
    assert entry.library != "JAX"


def test_aliases_name_registered_methods():
    assert find("recommended") is METHODS["hedged-prior"]
    assert not set(ALIASES) & set(METHODS)
    assert all(METHODS[real_name(alias)].transfer for alias in ALIASES)


@pytest.mark.parametrize("name", [name for name, entry in METHODS.items() if entry.transfer])
def test_methods_that_learn_need_past_tasks(name):
    with pytest.raises(DataError, match=r"training tasks, .*'none'"):
        METHODS[name].make().fit(SearchSpace("none"), jax.random.key(0))


@pytest.mark.parametrize(
    ("unknown", "suggested"),
    [("dree", "dre"), ("radnom", "random"), ("recomended", "recommended"), ("Dre-RI", None), ("", None)],
)
def test_an_unknown_name(unknown, suggested):
    with raises_line(ConfigError, repr(unknown), *METHODS, f"did you mean {suggested}?" if suggested else ""):
        find(unknown)


MEAN = Acquisition(lambda config, mean, deviation, incumbent: -mean, scale="linear")


@pytest.mark.parametrize(
    ("register", "arguments", "message"),
    [
        (register_acquisition, ("ei", MEAN), "'ei' is registered already"),
        (register_acquisition, ("theirs", MEAN.fn), r"must be Acquisition\(fn, scale=...\), but got <function"),
        (Acquisition, (MEAN.fn, "cubic"), "must be one of log, linear, but got 'cubic'"),
        (find_reader, ("cvs",), r"optuna, csv, surrogate or file.py:function, but got 'cvs' \(did you mean csv\?"),
    ],
)
def test_what_cannot_be_registered_or_found(register, arguments, message):
    with pytest.raises(ConfigError, match=message):
        register(*arguments)
