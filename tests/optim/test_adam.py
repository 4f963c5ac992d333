import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dre_jax.optim.adam import StepSizes, apply_gradient, step_sizes, zero_moments

SCHEDULES = {
    "constant": optax.constant_schedule(0.03),
    "cosine": optax.cosine_decay_schedule(0.03, 60),
}


sizes_of = jax.jit(step_sizes, static_argnums=0)


def gradients(n_steps):
    """A tree of gradients for each step, over many magnitudes; one entry never moves."""
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.uniform(-9, 9, (4, 3))  # epsilon matters to the least of them alone
    kernel = rng.normal(size=(n_steps, 4, 3)) * scale
    kernel[:, 0, 0] = 0.0
    return {"kernel": jnp.asarray(kernel, jnp.float32), "bias": jnp.asarray(rng.normal(size=(n_steps, 3)), jnp.float32)}


def start():
    return {"kernel": jnp.linspace(-1.0, 1.0, 12).reshape(4, 3), "bias": jnp.zeros(3)}


@pytest.mark.parametrize("name", SCHEDULES)
def test_equals_optax(name):
    n_steps, params = 60, start()
    sizes, grads = jax.device_get((sizes_of(SCHEDULES[name], jnp.arange(n_steps)), gradients(n_steps)))
    moments, optimiser = zero_moments(params), optax.adam(SCHEDULES[name])
    # optax promotes types as it goes.
    with jax.numpy_dtype_promotion("standard"):
        expected, state, update = params, optimiser.init(params), jax.jit(optimiser.update)
        ours, add = jax.jit(apply_gradient), jax.jit(optax.apply_updates)
        for step in range(n_steps):
            gradient = jax.tree.map(lambda g, step=step: g[step], grads)
            params, moments = ours(params, gradient, moments, StepSizes(sizes.size[step], sizes.floor[step]))
            updates, state = update(gradient, state)
            expected = add(expected, updates)
            for part in params:
                np.testing.assert_allclose(params[part], expected[part], rtol=2e-5, atol=2e-6)
    assert params["kernel"][0, 0] == -1.0
    assert np.abs(params["kernel"] - start()["kernel"])[1:].min() > 0.01


def test_step_sizes_late_in_a_training_and_moments_before_it():
    sizes = sizes_of(SCHEDULES["constant"], jnp.array([0, 10**6]))
    np.testing.assert_allclose(sizes.size, [0.03 * 0.001**0.5 / 0.1, 0.03], rtol=1e-5)
    np.testing.assert_allclose(sizes.floor, [1e-8 * 0.001**0.5, 1e-8], rtol=1e-5)
    moments = zero_moments(start())
    leaves = jax.tree.leaves(moments)
    assert all((leaf == 0).all() for leaf in leaves)
    assert len({leaf.unsafe_buffer_pointer() for leaf in leaves}) == 4
