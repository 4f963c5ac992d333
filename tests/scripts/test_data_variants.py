"""Folds and misleading tasks."""

from pathlib import Path

import numpy as np
import pytest

from dre_jax.data import Results, bundled, load_space, write_dataset
from dre_jax.errors import ConfigError
from dre_jax.hpob.jobs import BUNDLED

SPACE = bundled.load("svm")


@pytest.fixture(scope="module")
def variants(part):
    """The scripts' module."""
    return part("data_variants")


def test_every_past_task_is_held_out_by_one_fold_and_keeps_its_split_in_the_others(variants):
    folds = [variants.fold(SPACE, i, 5) for i in range(5)]
    past = SPACE.train.keys() | SPACE.validation.keys()
    held = [name for one in folds for name in one.test]
    assert sorted(held) == sorted(past)
    for one in folds:
        assert one.train.keys() == SPACE.train.keys() - one.test.keys()
        assert one.validation.keys() == SPACE.validation.keys() - one.test.keys()
        assert abs(len(one.test) - len(past) / 5) < 1


def test_designs_that_are_there_are_kept_and_others_are_rows_of_the_task(variants):
    one = variants.fold(SPACE, 1, 3)
    tasks = {**one.train, **one.validation, **one.test}
    assert one.designs.keys() == tasks.keys()
    for name, designs in one.designs.items():
        if name in SPACE.validation:
            assert designs is SPACE.designs[name]
        for rows in designs.values():
            assert len(set(rows)) == 5
            assert 0 <= min(rows) <= max(rows) < tasks[name].n_rows


@pytest.mark.parametrize(("number", "of"), [(0, 1), (5, 5), (-1, 5), (0, 1000)])
def test_folds_that_are_none_are_refused(variants, number, of):
    with pytest.raises(ConfigError, match="folds must be 2 to"):
        variants.fold(SPACE, number, of)


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


def test_folders_are_written_once_and_read_as_they_were_made(variants, tmp_path):
    source = tmp_path / "small"
    small = {name: SPACE.train[name] for name in list(SPACE.train)[:2]}
    write_dataset(source, [type(SPACE)("svm", train=small, test=SPACE.test, designs={})])
    first = variants.write_folds(str(source), tmp_path, 2)
    assert [Path(one).name for one in first] == ["small-fold-1-of-2", "small-fold-2-of-2"]
    stamps = [path.stat().st_mtime_ns for one in first for path in Path(one).iterdir()]
    assert variants.write_folds(str(source), tmp_path, 2) == first
    assert stamps == [path.stat().st_mtime_ns for one in first for path in Path(one).iterdir()]
    read = load_space(first[0], "svm")
    assert read.test.keys() == variants.fold(load_space(source, "svm"), 0, 2).test.keys()


def test_misleading_bundled_data_keep_their_columns(variants, tmp_path):
    read = load_space(variants.write_variant(BUNDLED, tmp_path, "reversed"), "svm")
    assert read.columns == SPACE.columns
    name = next(iter(SPACE.test))
    np.testing.assert_array_equal(read.test[name].y, -SPACE.test[name].y)


def test_folds_come_together_under_the_label_of_what_was_folded(variants):
    kept = Results({"bundled-fold-1-of-2/svm": {"wine": {}}, "bundled-fold-2-of-2/svm": {"iris": {}}})
    assert variants.unfold(kept).traces == {"bundled/svm": {"wine": {}, "iris": {}}}


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
