"""Sums of hyperparameters: what is drawn, moved and suggested satisfies them, and everything that does is reached."""

import json

import jax
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.projection import allowed_points, move
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import Bool, EngineConfig, Float, Int, Less, Optimizer, Space, Sum, to_configspace
from tests.error_messages import error_table

WHOLE = Space(
    {"a": Int(0, 10), "b": Int(0, 12, step=3), "c": Int(1, 9, step=2), "d": Float(0.0, 1.0)},
    rules=[Sum({"a": 1, "b": 1, "c": 2}, equals=20), Less("a", "b", or_equal=True), Sum(["a", "d"], at_most=8.5)],
)
MIXTURE = Space(
    {"n": Int(2, 3), "a": Float(0.0, 1.0), "b": Float(0.1, 1.0), "c": Float(0.0, 1.0, when={"n": 3})},
    rules=[Sum(["a", "b", "c"], equals=1), Less("a", "b")],
)


def shares(n, high=1.0, **bounds):
    names = [f"w{i}" for i in range(n)]
    return Space(dict.fromkeys(names, Float(0.0, high)), rules=[Sum(names, **(bounds or {"equals": 1}))])


def drawn(space, n):
    return allowed_points(space.layout, lambda n: sobol_points(n, len(space), 0), n)


def test_whole_numbers_have_all_combinations():
    """Against all of them."""
    triples = [(a, b, c) for a in range(11) for b in range(0, 13, 3) for c in range(1, 10, 2)]
    expected = {(a, b, c) for a, b, c in triples if a + b + 2 * c == 20 and a <= b and a <= 8}
    moved = move(WHOLE.layout, np.random.default_rng(0).random((5000, 4)), spread=True)
    for points in (drawn(WHOLE, 256), moved[WHOLE.layout.is_allowed(moved)]):
        configurations = [WHOLE.check(WHOLE.params(point)) for point in points]
        assert {(p["a"], p["b"], p["c"]) for p in configurations} == expected


@pytest.mark.parametrize(("high", "bounds"), [(1.0, {}), (0.4, {}), (1.0, {"at_most": 0.5}), (0.5, {"at_least": 1.7})])
def test_points_are_even_on_what_is_left(high, bounds):
    """Means and variances against those of uniform draws that are rejected elsewhere."""
    points = drawn(shares(4, high, **bounds), 2048) * high
    rng = np.random.default_rng(0)
    every = rng.dirichlet(np.ones(4), 200_000) if not bounds else rng.random((2_000_000, 4)) * high
    total = every.sum(axis=1) if bounds else np.ones(len(every))
    kept = every[
        (every <= high).all(axis=1) & (bounds.get("at_least", 0) <= total) & (total <= bounds.get("at_most", 9))
    ]
    np.testing.assert_allclose(points.mean(axis=0), kept.mean(axis=0), rtol=0.03)
    np.testing.assert_allclose(points.var(axis=0), kept.var(axis=0), rtol=0.1)


