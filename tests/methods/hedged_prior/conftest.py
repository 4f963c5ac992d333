"""Learned priors computed in NumPy."""

import numpy as np
import pytest


def layers_of(tree):
    """Returns kernels and biases, the first layer first."""
    names = sorted({name.removesuffix("_kernel").removesuffix("_bias") for name in tree})
    return [[np.asarray(tree[f"{name}_{part}"], np.float64) for part in ("kernel", "bias")] for name in names]


def forward(layers, rows):
    """Returns the outputs of affine maps with a ReLU before each but the first."""
    for i, (kernel, bias) in enumerate(layers):
        rows = (np.maximum(rows, 0.0) if i else rows) @ kernel + bias
    return rows


def matern52(rows):
    r = np.sqrt(5.0) * np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


@pytest.fixture(scope="session")
def prior_in_numpy():
    """Returns a function that computes m, f[n], and the covariances of b, a m, g and f, four f[n, n].

    It takes a prior, configurations f64[n, D] and the number of first rows over which the trend is centred.
    """

    def parts(prior, x, n):
        log_vars = prior.log_slope_var, prior.log_feature_var, prior.log_ard_var
        slope_var, feature_var, ard_var = (np.exp(np.float64(a)) for a in log_vars)
        m = forward(layers_of(prior.trend), (x - 0.5) * np.sqrt(12.0))[:, 0]
        m = m - (m[:n].mean() if n else 0.0)
        of_features = matern52(forward(layers_of(prior.features), x))
        of_columns = matern52(x / np.exp(np.asarray(prior.log_lengthscale, np.float64)))
        return m, [
            np.ones((len(x), len(x))),
            slope_var * np.outer(m, m),
            feature_var * of_features,
            ard_var * of_columns,
        ]

    return parts
