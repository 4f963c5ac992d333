"""Surrogates for a task of known features: suggestions, files, samplers, searches and commands."""

import json
import warnings
from dataclasses import replace

import numpy as np
import optuna
import pytest
from sklearn.linear_model import Ridge

from dre_jax import DataError, Evaluated, Float, Optimizer, Space, Surrogate, past_of, write_space
from dre_jax.errors import DataWarning
from dre_jax.tuning.command.shared_study import SharedStudy
from dre_jax.tuning.optuna import DRESampler
from dre_jax.tuning.sklearn import DRESearchCV
from dre_jax.tuning.surrogates.by_objective import surrogates_for_task
from tests.error_messages import raises_line
from tests.known_methods import BestLine, TaskMeans

SPACE = Space({"alpha": Float(1e-4, 1.0, log=True)})
ROWS = (100, 1000, 10000)


def best_alpha(rows):
    return rows**-0.5


def study(rows):
    exponents = np.linspace(-4.0, 0.0, 41)
    return [Evaluated({"alpha": 10.0**e}, abs(e - np.log10(best_alpha(rows)))) for e in exponents]


def past_with(feature):
    studies, features = ({str(rows): value(rows) for rows in ROWS} for value in (study, lambda rows: {feature: rows}))
    return past_of(SPACE, studies, direction="minimize", features=features)


PAST = past_with("rows")


@pytest.fixture
def surrogate(registries):
    return Surrogate.fit(PAST, method=BestLine(), quiet=True)


def first_alpha(surrogate, **options):
    return Optimizer(SPACE, surrogate, **options).ask().params["alpha"]


def test_the_first_suggestion_is_best_for_the_task(surrogate, capsys):
    for rows in (300, 3000):
        assert first_alpha(surrogate, features={"rows": rows}) == pytest.approx(best_alpha(rows), rel=0.05)
    assert capsys.readouterr().err == ""
    assert first_alpha(surrogate, features={"rows": 1e6}) == pytest.approx(best_alpha(1e6), rel=0.05)
    assert capsys.readouterr().err == "dre_jax: rows=1e6 lies beyond the past tasks, 100 to 10000: extrapolated\n"
    for_task = surrogate.for_task({"rows": 300})
    assert first_alpha(for_task) == first_alpha(surrogate, features={"rows": 300})
    assert Optimizer(SPACE, for_task).features == {"rows": 300}
    again = for_task.for_task({"rows": 3000})
    assert first_alpha(again) == first_alpha(surrogate, features={"rows": 3000})
    assert first_alpha(surrogate, features={"rows": None}) == surrogate.start[0]["alpha"]


def test_what_is_not_used_is_said(surrogate, registries):
    missing = r"the past tasks have features that the task lacks, rows: pass features=\{'rows': ...\}, or None"
    with pytest.warns(DataWarning, match=missing):
        optimizer = Optimizer(SPACE, surrogate)
    assert optimizer.features == {}
    with pytest.warns(DataWarning, match=missing):
        surrogate.for_task({})
    with raises_line(DataError, "features of the task are of rows, but got 'tokens'"):
        Optimizer(SPACE, surrogate, features={"tokens": 3})
    with raises_line(DataError, "rows must be positive on a log scale, but got 0"):
        Optimizer(SPACE, surrogate, features={"rows": 0})
    with pytest.warns(DataWarning, match="not used, as tests.known_methods:TaskMeans does not use any: rows"):
        unaware = Surrogate.fit(PAST, method=TaskMeans(), quiet=True)
    with pytest.warns(DataWarning, match="not used, as tests.known_methods:TaskMeans does not use any: rows"):
        Optimizer(SPACE, unaware, features={"rows": 300})
    Optimizer(SPACE, unaware)  # without a warning
    without = Surrogate.fit(replace(PAST, features=None), method=TaskMeans(), quiet=True)
    with pytest.warns(DataWarning, match="features of the task are not used, as the past tasks have none: rows"):
        Optimizer(SPACE, without, features={"rows": 300})


def test_a_checkpoint_and_a_study_keep_the_features(surrogate, tmp_path):
    for folder, features in (("any", None), ("one", {"rows": 300})):
        one = surrogate if features is None else surrogate.for_task(features)
        saved = one.save(tmp_path / folder)
        loaded = Surrogate.load(tmp_path / folder)
        assert (loaded.features, loaded.task_features) == (PAST.features, features)
        assert loaded.fingerprint == one.fingerprint == saved.fingerprint
        assert loaded.start == one.start
    loaded = Surrogate.load(tmp_path / "any")
    optimizer = Optimizer(SPACE, loaded, features={"rows": 300})
    optimizer.ask()
    optimizer.save(tmp_path / "study.json")
    assert json.loads((tmp_path / "study.json").read_text())["features"] == {"rows": 300}
    for other in (loaded, loaded.for_task({"rows": 300}), Surrogate.load(tmp_path / "one")):
        resumed = Optimizer.load(tmp_path / "study.json", other)
        assert resumed.features == {"rows": 300}
        assert resumed.surrogate.fingerprint == optimizer.surrogate.fingerprint
    with pytest.warns(DataWarning, match=r"features \{'rows': 300\}, and continues with \{'rows': 3000\}"):
        changed = Optimizer.load(tmp_path / "study.json", loaded, features={"rows": 3000})
    assert changed.features == {"rows": 3000}


