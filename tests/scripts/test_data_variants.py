"""Misleading tasks, and past tasks of an earlier search space."""

import numpy as np
import pytest

from dre_jax.data import bundled, load_space
from dre_jax.hpob.jobs import BUNDLED

SPACE = bundled.load("svm")


@pytest.fixture(scope="module")
def variants(part):
    """The scripts' module."""
    return part("data_variants")


@pytest.mark.parametrize("how", ["reversed", "permuted"])
def test_misleading_tasks_have_the_same_responses_at_other_rows(variants, how):
    found = variants.mislead(SPACE, how)
    assert (found.train, found.validation, found.designs) == (SPACE.train, SPACE.validation, SPACE.designs)
    for name, task in SPACE.test.items():
        new = found.test[name]
        sign = -1.0 if how == "reversed" else 1.0
        np.testing.assert_array_equal(np.sort(sign * new.y), np.sort(task.y))
        correlation = np.corrcoef(new.y, task.y)[0, 1]
        assert correlation < -0.999 if how == "reversed" else abs(correlation) < 0.5
        np.testing.assert_array_equal(new.X, task.X)


def test_misleading_bundled_data_keep_their_columns(variants, tmp_path):
    folder = variants.write_variant(BUNDLED, tmp_path, "reversed")
    stamps = [path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")]
    assert variants.write_variant(BUNDLED, tmp_path, "reversed") == folder
    assert stamps == [path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")]
    read = load_space(folder, "svm")
    assert read.columns == SPACE.columns
    name = next(iter(SPACE.test))
    np.testing.assert_array_equal(read.test[name].y, -SPACE.test[name].y)


def test_past_tasks_of_an_earlier_space_lack_columns_or_half_their_range(variants):
    same, fewer, half, narrow = (variants.earlier(SPACE, how) for how in variants.EARLIER)
    n = SPACE.n_columns
    for space in (same, fewer, half, narrow):
        assert {name: task.n_rows for name, task in space.train.items()} == dict.fromkeys(SPACE.train, 64)
        assert all(np.array_equal(task.X[:, :n], SPACE.test[name].X) for name, task in space.test.items())
    assert [space.n_columns - n for space in (same, fewer, half, narrow)] == [0, 1, 1, 0]  # C alone is unconditional
    for name, task in fewer.train.items():
        distance = np.sort(np.abs(SPACE.train[name].X[:, 0] - 0.5))
        assert np.abs(narrow.train[name].X[:, 0] - 0.5).max() == distance[63]
        np.testing.assert_array_equal(narrow.train[name].X[:, 1:], task.X[:, 1:n])
        np.testing.assert_array_equal(narrow.train[name].y, task.y)
        np.testing.assert_array_equal(task.X[:, [0, n]], np.tile([0.5, 1.0], (64, 1)))
    absent = [task.X[0, n] for task in half.train.values()]
    assert absent == [1.0, 0.0] * 10
    assert all((task.X[:, n] == 0.0).all() for task in (*fewer.test.values(), *half.test.values()))


def test_the_columns_of_an_earlier_space_are_described(variants, tmp_path):
    space = load_space(variants.write_variant(BUNDLED, tmp_path, "fewer"), "svm")
    assert [one.name for one in space.columns] == [*(one.name for one in SPACE.columns), "C.na"]
