"""Past Optuna studies as tasks."""

import math
from datetime import timedelta

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from dre_jax import Categorical, DataError, Float, Space, from_studies
from tests.error_messages import raises_line

SPACE = Space({"x": Float(0.0, 1.0), "kernel": Categorical(["rbf", "poly"])})
pytestmark = pytest.mark.usefixtures("quiet_optuna")
DISTRIBUTIONS = {"x": FloatDistribution(0.0, 1.0), "kernel": CategoricalDistribution(["rbf", "poly"])}


def add(study, x, value, *, kernel="rbf", state=TrialState.COMPLETE, **others):
    study.add_trial(
        optuna.create_trial(
            state=state,
            value=value,
            params={"x": x, "kernel": kernel} | others,
            distributions=DISTRIBUTIONS | {name: FloatDistribution(-100.0, 100.0) for name in others},
        )
    )


def filled(name, values=(1.0, 4.0, 2.0), **options):
    study = optuna.create_study(study_name=name, **options)
    for i, value in enumerate(values):
        add(study, i / 4, value)
    return study


def test_each_study_is_turned_by_its_own_direction():
    losses, scores = filled("losses"), filled("scores", direction="maximize")
    past = from_studies([losses, scores], SPACE)
    assert past.direction is None
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        losses.set_metric_names(["logloss"])
    past_of_losses = from_studies(losses, SPACE)
    assert (past_of_losses.direction, past_of_losses.metric) == ("minimize", "logloss")
    assert from_studies([losses, filled("unnamed")], SPACE).metric is None
    np.testing.assert_allclose(past.tasks["losses"].y, [-1.0, -4.0, -2.0])
    np.testing.assert_allclose(past.tasks["scores"].y, [1.0, 4.0, 2.0])
    np.testing.assert_allclose(past.tasks["losses"].X, [[0.0, 1.0, 0.0], [0.25, 1.0, 0.0], [0.5, 1.0, 0.0]])
    assert past.exclusions == ()


def test_durations_are_costs():
    study = filled("one")
    trials = study.get_trials(deepcopy=True)
    for seconds, trial in zip((0.5, 0.0, 90.0), trials, strict=True):
        trial.datetime_complete = trial.datetime_start + timedelta(seconds=seconds)
    again = optuna.create_study(study_name="again")
    again.add_trials(trials)
    np.testing.assert_array_equal(from_studies(again, SPACE).tasks["again"].costs, [0.5, np.nan, 90.0])


def test_states_of_trials():
    study = filled("one")
    add(study, 0.9, None, state=TrialState.FAIL)
    add(study, 0.9, -9.0, state=TrialState.PRUNED)
    add(study, 0.9, None, state=TrialState.RUNNING)
    add(study, 1.0, math.inf)
    task = from_studies(study, SPACE).tasks["one"]
    assert task.X[:, 0].tolist() == [0.0, 0.25, 0.5, 1.0]
    assert np.argmin(task.y) == 3


def test_exclusions_are_listed():
    several = optuna.create_study(study_name="several", directions=["minimize", "maximize"])
    wide, other, short, flat = filled("wide"), optuna.create_study(study_name="other"), filled("short", [1.0]), None
    flat = filled("flat", [1.0, 1.0, 1.0])
    add(other, 0.5, 1.0, momentum=0.5)
    wide.add_trial(optuna.create_trial(params={"x": 3.0}, distributions={"x": FloatDistribution(0, 9)}, value=1.0))
    past = from_studies([several, wide, other, short, flat], SPACE)
    assert list(past.tasks) == ["wide"]
    assert len(past.tasks["wide"].y) == 3
    reasons = {"several": "one objective, but has 2", "wide": "x must be a number in [0.0, 1.0]", "other": "has 1"}
    reasons |= {"short": "has 1", "flat": "all are equal"}
    for exclusion, (name, reason) in zip(past.exclusions, reasons.items(), strict=True):
        assert str(exclusion).startswith(f"{name}: ")
        assert reason in exclusion.reason


def test_studies_of_one_name_are_kept_apart():
    past = from_studies([filled("one"), filled("one", [3.0, 2.0, 1.0])], SPACE)
    assert list(past.tasks) == ["one", "one (2)"]


@pytest.mark.parametrize("kind", ["journal", "sqlite", "url", "object"])
def test_all_studies_of_a_storage(kind, tmp_path):
    path = tmp_path / "studies"
    storage = JournalStorage(JournalFileBackend(str(path))) if kind == "journal" else f"sqlite:///{path}"
    if kind == "object":
        storage = optuna.storages.InMemoryStorage()
    for name in ("a", "b"):
        filled(name, storage=storage)
    inputs = {"journal": path, "sqlite": str(path), "url": storage, "object": storage}[kind]
    assert list(from_studies(inputs, SPACE).tasks) == ["a", "b"]


@pytest.mark.parametrize("content", [None, b"", b"no journal\n{}\n", b"\x00\xff\n\n", b'{"op_code": 99}\n'])
@pytest.mark.parametrize("scheme", ["", "sqlite:///"])
def test_malformed_storages(content, scheme, tmp_path):
    path = tmp_path / "studies.log"
    if content is not None:
        path.write_bytes(content)
    with raises_line(DataError, "studies.log"):
        from_studies(f"{scheme}{path}", SPACE)
    assert (path.read_bytes() if path.exists() else None) == content


def test_arguments_that_are_no_study():
    for argument in (3, [3], ["one"]):
        with pytest.raises(DataError, match="Optuna"):
            from_studies(argument, SPACE)
    with pytest.raises(DataError, match=r"postgresql://nowhere/db") as error:
        from_studies("postgresql://me:secret@nowhere/db", SPACE)
    assert "secret" not in str(error.value)
