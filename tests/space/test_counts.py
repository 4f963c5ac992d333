"""Counts of hyperparameters in use: what is drawn, moved and suggested has the right number, in every combination."""

import itertools
import json
from collections import Counter

import jax
import numpy as np
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.projection import allowed_points, move
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import (
    Bool,
    Categorical,
    Count,
    EngineConfig,
    Float,
    Int,
    Less,
    Optimizer,
    Space,
    Sum,
    to_configspace,
)
from tests.error_messages import error_table

NAMES = [f"x{i}" for i in range(6)]
RECIPE = Space(dict.fromkeys(NAMES, Float(0.0, 1.0)), rules=[Sum(NAMES, equals=1), Count(NAMES, at_most=3)])
PIPELINE = Space(
    {
        "scale": Bool(),
        "pca": Bool(),
        "flip": Categorical(["no", "left", "right"]),
        "noise": Categorical([None, "low", "high"], ordered=True),
        "width": Float(-1.0, 1.0, when={"pca": True}),
        "knots": Int(0, 9),
    },
    rules=[Count({"scale": False, "pca": False, "flip": "no", "noise": None, "width": 0.0, "knots": 0}, equals=2)],
)


def drawn(space, n):
    return allowed_points(space.layout, lambda n: sobol_points(n, len(space), 0), n)


def in_use(params):
    return tuple(sorted(name for name, value in params.items() if value not in (False, 0, None, "no")))


def test_all_combinations_are_drawn():
    """Of choices, numbers and a conditional one."""
    configurations = [PIPELINE.check(PIPELINE.params(point)) for point in drawn(PIPELINE, 2048)]
    pairs = set(itertools.combinations(sorted(PIPELINE), 2))
    # `width` is active with `pca` only.
    assert {in_use(p) for p in configurations} == {p for p in pairs if "width" not in p or "pca" in p}


