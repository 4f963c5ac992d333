"""Learned priors in NumPy."""

import numpy as np
import pytest


def layers_of(tree):
    """Kernels and biases, the first layer first."""
    names = sorted({name.removesuffix("_kernel").removesuffix("_bias") for name in tree})
    return [[np.asarray(tree[f"{name}_{part}"], np.float64) for part in ("kernel", "bias")] for name in names]


def forward(layers, rows):
    """Affine maps, with a ReLU in front of all but the first."""
    for i, (kernel, bias) in enumerate(layers):
        rows = (np.maximum(rows, 0.0) if i else rows) @ kernel + bias
    return rows


def matern52(rows):
    r = np.sqrt(5.0) * np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


@pytest.fixture(scope="session")
def prior_in_numpy():
    """The parts of a learned prior at configurations f64[n, D], from its equations: m f[n], and four f[n, n].

    Those are the covariances of b, a m, g and f, without changes; the trend is centred on the first so many rows.
    """

    def parts(prior, x, n):
        slope, deep, plain = (np.exp(np.float64(a)) for a in (prior.slope, prior.deep, prior.plain))
        m = forward(layers_of(prior.trend), (x - 0.5) * np.sqrt(12.0))[:, 0]
        m = m - (m[:n].mean() if n else 0.0)
        of_features = matern52(forward(layers_of(prior.features), x))
        of_columns = matern52(x / np.exp(np.asarray(prior.length, np.float64)))
        return m, [np.ones((len(x), len(x))), slope * np.outer(m, m), deep * of_features, plain * of_columns]

    return parts
