"""Learned priors before training and at their bounds; `test_hypotheses` has the covariance."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.regression import add_noise
from dre_jax.methods.hedged_prior.prior import (
    LearnedPriorConfig,
    centre,
    covariance,
    init,
    variance,
    view,
    within_bounds,
)

CONFIG = LearnedPriorConfig(trend=(8,), layers=(32, 32, 32, 32))
COLUMNS, ROWS = 8, 40
WHERE = np.arange(ROWS) < 30


@jax.jit
def seen(prior, x):
    """As the prior sees configurations, centred on the first ones, and the covariance."""
    at = view(CONFIG, prior, x)
    at = at._replace(trend=at.trend - centre(at.trend, WHERE))
    return at, covariance(at, at, prior), variance(at, prior)


@jax.jit
def bounded(prior, x):
    """The nearest prior with bounds kept, and the jitter of its covariance."""
    near = within_bounds(prior)
    at = view(CONFIG, near, x)
    matrix = add_noise(covariance(at, at, near), jnp.exp(near.noise), jnp.ones(ROWS, bool))
    return near, safe_cholesky(matrix)[1]


@pytest.fixture(scope="module")
def prior():
    return jax.jit(init, static_argnums=(0, 1))(CONFIG, COLUMNS, *jax.random.split(jax.random.key(0)))


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).random((ROWS, COLUMNS), np.float32)


def test_the_covariance_is_the_sum_of_its_parts(prior, x, prior_in_numpy):
    at, found, diagonal = seen(prior, x)
    m, parts = prior_in_numpy(prior, x.astype(np.float64), WHERE.sum())
    np.testing.assert_allclose(at.trend, m, atol=1e-5)
    np.testing.assert_allclose(found, sum(parts), atol=1e-5)
    np.testing.assert_allclose(diagonal, np.diag(sum(parts)), atol=1e-5)


def test_random_features_tell_configurations_apart(prior, x):
    """Neither all alike nor all unlike to a kernel of length scale one, and the columns neither."""
    at, _, _ = seen(prior, x)
    for z in (np.asarray(at.features), np.asarray(at.scaled)):
        distances = np.linalg.norm(z[:, None] - z[None], axis=-1)[np.triu_indices(ROWS, 1)]
        assert 0.3 < np.median(distances) < 4.0


def test_bounds_keep_a_covariance_that_can_be_factored(prior, x):
    for sign in (-1, 1):
        far = prior._replace(**{name: getattr(prior, name) + sign * 1e3 for name in prior._fields[2:]})
        assert float(bounded(far, x)[1]) == 0.0
    jax.tree.map(np.testing.assert_array_equal, bounded(prior, x)[0], prior)


def test_sizes_are_checked():
    for field, value in (("trend", ()), ("layers", (4, 0)), ("members", 0), ("freedom", 2.0)):
        with pytest.raises(ConfigError, match=field):
            LearnedPriorConfig(**{field: value})