def test_another_space_keeps_the_features(surrogate):
    other = surrogate.for_space(
        Space({"penalty": Float(1e-4, 1.0, log=True)}), renamed={"alpha": "penalty"}, quiet=True
    )
    assert other.features == PAST.features
    trial = Optimizer(other.space, other, features={"rows": 300}).ask()
    assert trial.params["penalty"] == pytest.approx(best_alpha(300), rel=0.05)


def test_a_direction_of_the_other_name(surrogate, tmp_path):
    up = surrogate.for_task({"rows": 300}).with_direction("maximize")
    up.save(tmp_path)
    assert Surrogate.load(tmp_path).direction == "maximize"
    assert up.for_task({"rows": 3000}).direction == "maximize"


def test_several_objectives_take_the_features_that_they_know(registries):
    def surrogate_of(name):
        return Surrogate.fit(past_with(name), method=BestLine(), quiet=True)

    surrogates = {"error": surrogate_of("rows"), "time": surrogate_of("tokens"), "memory": None}
    fitted, features = surrogates_for_task(surrogates, {"rows": 300, "tokens": 3000})
    assert features == {"rows": 300, "tokens": 3000}
    assert {name: one and one.task_features for name, one in fitted.items()} == {
        "error": {"rows": 300},
        "time": {"tokens": 3000},
        "memory": None,
    }
    with raises_line(DataError, "features of the task are of rows, tokens, but got 'heat'"):
        surrogates_for_task(surrogates, {"rows": 300, "heat": 1})


def test_a_sampler_of_optuna(surrogate):
    sampler = DRESampler(surrogate=surrogate, seed=0, features={"rows": 300})
    study = optuna.create_study(sampler=sampler)
    trial = study.ask()
    assert trial.suggest_float("alpha", 1e-4, 1.0, log=True) == pytest.approx(best_alpha(300), rel=0.05)


def test_a_search_of_scikit_learn_takes_the_features_of_its_data(surrogate):
    x, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300.0)
    upward = surrogate.with_direction("maximize")
    for rows, features in ((300, None), (3000, {"rows": 3000})):
        search = DRESearchCV(Ridge(), SPACE, upward, n_iter=1, cv=2, random_state=0, features=features).fit(x, y)
        assert search.best_params_["alpha"] == pytest.approx(best_alpha(rows), rel=0.05)
    with raises_line(DataError, "features of the task are of rows, but got 'tokens'"):
        DRESearchCV(Ridge(), SPACE, upward, n_iter=1, features={"tokens": 1}).fit(x, y)


def test_commands(surrogate, cli, tmp_path):
    surrogate.save(tmp_path / "surrogate")
    write_space(tmp_path / "space.json", SPACE)
    space = ("--space", tmp_path / "space.json")
    arguments = ("suggest", *space, "--checkpoint", tmp_path / "surrogate")
    status, out, error = cli(*arguments, "--features", "rows=300")
    assert (status, error) == (0, "")
    assert json.loads(out)["alpha"] == pytest.approx(best_alpha(300), rel=0.05)
    assert "features that the task lacks, rows" in cli(*arguments)[2]
    assert "--features must be NAME=VALUE pairs" in cli(*arguments, "--features", "rows")[2]
    study_file = tmp_path / "study.json"
    tune = ("tune", *space, "--surrogate", tmp_path / "surrogate", "--study", study_file, "--trials")
    command = ("--quiet", "--", "echo", "{alpha}")
    status, _, error = cli(*tune, 1, "--features", "rows=300", *command)
    assert (status, error) == (0, "")
    status, _, error = cli(*tune, 2, *command)  # the study's features
    assert (status, error) == (0, "")
    content = json.loads(study_file.read_text())
    assert content["features"] == {"rows": 300.0}
    assert content["trials"][0]["params"]["alpha"] == pytest.approx(best_alpha(300), rel=0.05)
    status, out, _ = cli("info", tmp_path / "surrogate")
    assert "features       rows (log, 100 to 10000)" in out
    assert "scaling        alpha falls by 0.5" in out


def test_a_shared_study_keeps_the_features(surrogate, tmp_path):
    storage = str(tmp_path / "journal.log")
    first = SharedStudy(storage, "large", SPACE, surrogate, seed=0, features={"rows": 300})
    assert first.ask().params["alpha"] == pytest.approx(best_alpha(300), rel=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        second = SharedStudy(storage, "large", SPACE, surrogate, seed=1)
    assert second._study.sampler.features == {"rows": 300}
    assert second._study.user_attrs["rows"] == 300
    with raises_line(DataError, "must be a study of features {'rows': 3000}, but has {'rows': 300}"):
        SharedStudy(storage, "large", SPACE, surrogate, features={"rows": 3000})


@pytest.mark.thorough
def test_the_recommended_method_starts_where_the_past_points(tmp_path):
    """The past tasks agree on the slope, half a decade per decade, so that a task ten times as large has its answer."""
    Surrogate.fit(PAST, settings={"prior.members": 1}, quiet=True).save(tmp_path)
    surrogate = Surrogate.load(tmp_path)
    (slope,) = surrogate.scaling.slopes
    assert slope.slope == pytest.approx(-0.5, abs=0.01)
    for_task = surrogate.for_task({"rows": 1e5})
    assert first_alpha(for_task) == pytest.approx(best_alpha(1e5), rel=0.2)
    assert list(for_task.figures()) == ["Scaling"]
    assert for_task.sources(study(1e5)[::8]).past_weights[0] > 0.3
