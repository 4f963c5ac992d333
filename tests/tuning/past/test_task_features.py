"""Features of past tasks: from mappings, tables, Optuna's studies and studies of this library."""

import math

import numpy as np
import optuna
import pandas as pd
import pytest

from dre_jax import (
    Choice,
    ConfigError,
    DataError,
    Evaluated,
    Float,
    Linear,
    Log,
    Optimizer,
    Space,
    from_csv,
    from_frame,
    from_studies,
    past_of,
)
from dre_jax.tuning.past.tasks import describe_changes
from tests.error_messages import error_table, raises_line

SPACE = Space({"x": Float(0.0, 1.0)})
ROWS = {"a": 100, "b": 1000, "c": 5000}
FEATURES = {name: {"rows": rows, "gpu": "ab"[rows > 100]} for name, rows in ROWS.items()}


def trials(n=4):
    return [Evaluated({"x": i / n}, i * 1.0) for i in range(n)]


def past_with(features, tasks="abc", **options):
    return past_of(SPACE, {name: trials() for name in tasks}, direction="minimize", features=features, **options)


def encoded(past):
    return {name: None if task.features is None else task.features.tolist() for name, task in past.tasks.items()}


def check(past):
    assert past.features.types == {"rows": Log(), "gpu": Choice(["a", "b"])}
    assert past.features.ranges == {"rows": (100.0, 5000.0)}
    for name, rows in ROWS.items():
        expected = [math.log10(rows), rows == 100, rows > 100]
        np.testing.assert_allclose(past.tasks[name].features, np.array(expected, float), rtol=1e-6)
    assert describe_changes(past) == ""


def test_from_a_mapping():
    check(past_with(FEATURES))
    types = {"rows": Linear(), "gpu": Choice(["a", "b", "c"])}
    past = past_with(FEATURES, feature_types=types)
    assert past.features.types == types
    assert encoded(past)["a"] == [100.0, 1.0, 0.0, 0.0]
    assert encoded(past_with(None)) == dict.fromkeys("abc")


def test_from_tables(tmp_path):
    rows = [
        {"task": name, "x": one.params["x"], "value": one.value, **FEATURES[name]} for name in ROWS for one in trials()
    ]
    options = {"direction": "minimize", "features": ["rows", "gpu"]}
    frame = pd.DataFrame(rows)
    check(from_frame(frame, SPACE, **options))
    frame.to_csv(tmp_path / "past.csv", index=False)
    check(from_csv(tmp_path / "past.csv", SPACE, **options))
    assert from_frame(frame, SPACE, direction="minimize").features is None
    frame.loc[5, "rows"] = None
    check(from_frame(frame, SPACE, **options))
    frame.loc[5, "rows"] = 7
    with raises_line(
        DataError, "a table: task 'b': a feature must be constant within a task", "'rows' has 1000.0 and 7"
    ):
        from_frame(frame, SPACE, **options)
    with raises_line(DataError, "must have the columns task, value, tokens, x, but has no 'tokens'"):
        from_frame(frame, SPACE, direction="minimize", features=["tokens"])
    with raises_line(ConfigError, "features must be a list of names, but got 'rows'"):
        from_frame(frame, SPACE, direction="minimize", features="rows")


def test_from_studies_of_optuna():
    studies = []
    for name, values in FEATURES.items():
        study = optuna.create_study(study_name=name, sampler=optuna.samplers.RandomSampler(seed=0))
        study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=4)
        for feature, value in values.items():
            study.set_user_attr(feature, value)
        studies.append(study)
    check(from_studies(studies, SPACE, features=["rows", "gpu"]))
    assert from_studies(studies, SPACE).features is None
    with raises_line(DataError, "features are user attributes of studies, but no study has 'tokens'"):
        from_studies(studies, SPACE, features=["tokens"])


def test_from_studies_of_this_library(tmp_path):
    studies = {}
    for name, values in FEATURES.items():
        optimizer = Optimizer(SPACE, features=values)
        for one in trials():
            optimizer.add(one.params, one.value)
        optimizer.save(tmp_path / name)
        studies[name] = Optimizer.load(tmp_path / name)
        assert studies[name].features == values
    check(past_of(SPACE, studies, direction="minimize"))
    studies |= {"a": studies["a"].trials}
    check(past_of(SPACE, studies, direction="minimize", features={"a": FEATURES["a"]}))


def test_features_that_are_missing_or_not_used_are_named():
    some = {**FEATURES, "c": {"rows": 5000, "heat": 1.0, "kind": "x"}, "b": {"rows": 1000, "kind": "x"}}
    past = past_with({**some, "a": {"rows": 100, "kind": "x"}}, "abcd")
    assert encoded(past)["d"] == pytest.approx([math.nan], nan_ok=True)
    assert describe_changes(past) == (
        "1 of 4 past tasks has no feature 'rows'; "
        "feature 'kind' is not used: it must differ between past tasks, but is 'x' in all; "
        "feature 'heat' is not used: it must be known of at least 3 past tasks, but is of 1 task"
    )
    past = past_with({"a": {"rows": 1}, "b": {"rows": 2}})
    assert past.features is None
    assert encoded(past) == dict.fromkeys("abc")
    assert "known of at least 3 past tasks, but is of 2 tasks" in describe_changes(past)


def test_only_tasks_that_are_kept_count():
    tasks = {**{name: trials() for name in "abc"}, "short": trials(2)}
    features = {**FEATURES, "short": {"rows": 1e9, "gpu": "z"}}
    check(past_of(SPACE, tasks, direction="minimize", features=features))


test_errors = error_table(
    DataError,
    (lambda: past_with({"z": {"rows": 1}}), "features must be of past tasks, but 'z' is none of a, b, c"),
    (lambda: past_with([1]), "features must map past tasks to their features, but got [1]"),
    (lambda: past_with({"a": 3}), "features of past task 'a' must map names to values, but got 3"),
    (
        lambda: past_with({"a": {"rows": "many"}, "b": {"rows": 1}, "c": {"rows": 2}}),
        "rows must be numbers of all tasks or of none, but is 1 of task 'b' and 'many' of task 'a': "
        "feature_types={'rows': Choice()} reads it as names",
    ),
    (
        lambda: past_with({"a": {"rows": math.inf}, "b": {"rows": 1}, "c": {"rows": 2}}),
        "past task 'a': rows must be a finite number, but got inf",
    ),
    (
        lambda: past_with({"a": {"rows": -1}, "b": {"rows": 1}, "c": {"rows": 2}}, feature_types={"rows": Log()}),
        "past task 'a': rows must be positive on a log scale, but got -1",
    ),
)
test_configuration_errors = error_table(
    ConfigError,
    (lambda: past_with(FEATURES, feature_types={"rows": "log"}), "must be Log(), Linear() or Choice(), but got 'log'"),
    (
        lambda: past_with(FEATURES, feature_types={"tokens": Log()}),
        "feature_types describe rows, gpu, but got 'tokens'",
    ),
)
