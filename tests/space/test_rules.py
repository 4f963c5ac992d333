"""Forbidden combinations, orders of numbers, conditions on numbers, and alternative ones."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.projection import move
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import Categorical, EngineConfig, Float, Forbidden, Int, Interval, Less, Optimizer, Space, Surrogate
from tests.error_messages import error_table
from tests.known_methods import NEAREST

SPACE = Space(
    {
        "solver": Categorical(["lbfgs", "saga", None]),
        "penalty": Categorical(["l1", "l2"]),
        "layers": Int(1, 4),
        "width": Float(0.0, 1.0, when={"layers": [3, 4]}),
        "low": Float(0.0, 2.0),
        "high": Int(0, 3),
        "decay": Float(0.0, 1.0, when=[{"low": Interval(above=0.5, below=1.0)}, {"width": Interval(below=0.3)}]),
        "depth": Int(1, 2, when=[{"decay": Interval(above=0.5)}, {"solver": "saga", "high": Interval(above=1)}]),
    },
    rules=[
        Forbidden({"solver": ["lbfgs", None], "penalty": "l1"}),
        Forbidden({"layers": 4}),
        Less("low", "high"),
        Less("width", "low", or_equal=True),
    ],
)


def is_allowed(p):
    wrong = p["solver"] != "saga" and p["penalty"] == "l1"
    return not wrong and p["layers"] < 4 and p["low"] < p["high"] and p.get("width", 0.0) <= p["low"]


def test_points_are_allowed_as_their_configurations_are():
    points = sobol_points(512, len(SPACE), 0)
    configurations = [SPACE.params(point) for point in points]
    expected = [is_allowed(params) for params in configurations]
    assert 20 < sum(expected) < 200
    assert SPACE.layout.is_allowed(points).tolist() == [SPACE.allows(params) for params in configurations] == expected
    for p in configurations:
        assert ("width" in p) == (p["layers"] >= 3)
        assert ("decay" in p) == (0.5 < p["low"] < 1.0 or p.get("width", 1.0) < 0.3)
        assert ("depth" in p) == (p.get("decay", 0.0) > 0.5 or (p["solver"] == "saga" and p["high"] > 1))
        SPACE.point(p)  # refuses values of inactive hyperparameters
    assert {"decay", "depth"} <= {name for p in configurations for name in p}
    jitted = np.stack(SPACE.layout.active(jnp.asarray(points)), axis=1)
    assert (jitted == np.stack(SPACE.layout.active(points), axis=1)).mean() > 0.999  # bounds are rounded


@pytest.mark.slow
def test_a_search_obeys_its_rules():
    """The optimum without rules is forbidden: l1, four layers, and numbers in the wrong order."""
    optimizer = Optimizer(SPACE, direction="minimize", seed=0, config=EngineConfig(method="gp"))
    optimizer.optimize(lambda p: (p["penalty"] == "l2") + 4 - p["layers"] + (p["low"] - p["high"] + 1.0) ** 2, 16)
    assert all(is_allowed(trial.params) for trial in optimizer.trials)
    assert (optimizer.best.params["solver"], optimizer.best.params["layers"]) == ("saga", 3)
    for wrong in ({"low": 1.5, "high": 1}, {"solver": None, "penalty": "l1"}):
        with pytest.raises(DataError, match="must satisfy"):
            optimizer.enqueue(wrong)


def test_a_long_chain_keeps_uniform_numbers_in_order():
    names = [f"x{i}" for i in range(8)]  # of random points, one in 40,320 is in order
    space = Space(dict.fromkeys(names, Float(0.0, 1.0)), rules=map(Less, names, names[1:]))
    points = move(space.layout, np.random.default_rng(0).random((40_000, 8)), spread=True)
    assert (np.diff(points, axis=1) > 0).all()
    # The means and the variances of order statistics of eight uniform numbers.
    ranks = np.arange(1, 9)
    np.testing.assert_allclose(points.mean(axis=0), ranks / 9, atol=0.005)
    np.testing.assert_allclose(points.var(axis=0), ranks * (9 - ranks) / 810, rtol=0.05)
    optimizer = Optimizer(space, Surrogate(space, "near", NEAREST, None), seed=1)
    optimizer.enqueue({"x3": 0.25})
    optimizer.optimize(lambda trial: sum(trial.params.values()), 5)
    assert all(np.all(np.diff([trial[name] for name in names]) > 0) for trial in optimizer.trials)
    assert optimizer.trials[0]["x3"] == 0.25


@pytest.mark.parametrize("seed", range(2))  # without and with a fixed value
def test_whole_numbers_are_moved_in_order(seed):
    """In a tree of rules, with steps, logarithms and a value that is fixed; by all configurations."""
    parameters = {"a": Int(1, 9), "b": Int(1, 7, step=2), "c": Int(2, 64, log=True), "d": Float(0.0, 9.0)}
    rules = [Less("a", "b"), Less("b", "c", or_equal=True), Less("d", "b")]
    space = Space(parameters, rules=rules)
    random = np.random.default_rng(seed)
    fixed = np.array([np.nan, space.coordinate("b", 3) if seed % 2 else np.nan, np.nan, np.nan])
    points = np.where(np.isnan(fixed), random.random((20_000, 4)), fixed)
    moved = [space.params(point) for point in move(space.layout, points, fixed, spread=True)]
    for p in moved:
        assert p["a"] < p["b"] <= p["c"]
        assert p["d"] <= p["b"]
    pairs = {(a, b) for b in ([3] if seed % 2 else [3, 5, 7]) for a in range(1, b)}
    assert {(p["a"], p["b"]) for p in moved} == pairs


CONDITIONAL = Space(
    {
        "k": Categorical(["b", "a", "c"]),
        "n": Int(1, 9),
        "x": Float(0.0, 1.0, when=[{"k": ["a", "c"]}, {"n": 7}]),
        "depth": Int(1, 5, when={"x": Interval(above=0.3, below=0.6)}),
        "m": Int(1, 5),
    },
    rules=[Less("n", "m"), Forbidden({"k": "a", "m": 5})],
)


@pytest.mark.parametrize(
    "part", [{"x": 0.5}, {"depth": 3}, {"depth": 3, "m": 5}, {"n": 4}, {"x": 0.1, "k": "c"}, {"k": "b", "m": 2}]
)
def test_enqueued_values_are_completed(part):
    for seed in range(8):
        optimizer = Optimizer(CONDITIONAL, seed=seed)
        optimizer.enqueue(part)
        params = optimizer.ask().params
        assert CONDITIONAL.check(params) == params
        assert part.items() <= params.items()


def enqueue(part):
    return lambda: Optimizer(CONDITIONAL).enqueue(part)


test_enqueued_values_that_no_configuration_has = error_table(
    DataError,
    (enqueue({"n": 5}), "be able to have {'n': 5}, but the rules exclude them: n < m, not k in ['a'] with m in [5]"),
    (enqueue({"n": 7}), "the rules exclude them"),
    (enqueue({"k": "b", "x": 0.5}), "the rules exclude them"),  # n = 7 would be needed, and exceeds m
    (enqueue({"x": 0.1, "depth": 3}), "'depth' is active only for x above 0.3 and below 0.6"),
    (enqueue({"z": 0.1}), "hyperparameters are k, n, x, depth, m, but got 'z'"),
)


@pytest.mark.parametrize("written_by_hand", [{"n": 5}, {"x": 0.1, "depth": 3}])
def test_a_file_with_enqueued_values_that_no_configuration_has(written_by_hand, tmp_path):
    path = tmp_path / "study.json"
    optimizer = Optimizer(CONDITIONAL, seed=0)
    optimizer.enqueue({"n": 2})
    optimizer.save(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"enqueued": [written_by_hand, *content["enqueued"]]}))
    with pytest.warns(DataWarning, match="study.json: enqueued values are dropped: a configuration must be able to"):
        again = Optimizer.load(path)
    assert again.ask()["n"] == 2


def test_defaults_obey_the_rules():
    def space(**b):
        return Space({"a": Float(0.0, 1.0, default=0.9), "b": Float(0.0, 1.0, **b)}, rules=[Less("a", "b")])

    with pytest.raises(ConfigError, match=r"default values must satisfy 'a < b', but are {'a': 0.9, 'b': 0.1}"):
        space(default=0.1)
    for seed in range(4):
        first = Optimizer(space(), seed=seed).ask()
        assert first["a"] == 0.9 < first["b"]


def test_a_file_holds_the_rules():
    assert from_json(to_json(SPACE)) == SPACE
    assert Space(dict(SPACE)) != SPACE


def with_rule(rule):
    return lambda: Space(dict(SPACE), rules=[rule])


def from_file(rule):
    return lambda: from_json({**to_json(Space(dict(SPACE))), "rules": [rule]})


test_refused = error_table(
    ConfigError,
    (with_rule(Less("low", "solver")), "must be of numbers"),
    (with_rule(Forbidden({"penalty": ["l1", "l2"]})), "allow none of 4096"),
    (lambda: Space(dict(SPACE), rules=[Less("low", "high"), Less("high", "low")]), "allow none of 4096"),
    (with_rule(Less("low", "other")), "'other' of 'low < other' is none"),
    (with_rule(Forbidden({"penalty": "l3"})), "of the space, but penalty must be one of ['l1', 'l2'], but got 'l3'"),
    (with_rule(Forbidden({"layers": [2, 9]})), "of the space, but layers must be a whole number in [1, 4], but got 9"),
    (with_rule(Forbidden({"low": 1.0})), "'low' is a real number"),
    (with_rule("low < high"), "must be Forbidden, Less, Sum, Count, Formula or Allowed"),
    (
        lambda: Space(dict(SPACE), rules=Less("low", "high")),
        "the rules of a space must be a list of them, but got Less(",
    ),
    *(
        (from_file(rule), "a rule must be")
        for rule in ({"less": ["low"]}, {"forbidden": {"penalty": "l1"}, "less": []}, "less", None)
    ),
)
