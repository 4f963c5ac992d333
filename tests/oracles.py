"""Formulas in NumPy and SciPy, written from their definitions, with which several tests compare the library."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import erfcx
from scipy.stats import norm, zscore
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from dre_jax.search.acquisition import RESOLUTION
from dre_jax.search.history import History


def in_slots(capacity, *arrays, fill=7.0, dtype=np.float32):
    """Returns arrays of n rows, padded to a capacity with a number (or one number each), and the mask of the n rows."""
    n, fills = len(arrays[0]), fill if isinstance(fill, tuple) else [fill] * len(arrays)
    padded = [
        np.pad(a, ((0, capacity - n), *[(0, 0)] * (np.ndim(a) - 1)), constant_values=number)
        for a, number in zip(arrays, fills, strict=True)
    ]
    return *(jnp.asarray(a, dtype) for a in padded), jnp.arange(capacity) < n


def history_of(x, y, where, noise_var=None):
    """Returns trials in slots, with responses of any scale, as a history."""
    level = jnp.sum(where[None, :] & (y[None, :] > y[:, None]), axis=1, dtype=jnp.int32)
    return History(x, y, level, where, noise_var)


def compressed_scores(y):
    """Returns the z-scores of numbers, those below the median after a logarithm in units of the better half."""
    deviation = np.asarray(y, np.float64) - np.median(y)
    better, worse = deviation[deviation > 0], deviation[deviation < 0]
    unit = np.sqrt(np.mean((better if len(better) else worse) ** 2))
    return zscore([-unit * np.log(1 - d / unit) if d < 0 else d for d in deviation])


def widen(tree):
    """Returns a tree with its arrays of float32 in float64."""
    return jax.tree.map(lambda a: a.astype(jnp.float64) if a.dtype == jnp.float32 else a, tree)


def matern52(a, b=None):
    """Returns the Matérn kernel with nu = 5/2 between rows, which are divided by their length scales already."""
    r = np.sqrt(5.0) * np.linalg.norm(a[:, None] - (a if b is None else b)[None], axis=-1)
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def kumaraswamy(x, a, b):
    """Returns the distribution function of Kumaraswamy's distribution."""
    return 1.0 - (1.0 - np.asarray(x, np.float64) ** a) ** b


def fitted_process(params, x, y):
    """Returns scikit-learn's Gaussian process with a Matérn kernel with nu = 5/2, these hyperparameters and trials."""
    length, scale, noise = (np.exp(np.float64(a)) for a in (params.log_length, params.log_scale, params.log_noise))
    kernel = ConstantKernel(float(scale)) * Matern(length, nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=float(noise), optimizer=None).fit(x, y)


def forward(params, rows, prefix="", activation=lambda a: np.maximum(a, 0.0)):
    """Returns the outputs of the layers whose names begin so: affine maps, with the activation between them."""
    names = sorted(name.removesuffix("_bias") for name in params if name.startswith(prefix) and name.endswith("_bias"))
    for i, name in enumerate(names):
        kernel, bias = (np.asarray(params[f"{name}_{part}"], np.float64) for part in ("kernel", "bias"))
        rows = (activation(rows) if i else rows) @ kernel + bias
    return rows


def log_improvement(mean, deviation, best):
    """Returns the logarithm of the expected improvement over the best value, however far below it the mean is."""
    z = (mean - best) / deviation
    left, right = np.minimum(z, -1.0), np.maximum(z, -1.0)
    far = norm.logpdf(left) + np.log1p(left * np.sqrt(np.pi / 2.0) * erfcx(-left / np.sqrt(2.0)))
    near = np.log(norm.pdf(right) + right * norm.cdf(right))
    return np.log(deviation) + np.where(z < -1.0, far, near)


def log_augmented_improvement(mean, deviation, best, noise):
    """Returns the logarithm of the improvement times 1 - noise / total deviation (Huang et al. 2006, equation 11)."""
    noise = np.minimum(noise, RESOLUTION)
    total = np.hypot(deviation, noise)
    factor = 2.0 * np.log(deviation) - np.log(total) - np.log(total + noise)  # in which nothing cancels
    return log_improvement(mean, deviation, best) + factor


def learned_prior(prior, x, n):
    """Returns a learned prior's trend, centred on the first n rows, and the covariances of b, a m, g and f."""
    slope_var, feature_var, ard_var = (
        np.exp(np.float64(a)) for a in (prior.log_slope_var, prior.log_feature_var, prior.log_ard_var)
    )
    m = forward(prior.trend, (x - 0.5) * np.sqrt(12.0))[:, 0]
    m = m - (m[:n].mean() if n else 0.0)
    of_features = matern52(forward(prior.features, x))
    of_columns = matern52(x / np.exp(np.asarray(prior.log_lengthscale, np.float64)))
    return m, [np.ones((len(x), len(x))), slope_var * np.outer(m, m), feature_var * of_features, ard_var * of_columns]