@pytest.mark.parametrize(
    ("bounds", "sizes"), [({"equals": 2}, {2}), ({"at_most": 2}, {0, 1, 2}), ({"at_least": 3}, {3, 4})]
)
def test_numbers_in_use_are_even(bounds, sizes):
    """Each subset of a size is as frequent as the others, and its numbers are uniform."""
    names = NAMES[:4]
    space = Space(dict.fromkeys(names, Float(0.0, 1.0)), rules=[Count(names, **bounds)])
    points = drawn(space, 8192)
    subsets = Counter(tuple(point > 0) for point in points)
    assert {sum(subset) for subset in subsets} == sizes
    for size in sizes:
        counts = [n for subset, n in subsets.items() if sum(subset) == size]
        assert len(counts) == len(list(itertools.combinations(names, size)))
        np.testing.assert_allclose(counts, np.mean(counts), rtol=0.15)
        numbers = points[(points > 0).sum(axis=1) == size]
        numbers = numbers[numbers > 0]
        if len(numbers):
            np.testing.assert_allclose(np.quantile(numbers, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.03)


def test_shares_of_a_recipe_are_even_among_those_in_use():
    """Dirichlet's moments for three of six."""
    points = drawn(RECIPE, 4096)
    used = np.sort(points[(points > 0).sum(axis=1) == 3], axis=1)[:, 3:]
    assert len(used) > 2000
    expected = np.sort(np.random.default_rng(0).dirichlet(np.ones(3), 200_000), axis=1)
    np.testing.assert_allclose(used.mean(axis=0), expected.mean(axis=0), atol=0.02)
    moved = move(RECIPE.layout, np.random.default_rng(1).random((4096, 6)), spread=True)
    np.testing.assert_allclose(moved.sum(axis=1), 1.0, atol=1e-12)
    assert ((moved > 0).sum(axis=1) <= 3).all()
    np.testing.assert_allclose((moved > 0).mean(axis=0), 0.5, atol=0.05)


@pytest.mark.parametrize("space", [RECIPE, PIPELINE])
def test_a_compiled_program_moves_points_alike(space):
    """Points that satisfy the rules stay, and fixed coordinates do."""
    good = drawn(space, 64).astype(np.float32)
    fixed = np.full(len(space), np.nan, np.float32)
    fixed[2] = good[0, 2]
    compiled = jax.jit(lambda points, fixed: move(space.layout, points, fixed))
    points = np.where(np.isnan(fixed), np.random.default_rng(0).random((64, len(space))), fixed).astype(np.float32)
    moved = np.asarray(compiled(points, fixed))
    np.testing.assert_allclose(moved, move(space.layout, points, fixed), atol=1e-5)
    assert (moved[:, 2] == fixed[2]).all()
    free = np.full(len(space), np.nan, np.float32)
    np.testing.assert_allclose(space.layout.middles(compiled(good, free)), space.layout.middles(good), atol=1e-5)


@pytest.mark.slow
def test_a_search_finds_the_best_ingredients():
    """Three of six, against all combinations on a grid: the best mixture is 0.5, 0.3 and 0.2 of x1, x3 and x4."""
    target = dict.fromkeys(NAMES, 0.0) | {"x1": 0.5, "x3": 0.3, "x4": 0.2}
    optimizer = Optimizer(RECIPE, seed=0, config=EngineConfig(method="gp"))
    optimizer.optimize(lambda p: sum((p[name] - share) ** 2 for name, share in target.items()), 30)
    for trial in optimizer.trials:
        assert sum(value != 0.0 for value in trial.params.values()) <= 3  # zeros are zeros
        assert sum(trial.params.values()) == pytest.approx(1.0, abs=1e-12)
    assert in_use(optimizer.best.params) == ("x1", "x3", "x4")
    assert optimizer.best.value < 0.01


def test_files_and_other_rules():
    both = Space(dict(RECIPE), rules=[*RECIPE.rules, Less("x0", "x1"), Count(["x0", "x1"], at_least=1)])
    for space in (RECIPE, PIPELINE, both):
        assert from_json(json.loads(json.dumps(to_json(space)))) == space
        assert all(space.allows(space.params(point)) for point in drawn(space, 64))
    part = {"x0": 0.2, "x5": 0.1}
    optimizer = Optimizer(RECIPE, seed=1)
    optimizer.enqueue(part)
    params = optimizer.ask().params
    assert part.items() <= params.items()
    assert len(in_use(params)) == 3


def of(unused, **bounds):
    parameters = {"a": Bool(), "b": Bool(), "k": Categorical(["no", "yes"]), "n": Int(1, 4), "x": Float(0.0, 1.0)}
    return lambda: Space(parameters, rules=[Count(unused, **bounds)])


test_refused = error_table(
    ConfigError,
    (of(["a", "k"], at_most=1), "k must be one of ['no', 'yes'], but got None; name the value that means not in use"),
    (of(["a", "n"], at_most=1), "n must be a whole number in [1, 4], but got 0; name the value"),
    (of({"a": False, "k": "none"}, at_most=1), "a count must be of values of the space, but k must be one of"),
    (of(["a", "z"], at_most=1), "'z' of 'at most 1 of a, z' is none"),
    (of({"n": 1, "x": 0.0}, equals=3), "as whole numbers from 0 to 2, but got Count("),
    *((of(names, at_most=1), "a count must be of different names") for names in (["a", "a"], "ab", [], 3, ["a", 1])),
    *(
        (of(["a", "b"], **bounds), "a count needs at_least, at_most or both, in order, or equals")
        for bounds in (
            {},
            {"equals": 1, "at_most": 2},
            {"at_most": 1.5},
            {"at_least": 2, "at_most": 1},
            {"equals": True},
        )
    ),
    (
        lambda: Space({"a": Bool(), "b": Bool()}, rules=[Count(["a"], equals=1), Count(["a", "b"], equals=0)]),
        "the rules of the space must allow some configurations, but allow none of 4096",
    ),
    (lambda: to_configspace(PIPELINE), "ConfigSpace has only Forbidden and Less"),
)
test_configurations_that_violate_a_count = error_table(
    DataError,
    (
        lambda: Optimizer(RECIPE).enqueue(dict(zip(NAMES, (0.25, 0.25, 0.25, 0.25, 0, 0), strict=True))),
        "must satisfy 'at most 3 of x0, x1, x2, x3, x4, x5'",
    ),
    (lambda: Optimizer(PIPELINE).enqueue({"scale": True, "pca": True, "knots": 3}), "the rules exclude them"),
)
