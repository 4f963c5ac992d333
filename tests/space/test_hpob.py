"""HPO-B's search spaces against its descriptors, read by a slow loop, and against the rates of its own tables."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task, write_dataset
from dre_jax.errors import ConfigError, DataError
from dre_jax.space.hpob import from_hpob
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import HPOB_SPACES, hpob_space

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "tuning-spaces.md"

# What OpenML does not keep, by the manuals of e1071, rpart, ranger, xgboost and mlr.
LEFT_OUT = {
    "kernel": "radial",
    "degree": 3,
    "minsplit": 20,
    "maxdepth": 30,
    "num.trees": 500,
    "replace": True,
    "respect.unordered.factors": False,
    "min.node.size": 10,
    "booster": "gbtree",
    "max_depth": 6,
    "nrounds": 1,
}
# Not drawn evenly: shares of a data set's columns and rows, and what is no hyperparameter of the model.
BY_DATA = ("mtry", "min.node.size", "nthread")


def number(low, high):
    return {"min_before_tf": low, "max_before_tf": high}


# In HPO-B's form, for where the real ones are not at hand.
SPACES = {
    "5527": {
        "variables": {
            "cost": number(0.001, 1000.0),
            "gamma": number(0.0, 1000.0),
            "degree": number(0.0, 5.0),
            "kernel": {"categories": ["INVALID", "linear", "polynomial"]},
        },
        "variables_order": [
            *("cost", "gamma", "gamma.na", "degree", "degree.na"),
            *("kernel.ohe._INVALID", "kernel.ohe._linear", "kernel.ohe._polynomial"),
        ],
        "variables_to_apply_log": ["cost", "gamma"],
    },
    "5971": {
        "variables": {"eta": number(0.001, 0.99), "max_depth": number(0.0, 15.0), "booster": {}},
        "variables_order": ["eta", "max_depth", "max_depth.na", "booster.ohe._INVALID", "booster.ohe._gblinear"],
        "variables_to_apply_log": ["eta"],
    },
    "5965": {
        "variables": {"num.trees": number(0.0, 2000.0), "min.node.size": number(0.0, 500.0), "replace": {}},
        "variables_order": [
            *("num.trees", "num.trees.na", "min.node.size", "min.node.size.na"),
            *("replace.ohe._FALSE", "replace.ohe._INVALID"),
        ],
        "variables_to_apply_log": ["num.trees", "min.node.size"],
    },
}


@pytest.fixture(scope="module")
def real(shared_data):
    """HPO-B's own descriptors, by search space."""
    result = json.loads((shared_data / "hpob-traces" / "meta-dataset-descriptors.json").read_text())
    return {name: result[name] for name in HPOB_SPACES}


def row_of(descriptor, params):
    """The columns of a configuration, one by one."""
    flagged = {column for column in descriptor["variables_order"] if column.endswith((".na", "._INVALID"))}
    left_out = {k: v for k, v in LEFT_OUT.items() if {f"{k}.na", f"{k}.ohe._INVALID"} & flagged}
    selected = {name: value for name, value in params.items() if left_out.get(name) != value}
    row = []
    for column in descriptor["variables_order"]:
        if ".ohe._" in column:
            name, level = column.split(".ohe._")
            value = selected.get(name, "INVALID")
            value = str(value).upper() if isinstance(value, bool) else value
            row.append(float(value == level))
        elif column.endswith(".na"):
            row.append(float(column[:-3] not in selected))
        else:
            ends = descriptor["variables"][column]
            numbers = [ends["min_before_tf"], selected.get(column, 0), ends["max_before_tf"]]
            if column in descriptor["variables_to_apply_log"]:
                numbers = [math.log(x + 1e-4) for x in numbers]
            low, x, high = numbers
            row.append((x - low) / (high - low))
    return row


def drawn(space, n=64):
    return [space.params(point) for point in sobol_points(n, len(space), 0)]


@pytest.mark.parametrize("which", ["made", *HPOB_SPACES])
def test_columns_are_those_of_the_descriptor(request, which):
    described = SPACES if which == "made" else {which: request.getfixturevalue("real")[which]}
    for name, descriptor in described.items():
        space = from_hpob(name, descriptor)
        assert [column.name for column in space.columns] == descriptor["variables_order"]
        for params in drawn(space):
            row = space.encode(params)
            np.testing.assert_allclose(row, row_of(descriptor, params), rtol=0, atol=1e-12)
            again = space.decode(row)
            assert {k: type(v) for k, v in again.items()} == {k: type(v) for k, v in params.items()}
            for key, value in params.items():
                assert again[key] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)


