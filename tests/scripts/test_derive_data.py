"""Meta-datasets that are derived from another."""

import numpy as np
import pytest

from dre_jax.data import bundled
from dre_jax.data.hpob import load_space


@pytest.fixture
def derive(part, tmp_path):
    """Runs the script on the bundled data; returns the folder."""

    def run(*options, space="svm"):
        part("derive_data").main(
            ["--data", "bundled", "--space", space, "--out", str(tmp_path / "new"), *map(str, options)]
        )
        return tmp_path / "new"

    return run


def test_every_task_is_in_one_fold_and_a_past_task_of_the_others(derive):
    whole = load_space(bundled.path(), "svm")
    folder = derive("--folds", 4)
    folds = [load_space(path, "svm") for path in sorted(folder.iterdir())]
    names = {*whole.train, *whole.validation, *whole.test}
    assert sorted(name for fold in folds for name in fold.test) == sorted(names)
    for fold in folds:
        assert {*fold.train} == names - {*fold.test}
        name = next(name for name in fold.test if name in whole.test)
        np.testing.assert_array_equal(fold.test[name].y, whole.test[name].y)
        np.testing.assert_array_equal(fold.designs[name]["test0"], whole.designs[name]["test0"])


def test_a_derivation_changes_nothing_by_default(part):
    script, whole = part("derive_data"), load_space(bundled.path(), "svm")
    result = script.derive(whole, script.Derivation())
    assert (result.train, result.validation, result.test) == (whole.train, whole.validation, whole.test)
    assert result.designs == whole.designs


def test_past_tasks_and_rows_are_left_out(derive):
    whole = load_space(bundled.path(), "svm")
    space = load_space(derive("--past-tasks", 3, "--past-rows", 7, "--test-rows", 50), "svm")
    assert len(space.train) == 3
    for name, task in space.train.items():
        assert task.n_rows == 7
        rows = [np.flatnonzero((row == whole.train[name].X).all(axis=1))[0] for row in task.X]
        np.testing.assert_array_equal(task.y, whole.train[name].y[rows])
    for name, task in space.test.items():
        assert task.n_rows == 50
        assert {tuple(row) for row in task.X} <= {tuple(row) for row in whole.test[name].X}
        assert all(len({*rows}) == 2 and max(rows) < 50 for rows in space.designs[name].values())


def test_responses_mislead_or_diverge(derive):
    whole = load_space(bundled.path(), "svm")
    for kind in ("reversed", "permuted", "diverged", "plateau"):
        space = load_space(derive("--responses", kind), "svm")
        for name, task in space.test.items():
            y = whole.test[name].y
            if kind == "reversed":
                np.testing.assert_array_equal(task.y, -y)
            elif kind == "permuted":
                assert (task.y != y).mean() > 0.5
                np.testing.assert_array_equal(np.sort(task.y), np.sort(y))
            elif kind == "plateau":
                floor = np.quantile(y, 0.85)
                assert 0.65 < (task.y == floor).mean() < 0.8
                assert (task.y[y > floor] == y[y > floor]).all()
                assert 0.05 < (task.y < floor).mean() < 0.2
            else:
                assert 0.2 < (task.y < y.min()).mean() < 0.34
                assert (task.y[y >= np.quantile(y, 0.9)] == y[y >= np.quantile(y, 0.9)]).all()


def test_past_tasks_are_of_another_model(derive):
    space = load_space(derive("--past-from", "bundled", "random-forest"), "svm")
    other = load_space(bundled.path(), "random-forest")
    assert {*space.train} == {*other.train}
    assert space.n_columns == load_space(bundled.path(), "svm").n_columns