@pytest.mark.parametrize("n", [8, 20])
def test_many_shares_are_even_too(n):
    """Moved there: of random points of a cube hardly one is left. The moments are Dirichlet's."""
    points = move(shares(n).layout, np.random.default_rng(0).random((40_000, n)), spread=True)
    np.testing.assert_allclose(points.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(points.mean(axis=0), 1 / n, atol=0.003)
    np.testing.assert_allclose(points.var(axis=0), (n - 1) / (n**2 * (n + 1)), rtol=0.06)


@pytest.mark.parametrize("space", [WHOLE, MIXTURE])
def test_a_compiled_program_moves_points_alike(space):
    """Points that satisfy the rules stay, and fixed coordinates do."""
    good = drawn(space, 64).astype(np.float32)
    fixed = np.full(4, np.nan, np.float32)
    fixed[1] = good[0, 1]
    compiled = jax.jit(lambda points, fixed: move(space.layout, points, fixed))
    points = np.where(np.isnan(fixed), np.random.default_rng(0).random((64, 4)), fixed).astype(np.float32)
    np.testing.assert_allclose(compiled(points, fixed), move(space.layout, points, fixed), atol=1e-5)
    assert (np.asarray(compiled(points, fixed))[:, 1] == fixed[1]).all()
    free = np.full(4, np.nan, np.float32)
    np.testing.assert_allclose(space.layout.middles(compiled(good, free)), space.layout.middles(good), atol=1e-5)


@pytest.mark.slow
def test_a_search_stays_on_its_rules_and_finds_the_best():
    """The optimum without rules is far outside; with them it is on a boundary, a = b = 0.4 with c = 0.2."""
    optimizer = Optimizer(MIXTURE, seed=0, config=EngineConfig(method="gp"))
    optimizer.enqueue({"a": 0.2, "b": 0.5})
    optimizer.optimize(lambda p: (p["a"] - 0.9) ** 2 + (p.params.get("c", 0.5) - 0.2) ** 2, 20)
    assert (optimizer.trials[0]["a"], optimizer.trials[0]["b"]) == (0.2, 0.5)
    for trial in optimizer.trials:
        assert sum(value for name, value in trial.params.items() if name != "n") == pytest.approx(1.0, abs=1e-12)
        assert trial["a"] < trial["b"]
    expected = min((a - 0.9) ** 2 + (1 - 2 * a - 0.2) ** 2 for a in np.linspace(0.0, 0.5, 5001))
    assert optimizer.best["n"] == 3
    assert optimizer.best.value < expected + 0.01


def test_rounding_is_allowed_and_files_have_the_rules():
    space = Space({"a": Float(0, 1), "b": Float(0, 1), "c": Float(0, 1)}, rules=[Sum(["a", "b", "c"], equals=1)])
    for value in (1 / 3, np.float32(1) / 3, 0.3333333):
        space.check(dict.fromkeys("abc", float(value)))
    assert Space(dict(space), rules=[Sum(["a", "b"], at_most=0.3)]).check({"a": 0.1, "b": 0.2, "c": 0.0})
    for one in (space, WHOLE, MIXTURE, shares(2, at_least=0.5, at_most=1)):
        assert from_json(json.loads(json.dumps(to_json(one)))) == one


def of(sum_of, **bounds):
    return lambda: Space({"a": Int(0, 8, step=2), "b": Int(0, 8, step=2), "k": Bool()}, rules=[Sum(sum_of, **bounds)])


test_refused = error_table(
    ConfigError,
    (of(["a", "b"], equals=5), "the rules of the space must allow some configurations, but allow none of 4096"),
    (of(["a", "b"], equals=17), "'a + b == 17' must be possible, but the sum is from 0.0 to 16.0"),
    (of({"a": 1, "b": -2}, at_least=9), "'9 <= a + -2 b' must be possible, but the sum is from -16.0 to 8.0"),
    (of(["a", "k"], equals=1), "an order or a sum must be of numbers, but got 'a + k == 1'"),
    (of(["a", "z"], equals=1), "but 'z' of 'a + z == 1' is none"),
    *(
        (of(names, at_most=1), "a sum must be of different names")
        for names in (["a", "a"], "ab", {"a": 0}, [], 3, (1, 2), ["a", 1])
    ),
    *(
        (of(["a", "b"], **bounds), "at_least, at_most or both, in order, or equals")
        for bounds in (
            {},
            {"equals": 1, "at_most": 2},
            {"at_most": np.nan},
            {"at_least": 2, "at_most": 1},
            {"equals": "1"},
        )
    ),
    (lambda: to_configspace(shares(2)), "ConfigSpace has only Forbidden and Less among the rules"),
)
test_configurations_that_violate_a_sum = error_table(
    DataError,
    (lambda: Optimizer(shares(2)).enqueue({"w0": 0.7, "w1": 0.7}), "must satisfy 'w0 + w1 == 1'"),
    (
        lambda: Optimizer(shares(3, 0.4)).enqueue({"w0": 0.1, "w1": 0.1}),
        "but the rules exclude them: w0 + w1 + w2 == 1",
    ),
    (lambda: Optimizer(shares(2)).add({"w0": 0.5, "w1": 0.50001}, 1.0), "must satisfy 'w0 + w1 == 1'"),
)
