"""Forbidden combinations, orders of numbers, conditions on numbers, and alternative ones."""

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.search.candidates import sobol_points
from dre_jax.tuning import Bool, Categorical, Float, Forbidden, Int, Interval, Less, Optimizer, Space, Surrogate
from dre_jax.tuning.space.json_format import from_json, to_json
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
    jitted = np.stack(SPACE.layout.active(jnp.asarray(points), jnp), axis=1)
    assert (jitted == np.stack(SPACE.layout.active(points), axis=1)).mean() > 0.999  # bounds are rounded


def test_a_search_obeys_its_rules():
    """The optimum without rules is forbidden: l1, four layers, and numbers in the wrong order."""
    optimizer = Optimizer(SPACE, direction="minimize", seed=0)
    optimizer.optimize(lambda p: (p["penalty"] == "l2") + 4 - p["layers"] + (p["low"] - p["high"] + 1.0) ** 2, 16)
    assert all(is_allowed(trial.params) for trial in optimizer.trials)
    assert (optimizer.best.params["solver"], optimizer.best.params["layers"]) == ("saga", 3)
    for wrong in ({"low": 1.5, "high": 1}, {"solver": None, "penalty": "l1"}):
        with pytest.raises(DataError, match="must satisfy"):
            optimizer.enqueue(wrong)


def test_rules_that_few_configurations_satisfy():
    names = [f"x{i}" for i in range(5)]
    space = Space(dict.fromkeys(names, Float(0.0, 1.0)), rules=map(Less, names, names[1:]))  # one of 120
    optimizer = Optimizer(space, Surrogate(space, "near", NEAREST, None), seed=1)
    optimizer.optimize(lambda trial: sum(trial.params.values()), 7)
    assert all(np.all(np.diff([trial[name] for name in names]) > 0) for trial in optimizer.trials)
    none = Space({"a": Bool(), "b": Float(0, 1)}, rules=[Forbidden({"a": [True, False]})])
    with pytest.raises(ConfigError, match="allow none of"):
        Optimizer(none).ask()


def test_a_file_holds_the_rules():
    assert from_json(to_json(SPACE)) == SPACE
    assert Space(dict(SPACE)) != SPACE


def with_rule(rule):
    return lambda: Space(dict(SPACE), rules=[rule])


def from_file(rule):
    return lambda: from_json({**to_json(Space(dict(SPACE))), "rules": [rule]})


test_refused = error_table(
    ConfigError,
    (with_rule(Less("low", "solver")), "two numbers"),
    (with_rule(Less("low", "other")), "'other' of 'low < other' is none"),
    (with_rule(Forbidden({"penalty": "l3"})), "choices of 'penalty', but got 'l3'"),
    (with_rule(Forbidden({"low": 1.0})), "'low' is a real number"),
    (with_rule("low < high"), "must be Forbidden or Less"),
    *(
        (from_file(rule), "a rule must be")
        for rule in ({"less": ["low"]}, {"forbidden": {"penalty": "l1"}, "less": []}, "less", None)
    ),
)
