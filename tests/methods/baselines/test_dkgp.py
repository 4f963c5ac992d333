"""Deep kernels, with empty slots, against scikit-learn on features that a NumPy loop worked out, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from dre_jax.methods.baselines.dkgp import (
    DeepKernelConfig,
    deep_kernel_posterior,
    features,
    init,
    log_likelihood,
)
from dre_jax.methods.dre.model.ensemble import Support
from tests.oracles import forward, in_slots

CONFIGS = {
    "plain": DeepKernelConfig(layers=(8, 6, 4)),
    "linear": DeepKernelConfig(layers=(4,), kernel="squared_exponential"),
    "landmarks": DeepKernelConfig(layers=(8, 4), phi=(5, 6), rho=(7, 3)),
}
N, EMPTY, NEW, D = 13, 4, 9, 3
jitted_posterior, jitted_features = (jax.jit(f, static_argnums=0) for f in (deep_kernel_posterior, features))


def numpy_features(config, params, x, y, rows):
    if config.has_landmarks:
        unit = (y - y.min()) / (y.max() - y.min())
        inside = forward(params.deep_set, np.column_stack([x, unit]), "phi")
        context = forward(params.deep_set, inside.mean(axis=0), "rho")
        rows = np.column_stack([rows, np.tile(context, (len(rows), 1))])
    return forward(params.network, rows)


def sklearn_process(config, params, x, y):
    scale = np.exp(params.log_scale)
    length = float(np.exp(params.log_length)), "fixed"
    kernel = RBF(*length) if config.kernel == "squared_exponential" else Matern(*length, nu=2.5)
    kernel = ConstantKernel(float(scale), "fixed") * kernel
    process = GaussianProcessRegressor(kernel, alpha=float(scale * np.exp(params.log_noise)), optimizer=None)
    return process.fit(numpy_features(config, params, x, y, x), y - float(params.mean))


@pytest.mark.parametrize("name", CONFIGS)
def test_likelihood_and_posterior_are_scikit_learns(name):
    config, random = CONFIGS[name], np.random.default_rng(3)
    with jax.enable_x64(True):
        params = jax.tree.map(np.asarray, jax.jit(init, static_argnums=(0, 1))(config, D, jax.random.key(5)))
        params = jax.tree.map(lambda a: a + 0.1 * random.normal(size=a.shape), params)
        values = {"mean": 0.3, "log_length": -0.4, "log_scale": 0.7, "log_noise": -3.0}
        params = params._replace(**{name: np.full_like(params.mean, value) for name, value in values.items()})
        x, new = random.random((N, D)), random.random((NEW, D))
        y = np.sin(4.0 * x[:, 0]) + 0.1 * random.normal(size=N)
        x, y, where = in_slots(N + EMPTY, x, y, fill=np.nan, dtype=np.float64)
        # The posterior and `tune` clear empty slots themselves.
        support = Support(jnp.where(where[:, None], x, 0.0), jnp.where(where, y, 0.0), where)
        value = jax.jit(log_likelihood, static_argnums=0)(config, params, support, *support)
        mean, variance = jitted_posterior(config, params, x, y, where, new)
        params, x, y, new = jax.tree.map(np.asarray, (params, x[:N], y[:N], new))
    model = sklearn_process(config, params, x, y)
    their_mean, their_deviation = model.predict(numpy_features(config, params, x, y, new), return_std=True)
    np.testing.assert_allclose(value, model.log_marginal_likelihood_value_, rtol=1e-8)
    np.testing.assert_allclose(mean, params.mean + their_mean, rtol=1e-7)
    np.testing.assert_allclose(np.sqrt(variance), their_deviation, rtol=1e-6)


def test_random_networks_differ_and_keep_distances():
    config = DeepKernelConfig()
    keys = jax.random.split(jax.random.key(0), 2)
    x = jax.random.uniform(jax.random.key(1), (40, 8))
    nothing = Support(x, jnp.zeros(40), jnp.zeros(40, bool))
    z = [np.asarray(jitted_features(config, init(config, 8, key), nothing, x)) for key in keys]
    assert np.abs(z[0] - z[1]).max() > 0.1
    for one in z:
        distances = np.sqrt(((one[:, None] - one[None]) ** 2).sum(-1))
        # Neither all alike nor all unlike to a kernel of length scale one.
        assert 0.3 < np.median(distances[np.triu_indices(40, 1)]) < 4.0
