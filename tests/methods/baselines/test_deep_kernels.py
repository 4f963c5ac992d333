"""Methods on deep kernels, `dkgp` and `fsbo`: where fitting starts."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest

from dre_jax.gp.response_scale import standardise
from dre_jax.methods.baselines.deep_kernel import init, log_likelihood
from dre_jax.methods.dre.ensemble import Support
from dre_jax.search import make_history


@pytest.fixture
def seen(make_candidates):
    """A history, and candidates."""
    random = np.random.default_rng(0)
    return make_history(random.random((6, 3)), random.random(6)), make_candidates(random.random((20, 3)))


def test_weights_are_drawn_anew_at_every_trial(quick, seen):
    acquire = jax.jit(quick("dkgp").acquire)
    values = [acquire(None, *seen, jax.random.key(seed)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(values[0], values[1])
    assert np.abs(values[0] - values[2]).max() > 1e-3


@partial(jax.jit, static_argnums=0)
def likelihood(config, params, history):
    y = standardise(history.response, history.where).y
    return log_likelihood(config, params, Support(history.x, y, history.where), history.x, y, history.where)


def test_reuse_goes_on_from_the_last_trial(quick, seen):
    restart, key = quick("fsbo", times=10), jax.random.key(3)
    method = dataclasses.replace(restart, reuse=True)
    assert method.stateful
    assert not restart.stateful
    assert not dataclasses.replace(method, tuning=dataclasses.replace(method.tuning, steps=0)).stateful
    params, advance = init(method.model, 3, jax.random.key(4)), jax.jit(method.advance)
    first, state = advance(method.begin(params, 3, key), *seen, key)
    second, after = advance(state, *seen, key)
    assert np.abs(first - second).max() > 1e-6
    # The likelihood of the same history goes on rising.
    start, then, end = (float(likelihood(method.model, one, seen[0])) for one in (params, state, after))
    assert start < then < end
