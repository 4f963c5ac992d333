"""Features of tasks as numbers."""

import json
import math

import numpy as np
import pytest

from dre_jax.data.features import Choice, FeatureSpace, Linear, Log, infer_type, plain_features
from dre_jax.errors import ConfigError, DataError, DataWarning
from tests.error_messages import error_table

SPACE = FeatureSpace(
    {"parameters": Log(), "heat": Linear(), "gpu": Choice(["a100", "h100"])},
    {"parameters": (6e7, 1e9), "heat": (90.0, 120.0)},
)


def test_columns_by_hand():
    assert [column.name for column in SPACE.columns] == ["parameters", "heat", "gpu=a100", "gpu=h100"]
    row = SPACE.encode({"gpu": " h100", "heat": "105", "parameters": np.float64(1e8)})
    assert row.dtype == np.float32
    assert row.tolist() == [8.0, 105.0, 0.0, 1.0]
    for unknown in ({}, {"heat": None, "gpu": math.nan, "parameters": ""}):
        assert np.isnan(SPACE.encode(unknown)).all()
    with pytest.warns(DataWarning, match="gpu of the past tasks is one of a100, h100: 'tpu' counts as unknown"):
        assert np.isnan(SPACE.encode({"gpu": "tpu"})[2:]).all()


@pytest.mark.parametrize("features", [{"parameters": 7e9, "heat": -3.5, "gpu": "a100"}, {"heat": 0.0}, {}])
def test_a_row_has_the_features(features):
    assert SPACE.decode(SPACE.encode(features)) == features
    assert FeatureSpace.from_json(json.loads(json.dumps(SPACE.to_json()))) == SPACE


def test_numbers_beyond_the_past_are_named():
    assert SPACE.extrapolations({"parameters": 1e9, "heat": 90, "gpu": "h100"}) == []
    assert SPACE.extrapolations({"parameters": 7e9, "heat": 80.0}) == [
        "parameters=7e9 lies beyond the past tasks, 6e7 to 1e9: extrapolated",
        "heat=80 lies beyond the past tasks, 90 to 120: extrapolated",
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 10.0], Linear()),
        ([1, 10.1], Log()),
        ([0, 1000], Linear()),
        ([-1, 1000], Linear()),
        (["1e3", "2e6"], Log()),
        ([True, False], Choice()),
        (["a", "b"], Choice()),
    ],
)
def test_types_are_inferred(values, kind):
    assert infer_type("x", dict(enumerate(values))) == kind


test_errors = error_table(
    DataError,
    (lambda: SPACE.encode({"tokens": 1}), "features of the task are of parameters, heat, gpu, but got 'tokens'"),
    (lambda: SPACE.encode({"parameters": 0}), "parameters must be positive on a log scale, but got 0"),
    (lambda: SPACE.encode({"parameters": "large"}), "parameters must be a finite number, but got 'large'"),
    (lambda: SPACE.encode({"heat": math.inf}), "heat must be a finite number, but got inf"),
    (lambda: SPACE.encode({"heat": True}), "heat must be a finite number, but got True"),
    (lambda: SPACE.encode([1.0]), "features must map names to values, but got [1.0]"),
    (
        lambda: infer_type("gpu", {"a": 1, "b": "x"}),
        "gpu must be numbers of all tasks or of none, but is 1 of task 'a'",
    ),
    (lambda: plain_features({"x": [1]}), "x must be a finite number, text or a boolean, but got [1]"),
    (lambda: plain_features({"x": math.inf}), "x must be a finite number, text or a boolean, but got inf"),
)
test_configuration_errors = error_table(
    ConfigError,
    (lambda: Choice("ab"), "the choices of a feature must be a list, but got 'ab'"),
    (lambda: FeatureSpace.from_json({"x": {"type": "cubic"}}), "features must be as they were written"),
    (lambda: FeatureSpace.from_json({"x": {"type": "log", "range": [1]}}), "features must be as they were written"),
)
