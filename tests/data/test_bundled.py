"""What PROVENANCE.md promises of the shipped files, read with the standard library and not with our reader."""

import gzip
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre_jax.data import bundled

FOLDER = bundled.path()
SPLITS = ("train", "validation", "test")
SPACES = ("svm", "random-forest", "gradient-boosting", "nearest-neighbours")
LEAST_TASKS = {"train": 14, "validation": 4, "test": 6}
Json = dict[str, Any]


@cache
def read(name: str) -> Any:
    content = (FOLDER / name).read_bytes()
    return json.loads(gzip.decompress(content) if name.endswith(".gz") else content)


def tables(space: str) -> list[tuple[str, Json]]:
    return [item for split in SPLITS for item in read(f"meta-{split}-dataset.json.gz")[space].items()]


def descriptor(space: str) -> Any:
    return read("meta-dataset-descriptors.json")[space]


def responses(table: Json) -> list[float]:
    return [value for (value,) in table["y"]]


def decode(space: str, row: list[float]) -> Json:
    """An encoded row as named values, by the rule in PROVENANCE.md."""
    known, columns = descriptor(space), dict(zip(descriptor(space)["variables_order"], row, strict=True))
    values: Json = {}
    for name, variable in known["variables"].items():
        if variable["kind"] == "categorical":
            (values[name],) = [c for c in variable["categories"] if columns[f"{name}.ohe._{c}"] == 1]
        elif variable["kind"] != "missing-flag" and columns.get(f"{name}.na", 0) == 0:
            value = variable["min"] + columns[name] * (variable["max"] - variable["min"])
            value = math.exp(value) - 1e-4 if name in known["variables_to_apply_log"] else value
            values[name] = round(value) if variable["kind"] == "integer" else value
    return values


def test_the_files_are_small_and_name_no_time_and_no_machine() -> None:
    assert bundled.spaces() == list(SPACES)
    files = [path for path in FOLDER.iterdir() if path.is_file() and path.suffix != ".py"]
    assert sum(path.stat().st_size for path in files) < 1_000_000
    for path in files:
        if path.suffix == ".gz":
            assert path.read_bytes()[4:8] == bytes(4)
        if path.name != "PROVENANCE.md":
            assert tuple(read(path.name)) == SPACES
        if path.suffix != ".gz":
            places = ("/home/", "/tmp/", f"{Path.home()}/", f"{Path.cwd()}/")
            assert not any(place in path.read_text() for place in places)


@pytest.mark.parametrize("space", SPACES)
def test_there_are_enough_tasks_and_none_is_in_two_splits(space: str) -> None:
    names = [name for name, _ in tables(space)]
    for split, least in LEAST_TASKS.items():
        assert len(read(f"meta-{split}-dataset.json.gz")[space]) >= least
    assert len(set(names)) == len(names)
    assert len({tuple(sorted(responses(table))) for _, table in tables(space)}) == len(names)


@pytest.mark.parametrize("space", SPACES)
def test_responses_are_fine_grained_and_rows_in_no_order(space: str) -> None:
    for name, table in tables(space):
        y = responses(table)
        assert len(y) == len(table["X"]) >= 200, name
        assert all(math.isfinite(value) and value <= 1 for value in y), name
        assert y.count(max(y)) <= 0.05 * len(y), name
        assert len(set(y)) >= 0.5 * len(y), name
        # 256 independent rows correlate with their number by 1 / 16 or so
        assert abs(np.corrcoef(y, np.arange(len(y)))[0, 1]) < 0.3, name


