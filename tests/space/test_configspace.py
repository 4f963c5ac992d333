"""Spaces from and to ConfigSpace, against what ConfigSpace itself draws and accepts."""

import sys

import numpy as np
import pytest

from dre_jax.errors import ConfigError, MissingExtraError
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import (
    Bool,
    Categorical,
    Float,
    Forbidden,
    Int,
    Interval,
    Less,
    Space,
    from_configspace,
    to_configspace,
)
from tests.error_messages import error_table

cs = pytest.importorskip("ConfigSpace")

SPACE = Space(
    {
        "degree": Int(2, 5, when={"kernel": ["poly"]}, default=3),
        "kernel": Categorical(["rbf", "poly", None, 3], default=None),
        "C": Float(1e-3, 1e3, log=True, default=10.0),
        "layers": Int(1, 1000, log=True, default=7),
        "size": Categorical(["s", "m", "l"], ordered=True, default="m"),
        "scale": Bool(when={"kernel": ["poly", None], "size": ["s", "m"]}, default=True),
        "depth": Float(-1.0, 3.0, when={"scale": [True]}, default=0.5),
        "one": Categorical(["only"]),
        "heads": Int(1, 8, when={"layers": [3, 7, 11]}, default=2),
        "gamma": Float(0.0, 1.0, when={"C": Interval(above=2.0, below=200.0)}, default=0.5),
        "eta": Bool(when=[{"C": Interval(below=1.0)}, {"size": "l", "gamma": Interval(above=0.2)}], default=True),
    },
    rules=[
        Forbidden({"kernel": [3, "rbf"], "size": "l"}),
        Less("degree", "layers"),
        Less("heads", "degree", or_equal=True),
    ],
)


def rich():
    """A space of everything that carries over."""
    source = cs.ConfigurationSpace(seed=1)
    source.add(
        [
            cs.UniformFloatHyperparameter("lr", 1e-5, 1.0, log=True, default_value=0.01),
            cs.NormalFloatHyperparameter("momentum", mu=0.9, sigma=0.1, lower=0.5, upper=1.0),
            cs.BetaFloatHyperparameter("dropout", alpha=2, beta=5, lower=0.0, upper=0.9),
            cs.UniformIntegerHyperparameter("batch", 8, 512, log=True),
            cs.NormalIntegerHyperparameter("layers", mu=3, sigma=1, lower=1, upper=9),
            cs.CategoricalHyperparameter("optimiser", ["sgd", "adam", "none"], weights=[1, 5, 1]),
            cs.OrdinalHyperparameter("size", ["s", "m", "l"]),
            cs.Constant("version", np.int64(3)),
        ]
    )
    source.add(cs.EqualsCondition(source["momentum"], source["optimiser"], "sgd"))
    source.add(cs.GreaterThanCondition(source["dropout"], source["size"], "s"))
    source.add(
        cs.AndConjunction(
            cs.NotEqualsCondition(source["lr"], source["optimiser"], "none"),
            cs.AndConjunction(
                cs.InCondition(source["lr"], source["size"], ["s", "m"]),
                cs.InCondition(source["lr"], source["version"], [3]),
            ),
        )
    )
    return source


def test_everything_that_carries_over():
    source = rich()
    lr = {"optimiser": ["sgd", "adam"], "size": ["s", "m"], "version": [3]}
    assert dict(from_configspace(source)) == {
        "lr": Float(1e-5, 1.0, log=True, when=lr, default=0.01),
        "momentum": Float(0.5, 1.0, when={"optimiser": "sgd"}, default=0.9),
        "dropout": Float(0.0, 0.9, when={"size": ["m", "l"]}, default=source["dropout"].default_value),
        "batch": Int(8, 512, log=True, default=64),
        "layers": Int(1, 9, default=3),
        "optimiser": Categorical(["sgd", "adam", "none"], default="adam"),  # the one of the largest weight
        "size": Categorical(["s", "m", "l"], ordered=True, default="s"),
        "version": Categorical([3]),
    }


def test_there_and_back():
    there = to_configspace(SPACE, name="svm", seed=0)
    assert there.name == "svm"
    assert from_configspace(there).is_reordered(SPACE)
    # What each draws, the other takes for its own.
    back = from_configspace(there)
    for drawn in there.sample_configuration(50):
        assert back.check(dict(drawn)) == SPACE.check(dict(drawn))
    for point in sobol_points(64, len(SPACE), 0):
        params = SPACE.params(point)
        try:
            cs.Configuration(there, values=params).check_valid_configuration()
        except cs.ForbiddenValueError:
            assert not SPACE.allows(params)
        else:
            assert SPACE.allows(params)


def test_alternatives_orders_and_constants():
    source = beside(lambda s: cs.OrConjunction(*(cs.EqualsCondition(s["c"], s["n"], value) for value in (2, 5))))
    source.add(cs.UniformIntegerHyperparameter("m", 1, 9, default_value=3))
    source.add(
        cs.ForbiddenLessThanRelation(source["m"], source["n"]),
        cs.ForbiddenLessThanEqualsRelation(source["n"], source["c"]),
    )
    space = from_configspace(source)
    assert space["c"].when == (("n", (2, 5)),)
    assert space.rules == (Less("n", "m", or_equal=True), Less("c", "n"))
    source = beside(
        lambda s: cs.OrConjunction(cs.EqualsCondition(s["c"], s["a"], "x"), cs.LessThanCondition(s["c"], s["n"], 3))
    )
    assert from_configspace(source)["c"].alternatives == ((("a", ("x",)),), (("n", (1, 2)),))
    there = to_configspace(Space({"x": Float(2, 2), "n": Int(3, 3)}))
    assert dict(from_configspace(there)) == {"x": Categorical([2.0]), "n": Categorical([3])}


def beside(add):
    """A space of two categoricals and two numbers, and what is added to it."""
    source = cs.ConfigurationSpace({"a": ["x", "y"], "b": ["x", "y"], "n": (1, 5), "c": (0.0, 1.0)})
    source.add(add(source))
    return source


def reads(add):
    return lambda: from_configspace(beside(add))


def writes(**parameters):
    return lambda: to_configspace(Space(parameters))


test_spaces_that_do_not_translate = error_table(
    ConfigError,
    (lambda: from_configspace({"a": 1}), "a space must be a ConfigurationSpace, but got {'a': 1}"),
    (
        reads(lambda s: cs.ForbiddenGreaterThanClause(s["n"], 4)),
        "a space can forbid combinations of values and an order of two numbers, but got Forbidden: n > 4",
    ),
    (reads(lambda s: cs.EqualsCondition(s["n"], s["c"], 0.5)), "an interval, but this does not: n | c == 0.5"),
    (
        reads(lambda s: cs.AndConjunction(*(cs.EqualsCondition(s["c"], s["a"], value) for value in "xy"))),
        "conditions must be able to hold together, but got [{'a': ('x',)}] and [{'a': ('y',)}]",
    ),
    (reads(lambda s: cs.CategoricalHyperparameter("d", [("x", 1), "y"])), "d: a choice must be text, a finite number"),
    (writes(x=Float(0, 1, step=0.25)), "ConfigSpace has no steps, but x has one of 0.25"),
    (writes(x=Int(0, 10, step=5)), "ConfigSpace has no steps, but x has one of 5"),
    (writes(x=Categorical([1, True])), "x must be one that ConfigSpace takes, but: Choices"),
)


def test_without_configspace(monkeypatch):
    monkeypatch.setitem(sys.modules, "ConfigSpace", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dre_jax\[configspace\]'"):
        to_configspace(SPACE)
