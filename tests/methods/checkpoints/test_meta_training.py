"""Meta-training into a folder: what `fit` learns, whatever interrupts it, and nothing over something else."""

import dataclasses
import json
import re

import jax
import numpy as np
import pytest

from dre_jax import CheckpointError, ConfigError
from dre_jax.data.columns import Column
from dre_jax.methods import METHODS, Entry, register
from dre_jax.methods.baselines.gcp import GaussianCopulaProcess
from dre_jax.methods.checkpoints.fitted import has_fitted, load_fitted
from dre_jax.methods.checkpoints.meta_training import configure_training, meta_train_method
from dre_jax.methods.dre.model.model_config import preset
from dre_jax.methods.dre.training_config import META_TRAINING_PRESETS
from dre_jax.methods.entries.settings import configure
from dre_jax.methods.start_configurations import start_rows
from dre_jax.testing.cases import past_tasks
from tests.known_methods import TaskMeans
from tests.methods.conftest import assert_same

KEY = jax.random.key(1)
COLUMNS = (Column("C", "float", "C", True), Column("d", "int", "d"))


@pytest.fixture(scope="module")
def space():
    return dataclasses.replace(past_tasks(2), columns=COLUMNS)


class Interrupted(Exception):
    pass


def interrupt(*_) -> None:
    raise Interrupted


@pytest.mark.parametrize("name", ["pairwise", "gcp"])
def test_the_folder_holds_the_learned_parameters(name, fitted, space, tmp_path):
    (method, params), calls = fitted(name), []
    options = {"extra": {"note": 1}, "on_fit": lambda: calls.append(has_fitted(tmp_path))}
    trained = meta_train_method(name, method, space, key=KEY, folder=tmp_path, **options)
    assert (trained is None) == (name == "gcp")
    assert calls == ([False] if name == "gcp" else [])
    loaded = load_fitted(tmp_path, space="hard", columns=COLUMNS)
    assert (loaded.name, loaded.method) == (name, method)
    assert_same(loaded.params, params)
    assert loaded.extra == {"note": 1, "start_rows": start_rows(space.train, 2, seed=1).tolist()}
    assert loaded.facts["tasks"] == list(space.train)
    assert loaded.facts.get("step") == (None if name == "gcp" else 4)
    assert json.loads((tmp_path / "metadata.json").read_text())["method"] == name


@pytest.fixture(scope="module")
def folder(fitted, space, tmp_path_factory):
    """Treat as read-only."""
    path = tmp_path_factory.mktemp("learned") / "hard"
    meta_train_method("gcp", fitted("gcp")[0], space, key=KEY, folder=path)
    return path


