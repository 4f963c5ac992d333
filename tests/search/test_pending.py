"""Trials that still run, against a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import rankdata

from dre_jax.methods import RandomSearch
from dre_jax.search import make_history, run
from dre_jax.search.loop import Batch
from dre_jax.search.pending import LIES, with_pending

TOLD = np.array([0.2, 0.9, 0.9, 0.4])


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("responses", [TOLD, TOLD[:1], np.zeros(0)])
def test_those_that_run_are_told_as_a_lie(lie, responses):
    rng = np.random.default_rng(0)
    x, n = rng.random((7, 2)).astype(np.float32), len(responses)
    pending = (np.arange(7) >= n) & (np.arange(7) < n + 2)
    history = make_history(x[:n], responses, capacity=7)
    found = jax.jit(with_pending, static_argnames="lie")(history, jnp.asarray(x), jnp.asarray(pending), lie=lie)
    if lie == "none":
        jax.tree.map(np.testing.assert_array_equal, found, history)
        return
    scaled = (responses - responses.min()) / np.ptp(responses) if n > 1 else np.full(n, 0.5)
    claimed = {"min": np.min, "mean": np.mean, "max": np.max}[lie](scaled) if n else 0.5
    expected = np.append(scaled, [claimed, claimed])
    filled = np.arange(7) < n + 2
    np.testing.assert_array_equal(found.where, filled)
    np.testing.assert_array_equal(found.x[: n + 2], x[: n + 2])
    np.testing.assert_allclose(found.response[: n + 2], expected, rtol=1e-6)
    levels = rankdata(-expected, method="dense")
    np.testing.assert_array_equal(rankdata(found.level[: n + 2], method="dense"), levels)


class Spy(RandomSearch):
    """Values the candidates by what the history says, so that a leak of a running trial's response shows."""

    def acquire(self, params, history, candidates, key):
        total = jnp.sum(jnp.where(history.where, history.response * (1.0 + history.x[:, 0]), 0.0))
        return jnp.sin(1e3 * total + candidates.x[:, 0] * 50.0)


@pytest.mark.parametrize("lie", ["mean", "none"])
def test_a_run_learns_of_a_batch_when_it_is_done(search_task, cut_task, space, lie):
    """Responses of the trials of a batch change nothing before the next batch."""
    small_task = search_task(cut_task(space.test["wine-alcalinity"], 30))._replace(rest=None)
    design, key = jnp.array([0, 1]), jax.random.key(0)
    picked = run(Spy(), None, small_task, design, key, 6, stop_at_optimum=False, batch=Batch(3, lie))
    assert len(set(picked.tolist()) | {0, 1}) == 8
    # Swap the responses of the first batch's rows: its own picks stay, later ones do not.
    rows = np.arange(len(small_task.level))
    rows[np.asarray(picked[:3])] = np.asarray(picked[:3])[[1, 2, 0]]
    other = small_task._replace(response=small_task.response[rows], level=small_task.level[rows])
    again = run(Spy(), None, other, design, key, 6, stop_at_optimum=False, batch=Batch(3, lie))
    np.testing.assert_array_equal(again[:3], picked[:3])
    assert (np.asarray(again[3:]) != np.asarray(picked[3:])).any()
