"""The front, against a loop over pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax.methods.baselines import hebo
from dre_jax.methods.baselines.hebo import MOST, pareto_front

KEY = jax.random.key(0)
front_of = jax.jit(pareto_front)


def brute(values):
    result = []
    for one in values.T:
        no_worse, better = np.all(one <= values.T, axis=1), np.any(one < values.T, axis=1)
        result.append(not (no_worse & better).any())
    return np.array(result)


@pytest.mark.parametrize("steps", [1000, 4])
def test_the_front(steps):
    # In few steps many are tied, in one value or in all.
    values = np.floor(np.random.default_rng(0).random((3, 120)) * steps)
    result = front_of(jnp.asarray(values, jnp.float32), jnp.ones(120, bool), KEY)
    np.testing.assert_array_equal(result, brute(values))


def test_what_does_not_count_beats_nobody():
    values = np.random.default_rng(1).random((3, 60)).astype(np.float32)
    where = np.arange(60) % 3 > 0
    values[:, ~where] += 2.0
    result = np.asarray(front_of(jnp.asarray(values), jnp.asarray(where), KEY))
    np.testing.assert_array_equal(result[where], brute(values[:, where]))
    assert not result[~where].any()
    assert not np.asarray(front_of(jnp.asarray(values), jnp.zeros(60, bool), KEY)).any()


def test_of_many_none_is_beaten():
    rng = np.random.default_rng(2)
    values = np.abs(rng.normal(size=(3, 1300))).astype(np.float32)
    values /= np.linalg.norm(values, axis=0)  # of which none beats another
    result = np.asarray(front_of(jnp.asarray(values), jnp.ones(1300, bool), KEY))
    assert result.sum() == MOST
    values[:, rng.random(1300) < 0.4] *= 0.9
    result = np.asarray(front_of(jnp.asarray(values), jnp.ones(1300, bool), KEY))
    true = brute(values)
    assert true.sum() < 1300
    assert result.sum() > 0.6 * true.sum()
    assert not (result & ~true).any()


def test_of_equal_candidates_each_is_kept_as_often_as_any(monkeypatch):
    """A table is sorted by response: the first of equal rows would be the best."""
    monkeypatch.setattr(hebo, "MOST", 8)
    keys, everyone = jax.random.split(KEY, 500), jnp.ones(10, bool)
    selected = jax.jit(jax.vmap(lambda key: pareto_front(jnp.zeros((3, 10)), everyone, key)))(keys)
    assert (selected.sum(axis=1) == 8).all()
    assert stats.chisquare((~selected).sum(axis=0)).pvalue > 0.01
