"""Methods with little to compute against random search, on tasks that they are made for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data.tasks import sort_task, unit_scale
from dre_jax.methods import METHODS
from dre_jax.search import SearchTask, run_in_python

pytestmark = pytest.mark.thorough

SOURCES = {"fitting.steps": 25, "rows": 25}
DEEP = {"meta_training.steps": 1500, "meta_training.learning_rate": 3e-3, "model.layers": (16, 16)}
# Settings, trials, designs, and the share of random search's mean regret that is allowed.
CASES = {
    "gp": ({"fitting.steps": 25}, 8, 30, 0.6),
    "metis": ({"fitting.steps": 60}, 8, 30, 1.0),
    "hebo": ({"fitting.steps": 30}, 8, 20, 0.6),
    "dngo": ({"network.hidden": (20,), "fitting.steps": 200, "fitting.learning_rate": 0.02}, 10, 6, 0.5),
    "bohamiann": (
        {"network.hidden": (6,), "chain.burn_in": 300, "chain.samples": 20, "chain.step_size": 0.01}, 10, 6, 0.5,
    ),
    "deep-ensemble": ({"network.hidden": (16, 16), "fitting.steps": 300}, 10, 6, 0.5),
    "rgpe": (SOURCES | {"samples": 40}, 3, 6, 0.5),
    "tst": (SOURCES | {"bandwidth": 0.3}, 3, 6, 0.5),
    "taf": (SOURCES | {"bandwidth": 0.3}, 3, 6, 0.5),
    # A deep kernel that knows no past tasks has two thirds of random search's.
    "fsbo": (DEEP, 3, 12, 0.3),
    "dklm": (DEEP, 3, 12, 0.3),
    "gcp": ({"prior.steps": 800, "prior.hidden": (24, 24), "fitting.steps": 25}, 3, 6, 0.5),
}  # fmt: skip


def mean_regret(method, params, task, n_trials, n_designs):
    """From designs of three rows that are none of the best thirty."""
    rows = sort_task(task)
    table = SearchTask(*map(jnp.asarray, (rows.x, rows.response, rows.level)), jnp.ones(task.n_rows, bool))
    scaled, found = unit_scale(task.y)[rows.order], []
    for seed in range(n_designs):
        design = np.random.default_rng(seed).choice(np.arange(30, 80), 3, replace=False).astype(np.int32)
        picks = run_in_python(method, params, table, design, jax.random.key(seed), n_trials)
        found.append(1.0 - scaled[picks[picks >= 0]].max())
    return float(np.mean(found))


@pytest.mark.parametrize("name", CASES)
def test_better_than_random(name, hills):
    settings, n_trials, n_designs, share = CASES[name]
    method, task = METHODS[name].make(settings), hills.test["new"]
    regret = mean_regret(method, method.fit(hills, jax.random.key(0)), task, n_trials, n_designs)
    assert regret < share * mean_regret(METHODS["random"].make(), None, task, n_trials, n_designs)
