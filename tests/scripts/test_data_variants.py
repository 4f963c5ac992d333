"""Misleading tasks."""

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
    result = variants.mislead(SPACE, how)
    assert (result.train, result.validation, result.designs) == (SPACE.train, SPACE.validation, SPACE.designs)
    for name, task in SPACE.test.items():
        new = result.test[name]
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