@pytest.mark.parametrize("space", SPACES)
def test_rows_are_what_the_descriptor_says(space: str) -> None:
    known = descriptor(space)
    order, variables = known["variables_order"], known["variables"]
    groups = {
        name: {level: order.index(f"{name}.ohe._{level}") for level in variable["categories"]}
        for name, variable in variables.items()
        if variable["kind"] == "categorical"
    }
    conditional = {name: variable["condition"] for name, variable in variables.items() if "condition" in variable}
    assert conditional
    columns = [i for group in groups.values() for i in group.values()]
    columns += [order.index(name) for name in variables if name not in groups]
    assert sorted(columns) == list(range(len(order)))
    for name, table in tables(space):
        rows = np.asarray(table["X"])
        assert rows.shape[1] == len(order), name
        assert 0 <= rows.min() <= rows.max() <= 1, name
        assert len(np.unique(rows, axis=0)) == len(rows), name
        for group in groups.values():
            levels = rows[:, list(group.values())]
            assert set(np.unique(levels)) == {0, 1}, name
            assert (levels.sum(axis=1) == 1).all(), name
        for variable, condition in conditional.items():
            levels = rows[:, [groups[condition["variable"]][level] for level in condition["levels"]]]
            active = levels.sum(axis=1) == 1
            assert (rows[:, order.index(f"{variable}.na")] == ~active).all(), name
            assert (rows[~active, order.index(variable)] == 0).all(), name


@pytest.mark.parametrize("space", SPACES)
def test_every_column_varies_and_decodes_into_its_bounds(space: str) -> None:
    (_, table), *_ = tables(space)
    assert (np.ptp(np.asarray(table["X"]), axis=0) > 0).all()
    for row in table["X"]:
        for name, value in decode(space, row).items():
            variable = descriptor(space)["variables"][name]
            if variable["kind"] != "categorical":
                slack = 1e-9 * (variable["max_before_tf"] - variable["min_before_tf"])
                assert variable["min_before_tf"] - slack <= value <= variable["max_before_tf"] + slack, name


@pytest.mark.parametrize("space", SPACES)
def test_there_are_five_designs_of_five_rows(space: str) -> None:
    designs = read("bo-initializations.json.gz")[space]
    wanted = {**read("meta-validation-dataset.json.gz")[space], **read("meta-test-dataset.json.gz")[space]}
    assert set(designs) == set(wanted)
    for name, table in wanted.items():
        assert list(designs[name]) == [f"test{i}" for i in range(5)]
        for rows in designs[name].values():
            assert len(set(rows)) == len(rows) == 5
            assert all(type(row) is int and 0 <= row < len(table["y"]) for row in rows)


@pytest.mark.parametrize("space", SPACES)
def test_the_loader_gives_what_the_files_hold(space: str) -> None:
    loaded = bundled.load(space)
    for split in SPLITS:
        stored = read(f"meta-{split}-dataset.json.gz")[space]
        assert list(loaded.split(split)) == list(stored)
        for name, task in loaded.split(split).items():
            np.testing.assert_array_equal(task.X, np.asarray(stored[name]["X"], np.float32))
            np.testing.assert_array_equal(task.y, responses(stored[name]))
    np.testing.assert_equal(loaded.designs, read("bo-initializations.json.gz")[space])


def test_stored_configurations_give_their_responses_again() -> None:
    """Sepal width of iris from the other three columns, by nearest neighbours: written anew, by PROVENANCE.md."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed; it comes with the extra `test`")
    from sklearn.datasets import load_iris
    from sklearn.model_selection import KFold, cross_val_predict

    table = read("meta-validation-dataset.json.gz")["nearest-neighbours"]["iris-sepal-width"]
    y = responses(table)
    features, target = load_iris().data[:, [0, 2, 3]], load_iris().data[:, 1]
    folds = KFold(3, shuffle=True, random_state=0)
    mean = np.empty_like(target)
    for fit, held in folds.split(features):
        mean[held] = target[fit].mean()
    for row in (0, 1, y.index(max(y))):
        model = nearest_neighbours(decode("nearest-neighbours", table["X"][row]), features.shape[1])
        predicted = cross_val_predict(model, features, target, cv=folds)
        skill = 1 - ((target - predicted) ** 2).sum() / ((target - mean) ** 2).sum()
        assert (skill if skill >= 0 else skill / (1 - 4 * skill)) == pytest.approx(y[row], abs=1e-3)


def nearest_neighbours(values: Json, columns: int) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler

    scalers = {
        "minmax": MinMaxScaler(),
        "rank": QuantileTransformer(n_quantiles=30, output_distribution="normal"),
        "standard": StandardScaler(),
    }
    steps = [scalers[values.pop("scaler")]]
    if values.pop("projection") == "pca":
        steps.append(PCA(max(1, round(values.pop("n_components") * columns)), svd_solver="full"))
    return make_pipeline(*steps, KNeighborsRegressor(**values))
