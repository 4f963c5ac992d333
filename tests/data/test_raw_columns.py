"""Columns that HPO-B left on a raw scale."""

import json
import math

import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, load_space, write_dataset
from dre_jax.data.columns import DESCRIPTORS
from dre_jax.data.raw_columns import RAW, fix_columns
from dre_jax.errors import ConfigError, DataError
from dre_jax.hpob import Evaluation, Plan
from dre_jax.space.hpob import hpob_space

LAMBDA = (0.001, 1000.0)


def ends(low, high):
    return {"min_before_tf": low, "max_before_tf": high}


DESCRIPTOR = {
    "variables": {"alpha": ends(0.0, 1.0), "lambda": ends(*LAMBDA)},
    "variables_order": ["alpha", "lambda"],
    "variables_to_apply_log": [],
}


@pytest.fixture
def folder(tmp_path):
    """A folder with search space 5970, whose second column is on a raw scale, and another one."""
    random = np.random.default_rng(0)
    lambdas = np.exp(random.uniform(*np.log(LAMBDA), 12))
    x = np.column_stack([random.random(12), (lambdas - LAMBDA[0]) / (LAMBDA[1] - LAMBDA[0])]).astype(np.float32)
    task = Task("wine", x, random.random(12))
    designs = {"wine": {"test0": np.arange(3)}}
    write_dataset(tmp_path, [SearchSpace(name, test={"wine": task}, designs=designs) for name in ("5970", "other")])
    (tmp_path / f"{DESCRIPTORS}.json").write_text(json.dumps({"5970": DESCRIPTOR}))
    return tmp_path


def test_corrected_columns_are_scaled_logarithms_and_others_stay(folder):
    published, fixed = (load_space(folder, "5970", columns=columns) for columns in ("published", "fixed"))
    x, new = published.test["wine"].X, fixed.test["wine"].X
    low, high = (math.log(end + 1e-4) for end in LAMBDA)
    for row, new_row in zip(x.astype(float), new, strict=True):
        value = LAMBDA[0] + row[1] * (LAMBDA[1] - LAMBDA[0])
        assert new_row[1] == pytest.approx((math.log(value + 1e-4) - low) / (high - low), abs=1e-6)
        assert new_row[0] == np.float32(row[0])
    assert [column.log for column in fixed.columns] == [False, True]
    np.testing.assert_array_equal(fixed.test["wine"].y, published.test["wine"].y)
    other = load_space(folder, "other", columns="fixed")
    np.testing.assert_array_equal(other.test["wine"].X, x)


@pytest.mark.parametrize("name", ["5970", *RAW])
def test_the_search_space_encodes_as_the_tables_are(name, folder, request):
    if name != "5970":
        folder = request.getfixturevalue("shared_data") / "hpob-traces"
    published, fixed = (hpob_space(name, folder, columns=columns) for columns in ("published", "fixed"))
    points = np.random.default_rng(0).random((20, len(published)))
    params = [published.params(point) for point in points]
    rows = np.array([published.encode(one) for one in params]).astype(np.float32)
    tables = SearchSpace(name, test={"t": Task("t", rows, np.arange(20.0))}, columns=published.columns)
    table = fix_columns(folder, tables)
    np.testing.assert_allclose(table.test["t"].X, [fixed.encode(one) for one in params], atol=2e-4)
    assert [(one.name, one.log) for one in table.columns] == [(one.name, one.log) for one in fixed.columns]
    changed = {b.parent for a, b in zip(published.columns, fixed.columns, strict=True) if a.log != b.log}
    assert changed == set(RAW[name])


def test_results_say_which_columns_were_used(folder, tmp_path):
    for columns in ("published", "fixed"):
        plan = Plan(data=folder, spaces=("5970",), method="random", trials=2, columns=columns)
        evaluation = Evaluation(plan, tmp_path / f"{columns}.json")
        assert len(list(evaluation)) == 1
        protocol = json.loads((tmp_path / f"{columns}.json").read_text())["_meta"]["protocol"]
        assert protocol.get("columns", "published") == columns


def test_columns_that_cannot_be_corrected(folder, tmp_path):
    with pytest.raises(ConfigError, match="columns must be one of published, fixed"):
        load_space(folder, "5970", columns="raw")
    plan = Plan(data=folder, method="random", columns="fixed", continuous="fixed", surrogates=tmp_path)
    with pytest.raises(ConfigError, match="surrogates need the published columns"):
        Evaluation(plan, tmp_path / "out.json")
    (folder / f"{DESCRIPTORS}.json").unlink()
    with pytest.raises(DataError, match="corrected columns need meta-dataset-descriptors"):
        load_space(folder, "5970", columns="fixed")
