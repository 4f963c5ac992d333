"""Methods with little to compute against random search, on tasks that they are made for."""

import jax
import pytest

from dre_jax.methods import METHODS

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
    "empirical-gp": ({"rows": 60}, 3, 6, 0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_better_than_random(name, hills, mean_regrets):
    settings, n_trials, n_designs, share = CASES[name]
    method, task = METHODS[name].make(settings), hills.test["new"]
    regret = mean_regrets(method, method.fit(hills, jax.random.key(0)), task, n_trials, n_designs)[-1]
    assert regret < share * mean_regrets(METHODS["random"].make(), None, task, n_trials, n_designs)[-1]