def test_the_values_that_r_leaves_out():
    space = from_hpob(5527, SPACES["5527"])
    assert space.encode({"kernel": "radial", "cost": 1000.0, "gamma": 1000.0}).tolist() == [1, 1, 0, 0, 1, 1, 0, 0]
    third = space.encode({"kernel": "polynomial", "cost": 0.001, "degree": 3})
    np.testing.assert_allclose(third, [0, 0, 1, 0, 1, 0, 0, 1], atol=1e-12)
    fifth = space.encode({"kernel": "polynomial", "cost": 0.001, "degree": 5})
    np.testing.assert_allclose(fifth, [0, 0, 1, 1, 0, 0, 0, 1], atol=1e-12)
    assert space.decode(third)["degree"] == 3
    assert "gamma" not in space.decode(third)
    depth = from_hpob("5971", SPACES["5971"])
    assert [depth.encode({"eta": 0.99, "booster": "gbtree", "max_depth": d})[2] for d in (5, 6, 7)] == [0, 1, 0]
    trees = from_hpob("5965", SPACES["5965"])
    row = trees.encode({"num.trees": 500, "min.node.size": 10, "replace": True})
    assert row.tolist() == [0, 1, 0, 1, 0, 1]


def shares(descriptor, name):
    """How often the tables hold each level of a categorical, and how many rows they have."""
    counts = descriptor["variables"][name]["count"]
    return {level.split(".ohe._")[1]: n / sum(counts.values()) for level, n in counts.items()}, sum(counts.values())


@pytest.mark.parametrize("name", HPOB_SPACES)
def test_rates_of_inactive_values_are_those_of_the_tables(real, name):
    """Every number: where its condition does not hold, and where a draw is R's default."""
    descriptor, space = real[name], from_hpob(name, real[name])
    leveled = [parent for parent in space if "count" in descriptor["variables"][parent]]
    # How many rows rpart's tables have is not said; a twentieth is what 10,000 of them leave open.
    n_rows = shares(descriptor, leveled[0])[1] if leveled else None
    for parent in set(space) - set(BY_DATA):
        flag = descriptor["variables"].get(f"{parent}.na")
        if flag is None:
            continue
        active = 1.0
        for condition, values in space[parent].when:
            levels = [value if LEFT_OUT[condition] != value else "INVALID" for value in values]
            active = sum(shares(descriptor, condition)[0][level] for level in levels)
        if parent not in LEFT_OUT:  # real numbers
            assert flag["mean"] == pytest.approx(1 - active, abs=1e-9), parent
            continue
        rate = 1 - active + active / (space[parent].high - space[parent].low + 1)
        error = 4 * math.sqrt(rate * (1 - rate) / n_rows) if n_rows else rate / 20
        assert flag["mean"] == pytest.approx(rate, abs=error), parent


@pytest.mark.parametrize("name", HPOB_SPACES)
def test_means_of_drawn_values_are_those_of_the_tables(real, name):
    """On the bot's scales, whatever the scale of the columns: their means tell a line from a logarithm."""
    space = from_hpob(name, real[name])
    columns = space.layout.columns(sobol_points(4096, len(space), 0).astype(np.float64))
    of_two = ("minsplit", "minbucket") if name == "4796" else ()  # whose tables hold powers of two alone
    for column, values in zip(space.columns, columns.T, strict=True):
        if column.kind in ("float", "int") and not space[column.parent].when and column.name not in BY_DATA + of_two:
            ends = real[name]["variables"][column.name]
            mean = (ends["mean"] - ends["min"]) / (ends["max"] - ends["min"])
            assert values.mean() == pytest.approx(mean, abs=0.04), column


def test_read_from_a_folder(tmp_path):
    (tmp_path / "meta-dataset-descriptors.json").write_text(json.dumps(SPACES))
    assert hpob_space(5527, tmp_path) == hpob_space("5527", tmp_path) == from_hpob("5527", SPACES["5527"])
    with pytest.raises(DataError, match=r"must hold meta-dataset-descriptors\.json with search space 5859"):
        hpob_space("5859", tmp_path)
    with pytest.raises(ConfigError, match=r"one of HPO-B's, 4796 \(rpart\), .*, but got 'svm'"):
        hpob_space("svm", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variables_order": ["cost", "nu"]}, "svm has no nu"),
        ({"variables_order": ["cost", "cost"]}, "order"),
        ({"variables_order": ["kernel.ohe._INVALID", "kernel.ohe._linear"]}, "a column for every choice"),
        ({"variables": {}}, "KeyError"),
        ({"variables": {"cost": number("low", 1.0)}, "variables_order": ["cost"]}, "ValueError"),
        ({"variables": {"cost": number(2.0, 1.0)}, "variables_order": ["cost"]}, "low <= high"),
        ({"variables_order": None}, "TypeError"),
    ],
)
def test_other_descriptors_are_refused(change, message):
    with pytest.raises(DataError, match=f"search space 5527 must be HPO-B's, but: .*{message}"):
        from_hpob("5527", SPACES["5527"] | change)


@pytest.mark.thorough
def test_the_examples_of_the_page(tmp_path, monkeypatch):
    """docs/how-to/tuning-spaces.md as it stands, on a folder in HPO-B's layout."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "meta-dataset-descriptors.json").write_text(json.dumps({"5527": SPACES["5527"]}))
    rng = np.random.default_rng(0)
    hpo_b = hpob_space("5527", tmp_path)
    tasks = {name: Task(name, np.array([hpo_b.encode(p) for p in drawn(hpo_b)]), rng.random(64)) for name in "ab"}
    write_dataset(tmp_path, [SearchSpace("5527", train=tasks)])
    names = {"folder": tmp_path}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)
    assert len(names["optimizer"].trials) == 5
