"""Checkpoints of every method that learns: what goes in comes out, and what does not fit is refused in a line."""

import contextlib
import dataclasses
import json
import re
import shutil
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from dre_jax.data.columns import Column
from dre_jax.errors import CheckpointError, ConfigError
from dre_jax.methods import METHODS
from dre_jax.methods.checkpoints.fitted import FittedMethod, has_checkpoint, load_fitted, save_fitted
from dre_jax.methods.checkpoints.parameters import abstract_params
from dre_jax.methods.entries.settings import config_to_json, configure, leaves
from dre_jax.methods.storage.provenance import provenance
from dre_jax.methods.storage.trees import flatten, rename, restore
from dre_jax.testing.cases import past_tasks
from tests.error_messages import raises_line
from tests.known_methods import by_class
from tests.methods.conftest import assert_same

LEARNING = [name for name, entry in METHODS.items() if entry.transfer]
KEY = jax.random.key(1)
WORDS = ("cosine", "constant", "ei", "lcb", "inverse_log", "none", "shuffle", "listmle", "mean_squared_error", "shared")
WORDS += ("bfloat16", "bfgs", "any", "own", "table", "length", "logarithm", "relu", "tanh", "squared_exponential")
WORDS += ("lecun_normal", "torch_uniform", "standardised", "compressed")
FIXED = {"network.outputs"}  # what else they may be is refused
COLUMNS = (Column("C", "float", "C", True), Column("kernel.ohe._rbf", "level", "kernel"))


@pytest.fixture(scope="module")
def make_fitted(fitted):
    """A method by name, with what it learned from little."""
    space = dataclasses.replace(past_tasks(2), columns=COLUMNS)

    def make(name):
        method, params = fitted(name)
        facts, extra = provenance(space, KEY), {"note": [1, 2.5, None, "text"]}
        described = {"space": space.name, "n_columns": 2, "columns": COLUMNS, "facts": facts, "extra": extra}
        return FittedMethod(name=name, method=method, params=params, **described)

    return make


@pytest.mark.parametrize("name", by_class(LEARNING))
@pytest.mark.slow
def test_round_trip(name, make_fitted, tmp_path):
    ours = make_fitted(name)
    save_fitted(tmp_path, ours)
    loaded = load_fitted(tmp_path, space="hard", columns=COLUMNS)
    assert_same(loaded.params, ours.params)
    for field in dataclasses.fields(FittedMethod):
        if field.name != "params":
            assert getattr(loaded, field.name) == getattr(ours, field.name), field.name
    assert hash(loaded.method) == hash(ours.method)  # static under jit
    assert load_fitted(tmp_path, with_params=False).params is None
    copy = json.loads((tmp_path / "metadata.json").read_text())
    assert copy["method"] == name
    assert copy["schema"] == [["C", "float", "C", True], ["kernel.ohe._rbf", "level", "kernel", False]]


@pytest.mark.parametrize("name", by_class([name for name, entry in METHODS.items() if entry.host is None]))
def test_every_field_of_a_configuration_is_in_the_file(name):
    """A field that JSON left out would come back with its default: each is set to something else in turn."""
    default, paths = METHODS[name].default, set()
    for path, value in leaves(default):
        for other in others(value):
            with contextlib.suppress(ConfigError, TypeError):  # a value that the configuration refuses
                changed = configure(default, {path: other}, name=name)
                assert configure(default, config_to_json(changed), name=name) == changed, path
                paths |= {path} if changed != default else set()
    assert paths | FIXED >= dict(leaves(default)).keys()


def others(value):
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, (int, float)):
        return [value + 1, value / 2]
    if isinstance(value, tuple):
        return [(*value, 7), tuple(2 * item for item in value)]
    return [3, *WORDS]


def test_a_configuration_of_another_version():
    fsbo, hedged_prior = METHODS["fsbo"].default, METHODS["hedged-prior"].default
    content = config_to_json(fsbo)
    del content["tuning"]["steps"], content["model"]
    assert configure(fsbo, content, name="fsbo") == fsbo  # what is missing has its default
    for changed, phrase in (
        ({"of_tomorrow": 3}, "tuning.*, but got 'of_tomorrow'"),
        ({"tuning": 3}, "but got 'tuning'"),
        ({"model": {"sizes": [3]}}, "but got 'model.sizes'"),
        ({"model": {"kernel": "cubic"}}, "model.kernel must be one of matern52, squared_exponential, but got 'cubic'"),
    ):
        with pytest.raises(ConfigError, match=re.escape(phrase)):
            configure(fsbo, {**content, **changed}, name="fsbo")
    one = dataclasses.replace(hedged_prior, hypotheses=hedged_prior.hypotheses[:1])
    assert configure(hedged_prior, config_to_json(one), name="it") == one
    for item in ({"of_tomorrow": 3}, {"slope_mean": 1.0}, 3):
        with pytest.raises(ConfigError, match="it: hypotheses must be any number of values"):
            configure(hedged_prior, {"hypotheses": [item]}, name="it")


