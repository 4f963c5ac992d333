"""Past evaluations in data frames, CSV files and Syne Tune's layout."""

import contextlib
import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dre_jax.errors import ConfigError, DataError, DreError
from dre_jax.tuning import Bool, Categorical, Float, Int, Space, from_csv, from_frame, from_syne_tune
from tests.tuning.conftest import examples

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
def test_a_frame(frame, direction, sign):
    check(from_frame(frame, SPACE, direction=direction), sign)
    columns = {name: frame[name].tolist() for name in frame.columns}
    check(from_frame(columns, SPACE, direction=direction), sign)
    renamed = frame.rename(columns={"task": "dataset", "value": "loss"})
    check(from_frame(renamed, SPACE, direction=direction, task="dataset", value="loss"), sign)


def test_a_frame_of_single_precision_and_pandas_own_types(frame):
    frame["C"] = frame["C"].astype("float32")
    frame["degree"] = frame["degree"].astype("Int64")
    frame["shrink"] = frame["shrink"].astype("boolean")
    check(from_frame(frame, SPACE, direction="maximize"), 1.0)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_csv_file(frame, suffix, tmp_path):
    path = tmp_path / f"past{suffix}"
    frame.to_csv(path, index=False)
    check(from_csv(path, SPACE, direction="maximize"), 1.0)


def test_text_is_read_by_the_hyperparameter(tmp_path):
    path = tmp_path / "past.csv"
    lines = ["task,C,kernel,degree,shrink,value", "a,0.1, rbf,,true,3", "a,1e0,poly,3.0,False,1", "", "a,10,null,4,1,2"]
    path.write_text("\ufeff" + "\n".join([*lines, "a,10,None,4,True,2"]))
    past = from_csv(path, SPACE, direction="maximize")
    # The number 1 is not true; the degree of another kernel is dropped.
    assert [str(one) for one in past.exclusions] == ["a: shrink must be one of [False, True], but got '1'"]
    np.testing.assert_allclose(past.tasks["a"].X, [SPACE.encode(params) for params in CONFIGURATIONS], atol=1e-7)


def test_what_does_not_fit_is_listed(frame):
    wrong = pd.concat([frame, frame.iloc[[0, 0, 1]].assign(C=[99.0, 0.1, 0.1], value=["1", "many", None])])
    past = from_frame(wrong, SPACE, direction="minimize")
    assert [str(one) for one in past.exclusions] == [
        "a: value must be a number, but got 'many'",
        "a: C must be a number in [0.1, 10.0], but got 99.0",
    ]
    assert len(past.tasks["a"].y) == 3


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda f: f.drop(columns="C"), "has no 'C'"),
        (lambda f: f.drop(columns="task"), "has no 'task'"),
        (lambda f: f.assign(task=["a", None, "b", "b", "b", "b"]), "row 2 does not"),
        (lambda f: pd.concat([f, f[["C"]]], axis=1), "'C' occurs 2 times"),
        (lambda f: {name: f[name].tolist()[: 1 + (name == "C")] for name in f.columns}, "equally long"),
    ],
)
def test_a_frame_that_is_no_table(frame, change, phrase):
    with pytest.raises(DataError, match=phrase):
        from_frame(change(frame), SPACE, direction="minimize")


def test_names_are_told_apart(frame):
    with pytest.raises(DataError, match="'C' must be a column of its own"):
        from_frame(frame, SPACE, direction="minimize", value="C")
    with pytest.raises(ConfigError, match="direction"):
        from_frame(frame, SPACE, direction="down")


@settings(examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=80),
        st.lists(
            st.lists(st.one_of(st.text(max_size=8), st.floats().map(str), st.integers().map(str)), max_size=7),
            max_size=6,
        ).map(lambda rows: "\n".join(["task,C,kernel,degree,shrink,value", *map(",".join, rows)]).encode()),
    )
)
def test_any_csv_file_is_read_or_refused(tmp_path, content):
    path = tmp_path / "past.csv"
    path.write_bytes(content)
    with contextlib.suppress(DreError):
        from_csv(path, SPACE, direction="minimize")
    assert path.read_bytes() == content


# Syne Tune's layout, as `serialize` writes it in its blackbox_tabular.py, pd1_import.py and blackbox_offline.py.

DOMAINS = {
    "hp_lr": {
        "domain_cls": "Float",
        "domain_kwargs": {"lower": 1e-4, "upper": 1e-1},
        "sampler_cls": "LogUniform",
        "sampler_kwargs": {"base": 2.718281828459045},
    },
    "hp_layers": {
        "domain_cls": "Integer",
        "domain_kwargs": {"lower": 1, "upper": 5},
        "sampler_cls": "Uniform",
        "sampler_kwargs": {},
    },
    "hp_units": {
        "domain_cls": "FiniteRange",
        "domain_kwargs": {"lower": 16, "upper": 64, "size": 3, "log_scale": True, "cast_int": True},
    },
    "hp_schedule": {"domain_cls": "Categorical", "domain_kwargs": {"categories": ["cosine", "const"]}},
    "repl": 10,
}
HYPERPARAMETERS = pd.DataFrame(
    {
        "hp_lr": [1e-4, 1e-2, 1e-1, 1e-3],
        "hp_layers": [1, 2, 5, 3],
        "hp_units": [16, 32, 64, 16],
        "hp_schedule": ["cosine", "const", "cosine", "const"],
    }
)
OBJECTIVES = ["metric_loss", "metric_elapsed_time"]
TASKS = ["wine", "digits"]


@pytest.fixture
def curves():
    """(tasks, configurations, seeds, fidelities, objectives), one of them cut short, one never begun."""
    found = np.random.default_rng(0).uniform(size=(2, 4, 2, 3, 2)).astype(np.float32)
    found[0, 1, 0, 2:] = np.nan
    found[0, 3, 1] = np.nan
    return found


