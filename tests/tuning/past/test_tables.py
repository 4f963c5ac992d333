"""Past evaluations in data frames and CSV files."""

import itertools
import math
from datetime import datetime, timedelta

import numpy as np
import optuna
import pandas as pd
import pytest

from dre_jax import (
    Bool,
    Categorical,
    DataError,
    Evaluated,
    Float,
    Int,
    Optimizer,
    Space,
    from_csv,
    from_frame,
    past_of,
)

SPACE = Space(
    {
        "C": Float(0.1, 10.0, log=True),
        "kernel": Categorical(["rbf", "poly", None]),
        "degree": Int(2, 5, when={"kernel": "poly"}),
        "shrink": Bool(),
    }
)
CONFIGURATIONS = [
    {"C": 0.1, "kernel": "rbf", "shrink": True},
    {"C": 1.0, "kernel": "poly", "degree": 3, "shrink": False},
    {"C": 10.0, "kernel": None, "shrink": True},
]
VALUES = {"a": [3.0, 1.0, 2.0], "b": [0.5, 0.25, math.inf]}


@pytest.fixture
def frame():
    rows = [
        {"task": task, "value": value, "date": "today"} | params
        for task, values in VALUES.items()
        for value, params in zip(values, CONFIGURATIONS, strict=True)
    ]
    return pd.DataFrame(rows)


def check(past, sign):
    assert past.exclusions == ()
    assert list(past.tasks) == ["a", "b"]
    for task in past.tasks.values():
        np.testing.assert_allclose(task.X, [SPACE.encode(params) for params in CONFIGURATIONS], atol=1e-6)
    np.testing.assert_allclose(past.tasks["a"].y, np.multiply(sign, VALUES["a"]))
    assert np.argsort(sign * past.tasks["b"].y).tolist() == [1, 0, 2]


@pytest.mark.parametrize(("direction", "sign"), [("minimize", -1.0), ("maximize", 1.0)])
def test_a_frame_and_a_file(frame, direction, sign, tmp_path):
    check(from_frame(frame, SPACE, direction=direction), sign)
    columns = {name: frame[name].tolist() for name in frame.columns}
    check(from_frame(columns, SPACE, direction=direction), sign)
    renamed = frame.rename(columns={"task": "dataset", "value": "loss"})
    check(from_frame(renamed, SPACE, direction=direction, task="dataset", value="loss"), sign)
    for suffix in (".csv", ".csv.gz"):
        frame.to_csv(tmp_path / f"past{suffix}", index=False)
        check(from_csv(tmp_path / f"past{suffix}", SPACE, direction=direction), sign)
    frame = frame.astype({"C": "float32", "degree": "Int64", "shrink": "boolean"})  # pandas' own types
    check(from_frame(frame, SPACE, direction=direction), sign)


def test_costs(frame, tmp_path):
    frame["seconds"] = [1.0, np.nan, 3.0] * 2
    frame.to_csv(tmp_path / "past.csv", index=False)
    for read, table in ((from_frame, frame), (from_csv, tmp_path / "past.csv")):
        past = read(table, SPACE, direction="minimize", cost="seconds")
        np.testing.assert_array_equal(past.tasks["a"].costs, [1.0, np.nan, 3.0])
        assert read(table, SPACE, direction="minimize").tasks["a"].costs is None


def test_a_cost_that_is_none_excludes_its_row(frame):
    frame["seconds"] = [1.0, 0.0, 3.0, "long", 2.0, np.inf]
    past = from_frame(pd.concat([frame, frame.assign(seconds=1.0, C=5.0)]), SPACE, direction="minimize", cost="seconds")
    assert [str(one) for one in past.exclusions] == [
        "a: row 2: seconds must be a finite, positive number, but got 0.0",
        "b: row 4: seconds must be a finite, positive number, but got 'long' (2 trials)",
    ]
    trials = [
        Evaluated({"C": c, "kernel": "rbf", "shrink": True}, c, cost)
        for c, cost in zip((1, 2, 3, 4), (1, 0, 2, 3), strict=True)
    ]
    past = past_of(SPACE, {"a": trials}, direction="minimize")
    assert [str(one) for one in past.exclusions] == [
        "a: trial 1: the cost of a trial must be finite and positive, but got 0.0"
    ]
    np.testing.assert_array_equal(past.tasks["a"].costs, [1.0, 2.0, 3.0])


STATES = {"COMPLETE": 3, "PRUNED": 2, "FAIL": 1, "RUNNING": 1}
UNFINISHED = "a trial must be complete, but is pruned (2 trials), fail (1 trial), running (1 trial)"