@pytest.mark.slow
def test_parameters_of_another_version(make_fitted, tmp_path):
    """Until version 0.2, `hedged-prior` had a second prior of length scales, and counted trials of few past tasks."""
    ours = make_fitted("hedged-prior")
    lengths = ours.params.lengths
    older = ours.params._asdict() | {
        "hyperpriors": {"generic": lengths, "learned": lengths},
        "few_past_trials": np.ones(()),
    }
    del older["lengths"]
    arrays = rename(flatten({"params": older}), METHODS["hedged-prior"].renamed_arrays)
    assert_same(restore({"params": abstract_params(ours.method, 2)}, arrays)["params"], ours.params)
    content = config_to_json(ours.method)
    content["past_trial_weight"], content["common"]["interpolation"] = 0.25, content["processes"].pop("interpolation")
    assert METHODS["hedged-prior"].restore(content) == ours.method


@pytest.fixture(scope="module")
def saved(make_fitted, tmp_path_factory):
    """Treat as read-only."""
    folder = tmp_path_factory.mktemp("saved") / "svm"
    save_fitted(folder, make_fitted("gcp"))
    return folder


def assert_refused(folder, *words, **wanted):
    with raises_line(CheckpointError, str(folder), *words):
        load_fitted(folder, **wanted)


@pytest.mark.parametrize("folders", [(), ("fitted",), ("steps", "fitted"), ("fitted/1",), ("steps/40",)])
def test_folders_without_a_checkpoint(tmp_path, folders):
    for name in folders:
        (tmp_path / "a" / name).mkdir(parents=True)
    assert_refused(tmp_path / "a", "checkpoint")
    assert not has_checkpoint(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("wanted", "phrase"),
    [
        ({"space": "xgboost"}, "space (xgboost here, hard in the checkpoint)"),
        ({"columns": 3}, "columns (3 here, 2 in the checkpoint)"),
        ({"columns": COLUMNS[:1]}, "kernel.ohe._rbf (only in the checkpoint)"),
        ({"columns": (COLUMNS[0]._replace(log=False), COLUMNS[1])}, "C (float here, log float in the checkpoint)"),
        ({"columns": COLUMNS[::-1]}, "the order of the columns"),
        ({"columns": [Column(str(i), "float", "x") for i in range(20)]}, "and 14 more"),
    ],
)
def test_checkpoints_of_another_space(saved, wanted, phrase):
    assert_refused(saved, phrase, **wanted)


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda d: d.update(format=3), "format 2, but holds 3"),
        (lambda d: d.update(method="dre-2030"), "does not know, 'dre-2030'"),
        (lambda d: d.update(method="fsbo"), "fsbo takes"),
        (lambda d: d.pop("schema"), "schema"),
        (lambda d: d.update(schema=[["C", "float"]]), "Column"),
        (lambda d: d["configuration"].update(layers=3), "but got 'layers'"),
        (lambda d: d["configuration"]["prior"].update(hidden=[50] * 4), "params.hidden_3_bias ([50] here, None in"),
        (lambda d: d["configuration"]["prior"].update(hidden=[50]), "params.hidden_1_bias, params.hidden_1_kernel, "),
        (lambda d: d["arrays"].pop("params.out_bias"), "params.out_bias ([2] here, None in the checkpoint)"),
    ],
)
def test_checkpoints_of_another_version(saved, tmp_path, rewrite, change, phrase):
    folder = shutil.copytree(saved, tmp_path / "svm")
    rewrite(folder / "fitted", change)
    assert_refused(folder, phrase)


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"params": {"x": jax.random.key(0)}}, "parameters must be arrays of numbers"),
        ({"params": {1: np.ones(2)}}, "arrays differ: "),
        ({"params": None}, "have learned something"),
        ({"name": "their.py:Method"}, "must be registered"),
        ({"method": object()}, "the configuration of gcp must hold numbers, names and tuples"),
        ({"extra": {"x": object()}}, "cannot write a checkpoint"),
    ],
)
def test_parameters_that_cannot_be_saved(make_fitted, tmp_path, change, phrase):
    with pytest.raises(CheckpointError, match=phrase):
        save_fitted(tmp_path / "a", dataclasses.replace(make_fitted("gcp"), **change))
    assert not has_checkpoint(tmp_path / "a")


def test_a_full_disk_keeps_the_old_one(make_fitted, tmp_path, monkeypatch):
    save_fitted(tmp_path, make_fitted("gcp"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with raises_line(CheckpointError, f"cannot write a checkpoint to {tmp_path}: ", "but 0.0 MB are free"):
        save_fitted(tmp_path, make_fitted("rgpe"))
    assert load_fitted(tmp_path).name == "gcp"


@pytest.mark.thorough
def test_at_every_moment_the_old_or_the_new(make_fitted, tmp_path, left_by_kills):
    folder, old, new = tmp_path / "svm", make_fitted("gcp"), make_fitted("rgpe")
    save_fitted(folder, old)
    copies = left_by_kills(folder, lambda: save_fitted(folder, new))
    assert len(copies) > 20
    names = [load_fitted(copy).name for copy in copies]
    assert names == sorted(names)  # gcp, then rgpe
    assert set(names) == {"gcp", "rgpe"}
    for copy in (copies[0], copies[-1], folder):
        loaded = load_fitted(copy)
        assert_same(loaded.params, (old if loaded.name == "gcp" else new).params)
    # And after any of those deaths the next one is written.
    for copy in copies[::7]:
        save_fitted(copy, old)
        assert load_fitted(copy).name == "gcp"
        assert len(list((copy / "fitted").iterdir())) == 1