@pytest.fixture
def repository(tmp_path):
    metadata = {"objectives_names": OBJECTIVES, "task_names": TASKS, "metric_default": "metric_loss"}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    (tmp_path / "configspace.json").write_text(json.dumps(DOMAINS))
    return tmp_path


@pytest.fixture
def shared(repository, curves):
    HYPERPARAMETERS.to_parquet(repository / "hyperparameters.parquet", index=False, compression="gzip")
    np.save(repository / "objectives_evaluations.npy", curves)
    np.save(repository / "fidelities_values.npy", np.arange(1, 4))
    return repository


@pytest.fixture
def expected(curves):
    """Minus the loss at the end of each curve, by hand."""
    ends = curves[:, :, :, 2, 0].astype(float)
    ends[0, 1, 0] = curves[0, 1, 0, 1, 0]
    means = ends.mean(axis=2)
    means[0, 3] = ends[0, 3, 0]
    return -means


def test_syne_tunes_space_is_read(shared):
    assert from_syne_tune(shared, direction="minimize").space == Space(
        {
            "hp_lr": Float(1e-4, 1e-1, log=True),
            "hp_layers": Int(1, 5),
            "hp_units": Categorical([16, 32, 64], ordered=True),
            "hp_schedule": Categorical(["cosine", "const"]),
        }
    )


def test_syne_tunes_tables_of_shared_configurations(shared, expected):
    past = from_syne_tune(shared, direction="minimize")
    assert list(past.tasks) == TASKS
    assert past.exclusions == ()
    rows = [past.space.encode(row) for row in HYPERPARAMETERS.to_dict("records")]
    for task, values in zip(past.tasks.values(), expected, strict=True):
        np.testing.assert_allclose(task.X, rows, rtol=1e-6)
        np.testing.assert_allclose(task.y, values, rtol=1e-6)
    one = from_syne_tune(shared, direction="maximize", objective="metric_elapsed_time", tasks=["digits"])
    assert list(one.tasks) == ["digits"]


def test_syne_tunes_tables_of_each_task(repository, curves, expected):
    for task, table in zip(TASKS, curves, strict=True):
        HYPERPARAMETERS.to_parquet(repository / f"{task}-hyperparameters.parquet", index=False, compression="gzip")
        np.save(repository / f"{task}-objectives_evaluations.npy", table)
    past = from_syne_tune(repository, direction="minimize")
    for task, values in zip(past.tasks.values(), expected, strict=True):
        np.testing.assert_allclose(task.y, values, rtol=1e-6)


def test_syne_tunes_rows(repository):
    """Two seeds of two fidelities; the last row of a shorter training does not count."""
    (repository / "fidelityspace.json").write_text(json.dumps({"hp_epoch": {}}))
    for task in TASKS:
        rows = [
            row | {"hp_epoch": epoch, "seed": seed, "metric_loss": i + 10.0 * seed + 100 * (epoch == 1), "task": task}
            for epoch in (9, 1)
            for seed in (0, 1)
            for i, row in enumerate(HYPERPARAMETERS.to_dict("records"))
        ]
        pd.DataFrame(rows).to_parquet(repository / f"data-{task}.parquet", index=False)
    past = from_syne_tune(repository, direction="minimize")
    np.testing.assert_allclose(past.tasks["digits"].y, [-5.0, -6.0, -7.0, -8.0])


@pytest.mark.parametrize(
    ("name", "content", "phrase"),
    [
        ("metadata.json", b"{}", "task_names"),
        ("metadata.json", None, "metadata.json"),
        ("configspace.json", b'{"x": {"domain_cls": "Quaternion", "domain_kwargs": {}}}', "Quaternion"),
        (
            "configspace.json",
            b'{"x": {"domain_cls": "Float", "domain_kwargs": {"lower": 2, "upper": 1}}}',
            "low <= high",
        ),
        ("configspace.json", b'{"x": {}}', "domain_cls"),
        ("configspace.json", b'{"x": 1}', "at least one"),
        ("hyperparameters.parquet", b"PAR1", "parquet"),
        ("hyperparameters.parquet", None, "neither"),
        ("objectives_evaluations.npy", b"no array", "array"),
        ("objectives_evaluations.npy", None, "array"),
    ],
)
def test_a_folder_that_is_none(shared, name, content, phrase):
    (shared / name).unlink()
    if content is not None:
        (shared / name).write_bytes(content)
    with pytest.raises(DataError, match=phrase) as error:
        from_syne_tune(shared, direction="minimize")
    assert "\n" not in str(error.value)


def test_what_the_folder_does_not_have(shared):
    with pytest.raises(
        DataError, match="objective must be one of metric_loss, metric_elapsed_time, but got 'accuracy'"
    ):
        from_syne_tune(shared, direction="minimize", objective="accuracy")
    with pytest.raises(DataError, match="tasks are wine, digits, but got 'iris'"):
        from_syne_tune(shared, direction="minimize", tasks=["iris"])
    np.save(shared / "objectives_evaluations.npy", np.zeros((2, 3, 1, 1, 2)))
    with pytest.raises(DataError, match="4 configurations"):
        from_syne_tune(shared, direction="minimize")
    np.save(shared / "objectives_evaluations.npy", np.zeros((1, 4, 1, 1, 2)))
    with pytest.raises(DataError, match="2 tasks"):
        from_syne_tune(shared, direction="minimize")


def test_a_gzip_file_that_is_torn(tmp_path):
    path = tmp_path / "past.csv.gz"
    path.write_bytes(gzip.compress(b"task,C\n")[:-4])
    with pytest.raises(DataError, match="gzip"):
        from_csv(path, SPACE, direction="minimize")
