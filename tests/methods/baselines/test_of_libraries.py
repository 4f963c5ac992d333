"""Every registered host method: odd tables, the same picks from the same seed, and better than chance."""

import importlib.util
import random

import numpy as np
import pytest

from dre_jax.methods import METHODS
from dre_jax.search.host import run_host

MODULES = {"scikit-learn": "sklearn", "smac": "smac", "optuna": "optuna"}
NAMES = [name for name, entry in METHODS.items() if entry.host is not None]


@pytest.fixture(params=NAMES)
def make(request):
    """An object for a run with a seed."""
    entry = METHODS[request.param]
    if importlib.util.find_spec(MODULES[entry.library]) is None:
        pytest.skip(f"the extra {entry.extra} is not installed")

    def fresh(seed):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        return entry.host()

    return fresh


def tables():
    rng = np.random.default_rng(0)
    x = rng.random((20, 3)).astype(np.float32)
    yield "constant response", x, np.full(20, 0.7)
    yield "tied responses", x, np.repeat([0.1, 0.2], 10)
    yield "equal rows", np.repeat(x[:4], 5, axis=0), rng.random(20)
    yield "constant columns", np.concatenate([x, np.ones((20, 2)), np.zeros((20, 1))], axis=1), rng.random(20)
    yield "one column", x[:, :1], rng.random(20)
    yield "many columns", rng.random((20, 64)), rng.random(20)
    yield "five rows", x[:5], rng.random(5)
    yield "ends of the range", np.round(x), rng.random(20)


@pytest.mark.parametrize("design", [[0], [1, 2, 3]])
def test_odd_tables(make, design):
    for what, x, y in tables():
        trace = run_host(make(1), x, y, np.array(design), 14)
        assert np.isfinite(trace).all(), what
        assert len(trace) == 15
        assert trace[-1] == 1.0 or len(x) > 15 or what == "constant response", what


def test_the_seed_decides_whatever_the_scale(make):
    rng = np.random.default_rng(3)
    x, y, design = rng.random((60, 3)), rng.random(60), np.arange(5)
    first, second = (run_host(make(8), x, y, design, 12) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    for tried in (x[:1], x[:6], np.repeat(x[:1], 6, axis=0)):
        response = y[: len(tried), None]
        # A quarter of the table's scale is exact in floating point.
        picks = {make(8).observe_and_suggest(tried, scale * response, x[6:]) for scale in (1.0, 0.25)}
        assert len(picks) == 1


@pytest.mark.thorough
def test_better_than_chance(make):
    rng = np.random.default_rng(6)
    regrets, by_chance = [], []
    for seed in range(8):
        x = rng.random((300, 2))
        y = -np.sum((x - rng.random(2)) ** 2, axis=1)
        regrets.append(1 - run_host(make(seed), x, y, np.argsort(y)[:5], 20)[-1])
        response = np.sort(y - y.min())[5:] / np.ptp(y)
        by_chance.append(1 - np.mean([rng.choice(response, 20, replace=False).max() for _ in range(500)]))
    assert np.mean(regrets) < 0.7 * np.mean(by_chance)
