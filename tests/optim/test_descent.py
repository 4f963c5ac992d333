"""Adam in a loop against the same in NumPy, number by number."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dre_jax.optim.adam import zero_moments
from dre_jax.optim.descent import begin, descend, maximise

STEPS, RATES = 12, optax.cosine_decay_schedule(0.5, 20)
TARGETS = np.random.default_rng(0).normal(size=(STEPS, 5))
TARGETS[4, 1] = np.nan  # a step whose gradient is not finite there
SCALE = np.array([1.0, 1.0, 0.0, 1e-9, 1e-6])  # epsilon matters to small gradients alone; one is zero


def loss(params, target):
    return jnp.sum(SCALE.astype(np.float32) * (params["a"] - target) ** 2)


def project(params):
    return {"a": jnp.maximum(params["a"], -0.25)}


def numpy_adam():
    """Losses, and parameters in front of each step and after the last (Kingma and Ba 2015, algorithm 1)."""
    a, m, v, losses, path = np.ones(5), np.zeros(5), np.zeros(5), [], [np.ones(5)]
    for i, target in enumerate(TARGETS):
        losses.append(np.sum(SCALE * (a - target) ** 2))
        g = np.nan_to_num(2.0 * SCALE * (a - target))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        rate = 0.25 * (1.0 + np.cos(np.pi * i / 20))
        a = a - rate * (m / (1.0 - 0.9 ** (i + 1))) / (np.sqrt(v / (1.0 - 0.999 ** (i + 1))) + 1e-8)
        a = np.maximum(a, -0.25)
        path.append(a)
    return np.array(losses), np.array(path)


def test_steps_are_those_of_the_loop_in_one_call_or_in_two():
    losses, path = numpy_adam()
    start = begin({"a": jnp.ones(5)}, keep_best=True, keep_average=True)
    run = jax.jit(lambda d, n, t: descend(loss, d, RATES, n, t, project=project))
    numbers, targets = jnp.arange(STEPS), jnp.asarray(TARGETS, jnp.float32)
    half, first = run(start, numbers[:6], targets[:6])
    end, second = run(half, numbers[6:], targets[6:])
    np.testing.assert_allclose([*first, *second], losses, rtol=1e-4)
    assert end.params["a"][2] == 1.0
    np.testing.assert_allclose(end.params["a"], path[-1], atol=1e-5)
    average = path[0]  # Shamir and Zhang 2013, section 4, with eta = 8
    for i, a in enumerate(path[1:]):
        average = (1.0 - 9.0 / (i + 9.0)) * average + 9.0 / (i + 9.0) * a
    np.testing.assert_allclose(end.average["a"], average, atol=1e-5)
    best = np.nanargmin(losses)
    np.testing.assert_allclose(end.best[0]["a"], path[best], atol=1e-5)
    assert float(end.best[1]) == pytest.approx(losses[best], rel=1e-4)


def test_moments_share_no_arrays():
    """Those of a donated state must not."""
    leaves = jax.tree.leaves(zero_moments({"kernel": jnp.ones((4, 3)), "bias": jnp.ones(3)}))
    assert not any(leaf.any() for leaf in leaves)
    assert len({leaf.unsafe_buffer_pointer() for leaf in leaves}) == 4


def test_nothing_finite_is_no_better_than_the_start():
    result, value = maximise(lambda a: jnp.log(a - 2.0), jnp.float32(1.0), steps=5, learning_rate=0.1, project=abs)
    assert (float(result), float(value)) == (1.0, -np.inf)
