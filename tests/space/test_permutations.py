"""Permutations: their levels against all orders, their columns against Kendall's distance, and searches over them."""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kendalltau

from dre_jax.errors import ConfigError, DataError
from dre_jax.functions import optimize_functions
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.layout_orders import Order
from dre_jax.space.sobol import sobol_points
from dre_jax.tuning import (
    Allowed,
    Bool,
    Categorical,
    Count,
    EngineConfig,
    Float,
    Forbidden,
    Formula,
    Int,
    Less,
    Optimizer,
    Optimizers,
    Permutation,
    Space,
    Surrogate,
    from_frame,
    past_of,
    to_configspace,
)
from dre_jax.tuning.command.templates import parse
from dre_jax.tuning.optuna import DRESampler, to_optuna, to_study
from dre_jax.tuning.trials.trial import Trial
from tests.error_messages import error_table

ITEMS = ("wash", "cut", 3, None)
SPACE = Space(
    {
        "x": Float(0.0, 1.0),
        "sorted": Bool(),
        "steps": Permutation(ITEMS, when={"sorted": True}),
        "tour": Permutation(range(4)),
    }
)


def orders(n):
    return list(itertools.permutations(range(n)))


def part(n):
    return Order(n, tuple(range(n * (n - 1) // 2)))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_levels_are_all_orders_sorted(n):
    parameter = Permutation([f"i{i}" for i in range(n)])
    named = [tuple(f"i{i}" for i in order) for order in orders(n)]
    assert [parameter.at(k) for k in range(parameter.size)] == named
    assert [parameter.index(list(order)) for order in named] == list(range(len(named)))
    levels = np.arange(float(len(named)))
    for xp in (np, jnp):
        items = part(n).items(xp.asarray(levels, xp.float32))
        np.testing.assert_array_equal(items, orders(n))
        np.testing.assert_array_equal(part(n).level(items), levels)


def test_single_precision_tells_nine_items_apart():
    levels = np.random.default_rng(0).integers(0, 362_880, 20_000)
    u = jnp.asarray(part(9).coordinates(levels), jnp.float32)
    items = jax.jit(lambda u: part(9).items(part(9).values(u)))(u)
    np.testing.assert_array_equal(part(9).level(np.asarray(items)), levels)
    parameter = Permutation(range(9))
    assert all(
        parameter.at(int(k)) == tuple(order) for k, order in zip(levels, np.asarray(items).tolist(), strict=True)
    )


def test_the_distance_of_columns_is_kendalls():
    """So that a process with one length scale has the Mallows kernel."""
    space = Space({"tour": Permutation(range(5))})
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.permutation(5), rng.permutation(5)
        n_discordant = round(10 * (1 - kendalltau(np.argsort(a), np.argsort(b)).statistic) / 2)
        columns = space.encode({"tour": a}), space.encode({"tour": b.tolist()})
        assert np.sum((columns[0] - columns[1]) ** 2) == n_discordant
    assert [column.name for column in space.columns][:2] == ["tour.order._0_before_1", "tour.order._0_before_2"]


@pytest.mark.parametrize("space", [SPACE, Space(dict(SPACE), rules=[Count(["sorted"], equals=1)])])
def test_configurations_points_and_columns(space):
    for point in sobol_points(64, 4, 0):
        params = space.params(point)
        assert ("steps" in params) == params["sorted"]
        assert space.check(json.loads(json.dumps(params)), rules=False) == params  # files have lists
        assert space.params(space.point(params)) == params
        assert space.decode(space.encode(params)) == params
    rng = np.random.default_rng(0)
    assert len({space.decode(rng.normal(size=len(space.columns)) * 3)["tour"] for _ in range(400)}) == 24
    assert from_json(json.loads(json.dumps(to_json(space)))) == space


def test_a_step_moves_one_item():
    """By one place for a short step; every order of the neighbourhood is reached."""
    u = part(5).coordinates(np.full(4000, 37.0))
    start = part(5).items(np.array(37.0))
    rng = np.random.default_rng(0)
    for width in (0.01, 0.4):
        distance = (width * rng.standard_normal(4000)).astype(np.float32)
        stepped = part(5).step(u.astype(np.float32), distance, rng.random(4000, np.float32))
        reached = {tuple(order) for order in part(5).items(part(5).values(stepped)).tolist()}
        moves = set()
        for i, j in itertools.permutations(range(5), 2):
            if width > 0.1 or abs(i - j) == 1:
                rest = [item for k, item in enumerate(start.tolist()) if k != i]
                moves.add((*rest[:j], start[i].item(), *rest[j:]))
        assert reached == moves
        compiled = jax.jit(lambda u, d, a: part(5).step(u, d, a))(
            *map(jnp.asarray, (u.astype(np.float32), distance, distance % 1))
        )
        np.testing.assert_allclose(compiled, part(5).step(u.astype(np.float32), distance, distance % 1), atol=1e-6)


def cost(order):
    """A sum over pairs in the wrong order, and over neighbours that do not fit."""
    wrong = sum(i * j for i, j in itertools.combinations(order, 2) if i > j)
    return wrong + sum((i + j) % 3 for i, j in itertools.pairwise(order))


@pytest.mark.slow
def test_a_search_finds_a_good_order():
    """Of 720, one of the three best within 20 trials; by chance, one of twelve searches does."""
    space = Space({"tour": Permutation(range(6), default=[5, 4, 3, 2, 1, 0])})
    optimizer = Optimizer(space, seed=0)
    optimizer.optimize(lambda p: cost(p["tour"]), 20)
    assert optimizer.trials[0]["tour"] == (5, 4, 3, 2, 1, 0)
    assert optimizer.best.value <= sorted(map(cost, orders(6)))[2]
    assert len({trial["tour"] for trial in optimizer.trials}) == 20


@pytest.mark.slow
def test_many_searches_get_positions():
    """Each of six orders is evaluated once, in a program and one by one."""
    space = Space({"tour": Permutation(["a", "b", "c"])})
    searches = optimize_functions(
        lambda weights, p: jnp.sum(weights * p["tour"].astype(jnp.float32)),
        np.array([[1.0, 10.0, 100.0]]),
        space,
        n_trials=6,
        method="random",
    )
    expected = [order @ np.array([1.0, 10.0, 100.0]) for order in np.array(orders(3))]
    assert sorted(searches.values[0, 0]) == sorted(expected)
    optimizers = Optimizers(space, 2, method="random")
    trials = optimizers.ask()
    assert all(set(trial.params["tour"]) == {"a", "b", "c"} for trial in trials)


@pytest.mark.slow
def test_studies_files_and_tables(tmp_path):
    optimizer = Optimizer(SPACE, seed=0, config=EngineConfig(method="random"))
    optimizer.enqueue({"steps": [None, "cut", 3, "wash"]})
    for _ in range(12):
        trial = optimizer.ask()
        optimizer.tell(trial, trial["x"] + trial["tour"].index(2))
    assert optimizer.trials[0]["steps"] == (None, "cut", 3, "wash")
    optimizer.save(tmp_path / "study.json")
    again = Optimizer.load(tmp_path / "study.json")
    assert [trial.params for trial in again.trials] == [trial.params for trial in optimizer.trials]
    assert {"tour", "x"} <= optimizer.importance().keys()
    past = past_of(SPACE, {"one": optimizer.trials, "two": again.trials}, direction="minimize")
    frame, columns = optimizer.to_frame(), SPACE.encode_rows([trial.params for trial in optimizer.trials])
    frame.to_csv(tmp_path / "trials.csv")
    import pandas as pd

    for table in (frame, pd.read_csv(tmp_path / "trials.csv")):
        read = from_frame(table.assign(task="a"), SPACE, task="task", value="value", direction="minimize")
        np.testing.assert_allclose(read.tasks["a"].X, columns, atol=1e-6)
    surrogate = Surrogate.fit(past, method="gcp", settings={"prior.steps": 5})
    assert Optimizer(SPACE, surrogate).ask().params.keys() >= {"x", "tour"}


def test_optuna_has_positions():
    distributions = to_optuna(SPACE)
    assert (distributions["tour"].low, distributions["tour"].high) == (0, 23)
    import optuna

    study = optuna.create_study(sampler=DRESampler(SPACE, seed=0))
    study.optimize(
        lambda t: sum(i * v for i, v in enumerate(SPACE["tour"].at(t.suggest_int("tour", 0, 23)))), n_trials=3
    )
    optimizer = Optimizer(SPACE, seed=0)
    optimizer.add({"x": 0.5, "sorted": False, "tour": (3, 1, 0, 2)}, 1.0)
    assert SPACE["tour"].at(to_study(optimizer).trials[0].params["tour"]) == (3, 1, 0, 2)


def test_commands_get_json():
    space = Space({"steps": Permutation(ITEMS)})
    command = parse(["run", "--steps={steps}"], space).fill(Trial(0, {"steps": ("cut", None, 3, "wash")}))
    assert command[1:] == ['--steps=["cut", null, 3, "wash"]']


def test_allowed_orders():
    """For example those in which one item precedes another one."""
    allowed = [{"tour": order} for order in orders(4) if order.index(1) < order.index(3)]
    space = Space(dict(SPACE), rules=[Allowed(allowed)])
    assert from_json(json.loads(json.dumps(to_json(space)))) == space
    optimizer = Optimizer(space, seed=0, config=EngineConfig(method="random"))
    optimizer.optimize(lambda p: p["x"], 8)
    assert all(trial["tour"].index(1) < trial["tour"].index(3) for trial in optimizer.trials)


def of(items, **options):
    return lambda: Permutation(items, **options)


def ruled(rule):
    return lambda: Space(dict(SPACE), rules=[rule])


test_refused = error_table(
    ConfigError,
    *(
        (of(items), "a permutation must be of 2 to 9 items in a list, but got")
        for items in ("abc", ["a"], range(10), 3, {"a": 1, "b": 2}, {1, 2})
    ),
    (of(["a", "a"]), "items must differ, but got ['a', 'a']"),
    (of([1, float("nan")]), "an item must be text, a finite number, true, false or None, but got nan"),
    (of(["a", "b"], default=["a", "c"]), "default must be an order of ['a', 'b'], but got ['a', 'c']"),
    (of(["a", "b"], default="ab"), "default must be an order of ['a', 'b'], but got 'ab'"),
    (ruled(Forbidden({"tour": [0]})), "a combination must have values that can be listed, but 'tour' is a permutation"),
    (ruled(Less("tour", "x")), "an order or a sum must be of numbers"),
    (ruled(Count(["tour"], equals=1)), "a count must be of numbers and choices, but 'tour' is a permutation"),
    (ruled(Formula("tour < 1")), "a formula must be of numbers and choices, but 'tour < 1' has a permutation"),
    (ruled(Allowed([{"tour": [0, 1, 2, 2]}])), "tour must be an order of [0, 1, 2, 3], but got (0, 1, 2, 2)"),
    (lambda: Space({**SPACE, "y": Int(1, 2, when={"tour": [0]})}), "a hyperparameter can depend on values of a Categ"),
    (lambda: to_configspace(SPACE), "ConfigSpace has no permutations, but steps is one"),
    (lambda: from_json({"a": {"type": "permutation", "likely": 3}}), "a hyperparameter of type permutation has"),
)
test_values_that_are_no_order = error_table(
    DataError,
    *(
        (lambda value=value: SPACE.check({"x": 0.0, "sorted": False, "tour": value}), "tour must be an order of")
        for value in ([0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 3, 3], [0, 1, 2, True], "0123", 3, None, [[0], 1, 2, 3])
    ),
    (
        lambda: Space({"tour": Permutation([1, 0, 2])}).require_encodes(Space({"tour": Permutation([0, 1, 2])})),
        "tour (items [0, 1, 2] here, [1, 0, 2] in the surrogate)",
    ),
    (
        lambda: Space({"tour": Categorical([0, 1])}).require_encodes(Space({"tour": Permutation([0, 1])})),
        "tour (a permutation here, a categorical in the surrogate)",
    ),
)
