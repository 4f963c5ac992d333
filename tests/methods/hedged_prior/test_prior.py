"""Learned priors: the covariance against NumPy, the initial features, and the bounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.regression import add_noise
from dre_jax.methods.hedged_prior.prior import (
    LearnedPriorConfig,
    clip_prior,
    compute_features,
    init,
    masked_mean,
    prior_covariance,
    prior_variance,
)

CONFIG = LearnedPriorConfig(trend=(8,), layers=(32, 32, 32, 32))
COLUMNS, ROWS = 8, 40
WHERE = np.arange(ROWS) < 30


@jax.jit
def features_and_moments(prior, x):
    """Returns features whose trend is centred on the first rows, the covariance, and its diagonal."""
    at = compute_features(CONFIG, prior, x)
    at = at._replace(trend=at.trend - masked_mean(at.trend, WHERE))
    return at, prior_covariance(at, at, prior), prior_variance(at, prior)


@jax.jit
def clip_and_factorise(prior, x):
    """Returns the clipped prior and the jitter of its covariance."""
    clipped = clip_prior(prior)
    at = compute_features(CONFIG, clipped, x)
    matrix = add_noise(prior_covariance(at, at, clipped), jnp.exp(clipped.log_noise_var), jnp.ones(ROWS, bool))
    return clipped, safe_cholesky(matrix)[1]


@pytest.fixture(scope="module")
def prior():
    return jax.jit(init, static_argnums=(0, 1))(CONFIG, COLUMNS, *jax.random.split(jax.random.key(0)))


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)


def test_covariance_is_the_sum_of_its_parts(prior, x, prior_in_numpy):
    at, matrix, diagonal = features_and_moments(prior, x)
    m, parts = prior_in_numpy(prior, x.astype(np.float64), WHERE.sum())
    np.testing.assert_allclose(at.trend, m, atol=1e-5)
    np.testing.assert_allclose(matrix, sum(parts), atol=1e-5)
    np.testing.assert_allclose(diagonal, np.diag(sum(parts)), atol=1e-5)


def test_random_features_separate_configurations(prior, x):
    """The median distance of features and of scaled columns suits a kernel of length scale one."""
    at, _, _ = features_and_moments(prior, x)
    for z in (np.asarray(at.features), np.asarray(at.scaled_columns)):
        distances = np.linalg.norm(z[:, None] - z[None], axis=-1)[np.triu_indices(ROWS, 1)]
        assert 0.3 < np.median(distances) < 4.0


def test_clipped_priors_have_covariances_that_need_no_jitter(prior, x):
    for sign in (-1, 1):
        far = prior._replace(**{name: getattr(prior, name) + sign * 1e3 for name in prior._fields[2:]})
        assert float(clip_and_factorise(far, x)[1]) == 0.0
    jax.tree.map(np.testing.assert_array_equal, clip_and_factorise(prior, x)[0], prior)


def test_sizes_are_checked():
    for field, value in (("trend", ()), ("layers", (4, 0)), ("members", 0), ("degrees_of_freedom", 2.0)):
        with pytest.raises(ConfigError, match=field):
            LearnedPriorConfig(**{field: value})
