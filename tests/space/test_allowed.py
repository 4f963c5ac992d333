"""Lists of allowed configurations: suggestions are of the list, each once."""

import json

import numpy as np
import pandas as pd
import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.projection import move
from dre_jax.tuning import Allowed, Categorical, EngineConfig, Float, Int, Optimizer, Space, Surrogate, to_configspace
from tests.error_messages import error_table
from tests.known_methods import NEAREST

MACHINE = {
    "gpu": Categorical(["a", "b", None]),
    "memory": Float(1.0, 64.0, log=True),
    "disks": Int(1, 5, when={"gpu": "b"}),
}
FRAME = pd.DataFrame(
    {"gpu": ["a", "a", "b", "b", None], "memory": [3.3, 64, 4, 4, 7], "disks": [np.nan, np.nan, 2, 5, np.nan]},
    dtype=object,
)
STOCK = [{k: v for k, v in row.items() if v == v} for row in FRAME.to_dict("records")]
SPACE = Space(MACHINE, rules=[Allowed(FRAME)])
WITH_RATE = Space({**MACHINE, "rate": Float(0.0, 1.0)}, rules=[Allowed(STOCK)])


STARTS = [({"gpu": "a", "memory": 5.0},), ({"gpu": "a", "memory": 3.3 * (1 + 1e-8)},)]


@pytest.mark.parametrize("surrogate", [None, *(Surrogate(SPACE, "near", NEAREST, None, start) for start in STARTS)])
def test_each_configuration_comes_once(surrogate, tmp_path):
    """Exactly as listed, also after a past whose best is not on the list; when all have been tried they repeat."""
    optimizer = Optimizer(SPACE, surrogate, seed=0)
    optimizer.enqueue({"memory": 7.0})
    for number in range(3):
        optimizer.tell(optimizer.ask(), number)
    optimizer.save(tmp_path / "study.json")
    optimizer = Optimizer.load(tmp_path / "study.json", surrogate)
    trials = [*optimizer.trials, *optimizer.ask(2)]
    assert trials[0].params == {"gpu": None, "memory": 7.0}
    assert all(trial.params in STOCK for trial in trials)
    assert all(any(trial.params == row for trial in trials) for row in STOCK)
    assert (SPACE.size, optimizer.ask().params in STOCK) == (5, True)


@pytest.mark.slow
def test_a_search_combines_the_list_with_other_hyperparameters():
    optimizer = Optimizer(WITH_RATE, seed=0, config=EngineConfig(method="gp"))
    optimizer.optimize(lambda p: (p["rate"] - 0.3) ** 2 + abs(p["memory"] - 4) + abs(p.params.get("disks", 0) - 4), 14)
    assert all({k: v for k, v in t.params.items() if k != "rate"} in STOCK for t in optimizer.trials)
    assert (optimizer.best["memory"], optimizer.best["disks"]) == (4.0, 5)
    assert optimizer.best["rate"] == pytest.approx(0.3, abs=0.05)
    assert from_json(json.loads(json.dumps(to_json(WITH_RATE)))) == WITH_RATE


def test_points_move_to_the_nearest_row():
    """By distances of all; a fixed coordinate excludes rows."""
    rows = np.random.default_rng(0).random((50, 2)).round(3)
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}, rules=[Allowed([{"x": x, "y": y} for x, y in rows])])
    points = np.random.default_rng(1).random((200, 2))
    nearest = rows[np.abs(points[:, None] - rows[None]).sum(axis=2).argmin(axis=1)]
    np.testing.assert_allclose(move(space.layout, points), nearest, atol=1e-12)
    fixed = np.array([rows[7, 0], np.nan])
    points[:, 0] = fixed[0]
    np.testing.assert_allclose(move(space.layout, points, fixed), np.tile(rows[7], (200, 1)), atol=1e-12)


def of(rows):
    return lambda: Space(MACHINE, rules=[Allowed(rows)])


test_refused = error_table(
    ConfigError,
    (of([{"gpu": "c", "memory": 8.0}]), "gpu must be one of ['a', 'b', None], but got 'c'"),
    (of([{"gpu": "a", "memory": 80.0}]), "memory must be a number in [1.0, 64.0], but got 80.0"),
    (of([{"gpu": "a", "memory": 8.0, "cores": 2}]), "but 'cores' of 'gpu, memory, cores in one of 1 rows' is none"),
    (of([*STOCK, {"gpu": "a"}]), "must have 'memory', but got {'gpu': 'a'}"),
    *((of(rows), "must be 1 to 10000 mappings in a list") for rows in ([], None, "ab", {"gpu": "a"}, [{}] * 10_001)),
    *((of([row]), "an allowed configuration must map names to values, but got") for row in (3, {}, {"gpu": {}})),
    (of([{"gpu": ["a"], "memory": 8.0}]), "gpu must be one of ['a', 'b', None], but got ('a',)"),
    (lambda: to_configspace(SPACE), "ConfigSpace has only Forbidden and Less among the rules"),
)
test_configurations_that_are_not_listed = error_table(
    DataError,
    (lambda: Optimizer(SPACE).enqueue({"memory": 5.0}), "the rules exclude them: gpu, memory, disks in one of 5 rows"),
    (
        lambda: Optimizer(SPACE).add({"gpu": "a", "memory": 4.0}, 1.0),
        "must satisfy 'gpu, memory, disks in one of 5 rows'",
    ),
)
