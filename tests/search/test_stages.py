"""Runs whose method is fitted at several sizes of the history and values candidates at one."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import DRE
from dre_jax.data import bundled
from dre_jax.search import run, run_in_python
from dre_jax.search.stages import with_bucketed_history_fit
from tests.known_methods import NEAREST

CAPACITIES, N_DESIGN, N_TRIALS = (16, 19), 5, 15
recorded: list[tuple[str, int]] = []


@dataclass(frozen=True)
class TowardsTheMean:
    """Is fitted to the mean of the trials; records its calls while it is compiled."""

    def fit(self, meta, key):
        return None

    def fit_history(self, params, history, key):
        recorded.append(("fit", len(history.where)))
        count = jnp.sum(history.where, dtype=jnp.float32)
        return jnp.sum(jnp.where(history.where[:, None], history.x, 0.0), axis=0) / count

    def score_candidates(self, fitted_params, history, candidates):
        recorded.append(("score", len(history.where)))
        return -jnp.sum(jnp.abs(candidates.x - fitted_params[None, :]), axis=-1)

    def acquire(self, params, history, candidates, key):
        return self.score_candidates(self.fit_history(params, history, key), history, candidates)


@pytest.fixture(scope="module")
def table(search_task):
    return search_task(next(iter(bundled.load("svm").test.values())))


def in_one_scan(method, params, table, design, n_trials=N_TRIALS, **options):
    return run(method, params, table, design, jax.random.key(0), n_trials, stop_at_optimum=False, **options)


def picks_of(method, params, table, **options):
    compiled = jax.jit(partial(in_one_scan, method, **options))
    return np.asarray(compiled(params, table, jnp.arange(N_DESIGN)))


def expected_of(method, params, table):
    design = np.arange(N_DESIGN)
    return run_in_python(method, params, table, design, jax.random.key(0), N_TRIALS, stop_at_optimum=False)


def test_a_method_is_fitted_at_each_size_and_scores_at_the_last(table):
    expected = expected_of(TowardsTheMean(), None, table)
    recorded.clear()
    np.testing.assert_array_equal(picks_of(TowardsTheMean(), None, table, single_loop=True), expected)
    assert {size for what, size in recorded if what == "fit"} == set(CAPACITIES)
    assert {size for what, size in recorded if what == "score"} == {CAPACITIES[-1]}


def test_runs_side_by_side_are_fitted_at_one_size_a_trial(table):
    """And at every second size, from the largest one down: each is a branch to compile."""
    one = partial(in_one_scan, TowardsTheMean(), None, table, n_trials=60, side_by_side=True, single_loop=True)
    recorded.clear()
    lowered = jax.jit(jax.vmap(one)).lower(jnp.arange(10).reshape(2, 5))
    assert "stablehlo.case" in lowered.as_text()
    assert {size for what, size in recorded if what == "fit"} == {16, 64}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["dre-as-it-is", "dre"])
def test_stages_do_not_change_the_picks_of_ensembles(name, methods, table):
    method, params = methods[name]
    expected = expected_of(method, params, table)
    np.testing.assert_array_equal(picks_of(method, params, table, single_loop=True), expected)


def test_methods_without_fit_history_have_a_single_loop_too(table):
    assert with_bucketed_history_fit(TowardsTheMean(), CAPACITIES[:1]) == TowardsTheMean()
    assert with_bucketed_history_fit(NEAREST, CAPACITIES) == NEAREST
    assert with_bucketed_history_fit(DRE(), CAPACITIES) != DRE()
    np.testing.assert_array_equal(picks_of(NEAREST, None, table, single_loop=True), expected_of(NEAREST, None, table))
