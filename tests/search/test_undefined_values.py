"""Values that are NaN: they rank last, and where all are NaN there is an error, not random search."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import ConfigError, Float, Optimizer, Space, Surrogate
from dre_jax.search import ExecutionConfig, run_in_python, run_tasks
from dre_jax.search.acquisition import EXPECTED_IMPROVEMENT
from dre_jax.suggest import Suggester
from tests.known_methods import Valued

RULE = "all values of RootOfColumn by the acquisition function 'ei' are NaN"


class RootOfColumn(Valued):
    acquisition = EXPECTED_IMPROVEMENT


def root_above(bound, trials=0):
    """A method whose values are NaN for candidates below a bound in the first column, from some trial on."""

    def values(history, x):
        return jnp.where(jnp.sum(history.where) >= trials, jnp.sqrt(x[:, 0] - bound), -x[:, 0])

    return RootOfColumn(values)


NEVER, PARTLY, LATER = root_above(2.0), root_above(0.5), root_above(2.0, trials=5)


@pytest.mark.parametrize("side_by_side", [False, True])
def test_runs(side_by_side, make_space, search_task):
    space, key = make_space("s"), jax.random.key(0)
    options = {"n_trials": 6, "key": key, "config": ExecutionConfig(side_by_side=side_by_side)}
    for method in (NEVER, LATER):
        with pytest.raises(ConfigError, match=RULE):
            list(run_tasks(method, None, space.test, space.designs, **options))
    assert len(list(run_tasks(PARTLY, None, space.test, space.designs, **options))) == 9
    table, design = search_task(space.test["x"], empty=2), space.designs["x"]["test0"]
    with pytest.raises(ConfigError, match=RULE):
        run_in_python(LATER, None, table, design, key, 6)
    picks = run_in_python(PARTLY, None, table, design, key, 4, stop_at_optimum=False)
    first = np.asarray(table.x)[:, 0]
    left = [x for row, x in enumerate(first[:30]) if row not in design]
    np.testing.assert_array_equal(first[picks], sorted(left)[::-1][:4])


def test_suggestions():
    x, y = np.linspace(0.0, 1.0, 12).reshape(6, 2), np.arange(6.0)
    for candidates in (x, None):
        with pytest.raises(ConfigError, match=RULE):
            Suggester(NEVER).observe_and_suggest(x, y, candidates)
    assert Suggester(PARTLY).observe_and_suggest(x, y, x) == 5
    assert Suggester(PARTLY).observe_and_suggest(x, y)[0] > 0.99


def test_a_study():
    space = Space({"x": Float(0.0, 1.0), "z": Float(0.0, 1.0)})
    optimizer = Optimizer(space, Surrogate(space, "root", LATER, None))
    with pytest.raises(ConfigError, match=RULE):
        optimizer.optimize(lambda trial: trial["x"] + 0.1 * trial.number, 8)  # no two values are equal
    assert len(optimizer.trials) == 5
    assert Optimizer(space, Surrogate(space, "root", PARTLY, None)).ask()["x"] > 0.99
