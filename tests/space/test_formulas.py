"""Formulas as rules, as text and as functions: what is suggested satisfies them, and text can only compute."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.functions import optimize_functions
from dre_jax.space.expressions import evaluate, names_in, parse
from dre_jax.space.json_format import from_json, to_json
from dre_jax.tuning import (
    Bool,
    Categorical,
    EngineConfig,
    Float,
    Formula,
    Int,
    Less,
    Optimizer,
    Optimizers,
    Space,
    Sum,
    to_configspace,
)
from tests.error_messages import error_table


def is_inside(x, y, radius=1.0):
    return jnp.sqrt(x**2 + y**2) <= radius


PARAMETERS = {
    "x": Float(-2.0, 2.0),
    "y": Float(-2.0, 2.0),
    "batch": Categorical([16, 32, 64]),
    "width": Int(1, 128),
    "precision": Categorical(["bf16", "f32", None]),
    "checkpointing": Bool(),
    "every": Int(1, 8, when={"checkpointing": True}),
}
MEMORY = "batch * width <= 1024 or precision == 'bf16' and not checkpointing"
SPACE = Space(
    PARAMETERS,
    rules=[Formula(is_inside), Formula(MEMORY), Formula("every < log2(width)"), Less("x", "y", or_equal=True)],
)
TEXT = Space(PARAMETERS, rules=[Formula("x**2 + y**2 <= 1"), Formula(MEMORY)])


def satisfies(p):
    fits = p["batch"] * p["width"] <= 1024 or (p["precision"] == "bf16" and not p["checkpointing"])
    is_seldom = "every" not in p or p["every"] < np.log2(p["width"])
    return np.hypot(p["x"], p["y"]) <= 1.0 and fits and is_seldom and p["x"] <= p["y"]


@pytest.mark.slow
def test_a_search_obeys_its_formulas():
    """The optimum without rules is outside of the circle."""
    optimizer = Optimizer(SPACE, seed=0, config=EngineConfig(method="gp"))
    optimizer.optimize(lambda p: (p["x"] - 1.0) ** 2 + (p["y"] - 1.5) ** 2 - p["batch"] * p["width"] / 1e4, 14)
    assert all(satisfies(trial.params) for trial in optimizer.trials)
    assert {"every" in trial.params for trial in optimizer.trials} == {True, False}
    first = optimizer.best.params
    optimizer.enqueue({"x": 0.1, "y": 0.3, "precision": None})
    assert satisfies(optimizer.ask().params)
    with pytest.raises(DataError, match=r"must satisfy 'is_inside\(x, y\)', but got"):
        optimizer.add(first | {"x": 0.9, "y": 0.9}, 1.0)


@pytest.mark.slow
def test_a_search_finds_a_boundary():
    """The least sum in a circle is at the diagonal."""
    circle = Space({"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)}, rules=[Formula("x**2 + y**2 <= 0.5")])
    optimizer = Optimizer(circle, seed=0)
    optimizer.optimize(lambda p: p["x"] + p["y"], 20)
    assert -1.0 <= optimizer.best.value < -0.999


@pytest.mark.slow
def test_many_searches_obey_formulas():
    """In compiled programs of float32, where the least sum is on the boundary."""
    searches = optimize_functions(lambda _, p: p["x"] + p["y"], None, SPACE, n_trials=8, seeds=2, method="random")
    assert all(satisfies(SPACE.params(point)) for point in searches.points.reshape(-1, len(SPACE)))
    optimizers = Optimizers(SPACE, 2, method="random")
    for _ in range(3):
        trials = optimizers.ask()
        assert all(satisfies(trial.params) for trial in trials)
        optimizers.tell(trials, [0.0, 1.0])


def test_rounding_excludes_no_whole_number():
    """All of 128 widths up to the bound, and none beyond it, in a program too."""
    space = Space({"width": Int(1, 128), "depth": Int(1, 4)}, rules=[Formula("width * depth <= 256")])
    points = space.layout.all_points()
    expected = {(width, depth) for width in range(1, 129) for depth in range(1, 5) if width * depth <= 256}
    assert {tuple(space.params(point).values()) for point in points} == expected
    grid = Space(dict(space)).layout.all_points()
    is_allowed = jax.jit(space.layout.is_allowed)(jnp.asarray(grid, jnp.float32))
    assert {tuple(space.params(point).values()) for point in grid[np.asarray(is_allowed)]} == expected


def test_rounding_breaks_no_formula():
    """Of decimal steps, whose sums are a rounding error off: 0.3 + 0.6 < 0.9. Float32 finds the same."""
    tenths = Float(0.0, 2.0, step=0.1)
    space = Space({"a": tenths, "b": tenths}, rules=[Formula("a + b >= 0.9")])
    grid = Space(dict(space)).layout.all_points()
    allowed = [space.params(point) for point in grid if space.layout.is_allowed(point)]
    assert 380 < len(allowed) < len(grid)
    assert all(p["a"] + p["b"] >= 0.9 for p in allowed)
    in_program = jax.jit(space.layout.is_allowed)(jnp.asarray(grid, jnp.float32))
    assert all(space.allows(space.params(point)) for point in grid[np.asarray(in_program)])


def test_files_have_texts_and_refuse_functions(tmp_path):
    assert from_json(json.loads(json.dumps(to_json(TEXT)))) == TEXT
    optimizer = Optimizer(TEXT, seed=0)
    optimizer.tell(optimizer.ask(), 1.0)
    optimizer.save(tmp_path / "study.json")
    assert Optimizer.load(tmp_path / "study.json").space == TEXT
    with pytest.raises(ConfigError, match=r"must be text, as Formula.*but 'is_inside\(x, y\)' is a function"):
        Optimizer(SPACE).save(tmp_path / "other.json")


VALUES = {"a": np.array([0.3, -2.0, 7.0]), "b": np.array([3.0, 2.0, -0.5])}


@pytest.mark.parametrize(
    "text",
    [
        "a + b * 2 - -a / b // 1 % 3 < b ** 2",
        "1 < a <= b or not (a == 3 or b != 2) and a > -1e3",
        "max(a, b, 1) >= min(abs(a), 2.5) + floor(b) - ceil(a)",
        "exp(a) > sqrt(abs(b)) + log(abs(a)) * log2(4) - log10(100)",
    ],
)
def test_formulas_are_those_of_python(text):
    names = ["abs", "ceil", "exp", "floor", "log", "log2", "log10", "sqrt"]
    for xp in (np, jnp):
        result = evaluate(parse(text), {name: xp.asarray(value) for name, value in VALUES.items()})
        for k, mask in enumerate(result):
            values = {name: value[k] for name, value in VALUES.items()}
            functions = {name: getattr(np, name) for name in names} | {"max": max, "min": min, "__builtins__": {}}
            assert bool(mask) == bool(eval(text, functions, values)), (text, values)
    assert names_in(parse(text)) == ("a", "b")


def of(formula):
    return lambda: Space(PARAMETERS, rules=[Formula(formula)])


test_refused = error_table(
    ConfigError,
    *(
        (of(text), "a formula must consist of names, numbers")
        for text in (
            "__import__('os').remove('x') < 1",
            "x.real < 1",
            "x[0] < 1",
            "(lambda: x)() < 1",
            "sin(x) < 1",
            "sqrt(x, y) < 1",
            "max(x) < 1",
            "x if y else x < 1",
            "x ^ 2 < 1",
            "x in [1, 2]",
            "f'{x}' == 'a'",
            "x <",
            "x < 1" + " + 0" * 300,
            "(" * 400 + "x" + ")" * 400,
        )
    ),
    (of("x * y"), "'x * y' must be true or false for each of 16 configurations, as x * y <= 8 is, but is float64[16]"),
    (of("9**9**9**9 < x"), "must be computable, but OverflowError"),
    (of("precision == 'f16'"), "must be computable, but ValueError: 'f16' is none of ['bf16', 'f32', None]"),
    (of("precision < 3"), "must be computable, but TypeError"),
    (of("x < z"), "a rule must be about hyperparameters of the space, but 'z' of 'x < z' is none"),
    (of("1 < 2"), "a formula must be about hyperparameters, but '1 < 2' names none"),
    (of("x > 2.5"), "the rules of the space must allow some configurations, but allow none of 4096"),
    (of(3), "a formula must be text or a function, but got 3"),
    (of(lambda x: x.sum() < 1), "must be true or false for each of 16 configurations"),
    (of(lambda x: x < x.max()), "must be about one configuration, but its results depend on the others"),
    (of(lambda x: x if x < 1 else True), "must be computable, but ValueError"),
    (of(lambda x: np.asarray(x) < 1), "must be computable, but TracerArrayConversionError"),
    (of(lambda *values: True), "a formula must be about hyperparameters, but '<lambda>()' names none"),
    (lambda: to_configspace(TEXT), "ConfigSpace has only Forbidden and Less among the rules"),
    (
        lambda: Space(PARAMETERS, rules=[Formula("x + y < -3.9"), Sum(["x", "y"], at_least=3.0)]),
        "the rules of the space must allow some configurations, but allow none of 4096",
    ),
)