def test_a_complete_folder_is_not_fitted_again(folder, fitted, space, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    monkeypatch.setattr(GaussianCopulaProcess, "fit", interrupt)
    assert meta_train_method("gcp", fitted("gcp")[0], space, key=KEY, folder=folder) is None
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_more_steps_resume(fitted, space, tmp_path):
    method = fitted("dre")[0]
    for steps, before in ((4, None), (4, 4), (8, 4)):
        longer = configure(method, {"training.steps": steps}, name="it")
        assert meta_train_method("dre", longer, space, key=KEY, folder=tmp_path).resumed_from == before
    loaded = load_fitted(tmp_path)
    assert loaded.facts["step"] == 8
    assert_same(loaded.params, longer.fit(space, KEY))


@pytest.mark.parametrize(
    ("changed", "phrase"),
    [
        ({"name": "dre"}, "method (dre here, gcp in the checkpoint)"),
        ({"key": jax.random.key(2)}, "key ([0, 2] here, [0, 1] in the checkpoint)"),
        ({"settings": {"fitting.steps": 9}}, "fitting.steps (9 here, 2 in the checkpoint)"),
        ({"space": {"name": "svm"}}, "space (svm here, hard in the checkpoint)"),
        ({"space": {"columns": (COLUMNS[0], Column("e", "int", "e"))}}, "e (only here); d (only in the checkpoint)"),
        ({"drop": "flat"}, "fingerprint"),
    ],
)
def test_a_folder_of_another_training(folder, fitted, space, changed, phrase):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    name = changed.get("name", "gcp")
    method = configure(fitted(name)[0], changed.get("settings", {}), name="it")
    train = {name: task for name, task in space.train.items() if name != changed.get("drop")}
    meta = dataclasses.replace(space, train=train, **changed.get("space", {}))
    with pytest.raises(CheckpointError) as caught:
        meta_train_method(name, method, meta, key=changed.get("key", KEY), folder=folder)
    message = str(caught.value)
    assert message.startswith(f"{folder} holds another training: ")
    assert phrase in message
    assert message.count(" here") == (2 if "only here" in phrase else 1) - ("only here" in phrase)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_an_ensemble_with_other_fields(fitted, space, tmp_path):
    method = fitted("dre")[0]
    meta_train_method("dre", method, space, key=KEY, folder=tmp_path)
    longer = configure(method, {"fine_tuning.epochs": 9}, name="it")
    for name, changed, phrase in (
        ("dre", longer, "fine_tuning.epochs (9 here, 2 in the checkpoint)"),
        ("dre", configure(method, {"model.members": 3}, name="it"), "model.members (3 here, 2 in the checkpoint)"),
        ("pairwise", fitted("pairwise")[0], "method (pairwise here, dre in the checkpoint)"),
        ("gcp", fitted("gcp")[0], "method (gcp here, dre in the checkpoint)"),
    ):
        with pytest.raises(CheckpointError, match=re.escape(f"holds another training: {phrase}; give another folder")):
            meta_train_method(name, changed, space, key=KEY, folder=tmp_path)


class Untraceable(TaskMeans):
    def fit(self, meta, key):
        np.asarray(key)
        raise Interrupted


def test_parameters_that_cannot_be_saved_are_refused_before_the_fit(space, tmp_path, registries):
    register(Entry(name="untraceable", summary="", paper="", transfer=True, default=Untraceable()))
    with pytest.raises(CheckpointError, match=r"Untraceable.fit "):
        meta_train_method("untraceable", Untraceable(), space, key=KEY, folder=tmp_path)


def test_configurations():
    dre, fsbo = METHODS["dre"], METHODS["fsbo"]
    assert configure_training(dre, {}) == dre.default
    training = {"steps": 20, "patience": 3}
    method = configure_training(dre, {"fine_tuning.epochs": "7"}, preset="paper", training=training)
    assert method.model == preset("paper")
    training = dataclasses.replace(META_TRAINING_PRESETS["paper"], steps=20, patience=3, evaluate_every=20)
    assert (method.training, method.fine_tuning.epochs) == (training, 7)
    assert method.acquisition == dre.default.acquisition
    paper = configure_training(METHODS["dre-paper"], {})
    assert (paper.model, paper.training) == (preset("paper"), META_TRAINING_PRESETS["paper"])
    assert paper.fine_tuning.epochs == 1000
    assert configure_training(fsbo, {"meta_training.steps": "8"}, training={"steps": None}).meta_training.steps == 8
    assert configure_training(METHODS["gcp"], {}) == GaussianCopulaProcess()


@pytest.mark.parametrize(
    ("name", "settings", "options", "phrase"),
    [
        ("random", {}, {}, "learns from past tasks, but random learns nothing"),
        ("fsbo", {}, {"training": {"steps": 5}}, "--steps train a ranking ensemble, but fsbo has none: --set sets its"),
        ("fsbo", {}, {"training": {"lists_per_step": 5}, "preset": "paper"}, "--lists-per-step, --preset train"),
        ("fsbo", {"members": "3"}, {}, "fsbo takes epochs, learning_rate"),
        ("dre", {"training.steps": "5"}, {"training": {"steps": 6}}, "steps must be set once, but got 5 and 6"),
        ("dre", {}, {"preset": "thesis"}, "the preset must be one of default, paper, but got 'thesis'"),
    ],
)
def test_configurations_that_cannot_be(name, settings, options, phrase):
    with pytest.raises(ConfigError, match=re.escape(phrase)):
        configure_training(METHODS[name], settings, **options)
