"""How deep ensembles are trained."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import stats

from dre_jax.methods.baselines.deep_ensemble import DeepEnsemble
from dre_jax.nn.mlp import MLPConfig, init, standard_columns
from dre_jax.optim.full_batch import FullBatchConfig

SMALL = DeepEnsemble(
    members=3,
    network=MLPConfig(hidden=(6,), activation="relu", outputs=2),
    fitting=FullBatchConfig(steps=12, learning_rate=0.02),
)
KEY = jax.random.key(5)


def slow_ensemble(method, members, x, y):
    """Members one after the other, by optax on scipy's density."""
    optimiser = optax.adam(method.fitting.learning_rate)

    def loss(w):
        h = jax.nn.relu(x @ w["hidden_0_kernel"] + w["hidden_0_bias"][None, :])
        out = h @ w["out_kernel"] + w["out_bias"][None, :]
        deviation = jnp.sqrt(jnp.log1p(jnp.exp(out[:, 1])) + 1e-6)
        return -jnp.mean(jax.scipy.stats.norm.logpdf(y, out[:, 0], deviation))

    @jax.jit
    def step(params, state):
        updates, state = optimiser.update(jax.grad(loss)(params), state)
        return optax.apply_updates(params, updates), state

    for i in range(method.members):
        params = {name: np.asarray(value)[i] for name, value in members.items()}
        state = jax.jit(optimiser.init)(params)
        for _ in range(method.fitting.steps):
            params, state = step(params, state)
        yield params


def test_members_are_trained_on_the_likelihood(hills):
    task = hills.test["new"]
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        x, y = standard_columns(jnp.asarray(task.X[:9], jnp.float64)), jnp.asarray(stats.zscore(task.y[:9]))
        members = jax.vmap(partial(init, SMALL.network, 2))(jax.random.split(KEY, SMALL.members))
        assert np.abs(np.diff(members["out_kernel"], axis=0)).min() > 1e-6
        slots, where = jnp.pad(x, ((0, 3), (0, 0))), jnp.arange(12) < 9
        result = jax.jit(SMALL.train)(members, slots, jnp.pad(y, (0, 3)), where)
        for i, expected in enumerate(slow_ensemble(SMALL, members, x, y)):
            for name, value in expected.items():
                np.testing.assert_allclose(result[name][i], value, atol=1e-6)