def optuna_study():
    """A study whose pruned trials report values in the reverse order, on another scale."""
    study = optuna.create_study(study_name="export", sampler=optuna.samplers.RandomSampler(seed=0))
    for i, state in enumerate(itertools.chain.from_iterable([state] * k for state, k in STATES.items())):
        value = {"COMPLETE": i / 8, "PRUNED": 10.0 - i}.get(state)
        start = datetime(2026, 1, 1)
        study.add_trial(
            optuna.trial.FrozenTrial(
                number=i, trial_id=i, state=optuna.trial.TrialState[state], value=value, values=None,
                params={"x": i / 8}, distributions={"x": optuna.distributions.FloatDistribution(0.0, 1.0)},
                user_attrs={}, system_attrs={}, intermediate_values={}, datetime_start=start,
                datetime_complete=None if state == "RUNNING" else start + timedelta(days=i % 2, seconds=1.5 * i),
            )
        )  # fmt: skip
    return study


def test_an_export_of_optuna_is_read_as_it_is(quiet_optuna, tmp_path):
    space = Space({"x": Float(0.0, 1.0)})
    frame, levels = optuna_study().trials_dataframe(), optuna_study().trials_dataframe(multi_index=True)
    frame.to_csv(tmp_path / "export.csv", index=False)
    options = {"direction": "minimize", "task": None}
    pasts = [from_frame(one, space, **options) for one in (frame, levels)]
    for past in (*pasts, from_csv(tmp_path / "export.csv", space, **options)):
        assert list(past.tasks) == ["study"]
        np.testing.assert_allclose(past.tasks["study"].X[:, 0], [0.0, 0.125, 0.25])
        np.testing.assert_allclose(past.tasks["study"].y, [0.0, -0.125, -0.25])
        np.testing.assert_allclose(past.tasks["study"].costs, [np.nan, 86401.5, 3.0])
        assert [str(one) for one in past.exclusions] == [f"study: {UNFINISHED}"]
    renamed = from_frame(frame, Space({"width": Float(0.0, 1.0)}), renamed={"x": "width"}, **options)
    np.testing.assert_allclose(renamed.tasks["study"].X[:, 0], [0.0, 0.125, 0.25])
    trials = optuna_study().get_trials()
    past = past_of(space, {"a": trials}, direction="minimize")
    assert [str(one) for one in past.exclusions] == [f"a: {UNFINISHED}"]


def test_a_column_called_state_may_be_another(frame):
    check(from_frame(frame.assign(state="Ohio", duration="long"), SPACE, direction="minimize"), -1.0)


def test_names_that_an_export_needs_for_itself():
    optimizer = Optimizer(Space({"value": Float(0.0, 1.0), "state": Float(0.0, 1.0)}))
    for x in (0.2, 0.4, 0.8):
        optimizer.add({"value": x, "state": x / 2}, -x)
    optimizer.add({"value": 0.5, "state": 0.5}, None)
    past = from_frame(optimizer.to_frame(), optimizer.space, direction="minimize", task=None)
    np.testing.assert_allclose(past.tasks["study"].X, [[0.2, 0.1], [0.4, 0.2], [0.8, 0.4]], rtol=1e-6)
    assert [str(one) for one in past.exclusions] == ["study: a trial must be complete, but is failed"]


def test_text_is_read_by_the_hyperparameter(tmp_path):
    path = tmp_path / "past.csv"
    lines = ["task, C,kernel ,degree,shrink,loss", "a,0.1, rbf,,true,3", "a,1e0,poly,3.0,0,1", "", "a,10,null,4,2,2"]
    path.write_text("\ufeff" + "\n".join([*lines, "a,10,None,4,TRUE,2"]))
    past = from_csv(path, SPACE, direction="maximize", value="loss")
    assert (past.direction, past.metric) == ("maximize", "loss")
    # The degree of another kernel is dropped.
    assert [str(one) for one in past.exclusions] == ["a: shrink must be one of [False, True], but got '2'"]
    np.testing.assert_allclose(past.tasks["a"].X, [SPACE.encode(params) for params in CONFIGURATIONS], atol=1e-7)


def test_exclusions_are_listed(frame):
    wrong = pd.concat([frame, frame.iloc[[0, 0, 1]].assign(C=[99.0, 0.1, 0.1], value=["1", "many", None])])
    past = from_frame(wrong, SPACE, direction="minimize")
    assert [str(one) for one in past.exclusions] == [
        "a: row 8: value must be a number, but got 'many'",
        "a: C must be a number in [0.1, 10.0], but got 99.0",
    ]
    assert len(past.tasks["a"].y) == 3
    with pytest.raises(DataError, match="'C' must be a column of its own"):
        from_frame(frame, SPACE, direction="minimize", value="C")


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda f: f.drop(columns="C"), "has no 'C'"),
        (
            lambda f: f.drop(columns="task"),
            r"has no 'task': task=None \(--task ''\) reads the table as the trials of one",
        ),
        (lambda f: f.assign(task=["a", None, "b", "b", "b", "b"]), "row 2 does not"),
        (lambda f: pd.concat([f, f[["C"]]], axis=1), "'C' occurs 2 times"),
        (lambda f: {name: f[name].tolist()[: 1 + (name == "C")] for name in f.columns}, "equally long"),
    ],
)
def test_a_frame_that_is_no_table(frame, change, phrase):
    with pytest.raises(DataError, match=phrase):
        from_frame(change(frame), SPACE, direction="minimize")
