"""Made-up comparisons, and one whole set of drawings."""

import numpy as np
import pytest

from dre_jax.report import Comparison, significance
from dre_jax.report.figures import draw_all


@pytest.fixture(scope="session")
def make_comparison():
    """Makes a comparison of random falling regrets; half of the tasks are in each space, every task has two designs."""

    def make(n_methods=3, n_runs=8, n_trials=20, *, seed=0, names=None, spaces=("s", "t"), **changes):
        rng = np.random.default_rng(seed)
        regret = np.minimum.accumulate(rng.random((n_methods, n_runs, n_trials + 1)), axis=2)
        methods = tuple(names or (f"method {i}" for i in range(n_methods)))
        runs = tuple((spaces[i * len(spaces) // n_runs], f"task {i // 2}", f"test{i % 2}") for i in range(n_runs))
        artificial = Comparison(methods, runs, regret, dict.fromkeys(methods, 0), 0, dict.fromkeys(methods, n_trials))
        return artificial._replace(**changes)

    return make


@pytest.fixture(scope="session")
def drawn(make_comparison, tmp_path_factory):
    """A comparison of four methods with names that look like markup, and its figures in a new folder."""
    comparison = make_comparison(4, names=["<script>", "a & b", "$_", "x" * 60])
    folder = tmp_path_factory.mktemp("drawn") / "a" / "b"
    tests = {trial: significance(comparison, trial) for trial in (10, 3)}
    return comparison, draw_all(comparison, tests, folder, "Title <&>")
