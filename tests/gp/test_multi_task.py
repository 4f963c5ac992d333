"""The multi-task process of tasks with features against NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dre_jax.gp.length_scale_prior import generic_prior
from dre_jax.gp.multi_task import FeatureParams, MultiTaskParams, MultiTaskTrials, fit_multi_task, refit_slopes
from tests.oracles import matern52

SLOPES, LENGTHS = np.array([[0.3, -0.1], [0.0, 0.2], [0.1, 0.0]]), np.array([1.0, 0.5])
PARAMS = MultiTaskParams(
    np.array([-1.0, 0.2, -0.4]),
    np.array([0.1, -0.7, 0.3]),
    np.array(-0.5),
    np.array(-1.5),
    np.array(-3.0),
    FeatureParams(SLOPES, LENGTHS),
)


def trials_of(n_tasks, rows, seed=0):
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), rows)
    features = rng.normal(size=(n_tasks, 2))[task]
    return MultiTaskTrials(rng.random((len(task), 3)), rng.normal(size=len(task)), task, features)


def float32(tree):
    return jax.tree.map(lambda a: jnp.asarray(a, jnp.int32 if np.asarray(a).dtype.kind == "i" else jnp.float32), tree)


def expected_covariance(trials):
    """Returns the covariance of the responses, one pair after the other."""
    common = (trials.x - trials.features @ SLOPES.T) / np.exp(PARAMS.log_common_lengthscale)
    common = np.concatenate([common, trials.features / np.exp(LENGTHS)], axis=1)
    covariance = np.exp(PARAMS.log_common_var) * matern52(common)
    same = trials.task[:, None] == trials.task
    own = matern52(trials.x / np.exp(PARAMS.log_own_lengthscale))
    covariance += same * (1.0 + np.exp(PARAMS.log_own_var) * own)
    return covariance + np.exp(PARAMS.log_noise_var) * np.eye(len(trials.y))


def test_density_is_that_of_configurations_that_move_with_the_features():
    trials = trials_of(4, 5)
    expected = multivariate_normal(cov=expected_covariance(trials)).logpdf(trials.y)
    assert float(float32(PARAMS).log_density(float32(trials))) == pytest.approx(expected, rel=1e-4)


def test_empty_slots_change_nothing():
    trials, params = trials_of(4, 5), float32(PARAMS)
    task = np.where(trials.task == 3, -1, trials.task)
    first = MultiTaskTrials(*(a[:15] for a in trials))
    densities = [params.log_density(float32(some)) for some in (trials._replace(task=task), first)]
    np.testing.assert_allclose(*densities, rtol=1e-5)


def moving_peaks(seed=0, noise=0.05):
    """Returns trials of eight tasks whose peak moves by 0.2 in the first column for one standard deviation."""
    rng = np.random.default_rng(seed)
    feature = np.linspace(-1.5, 1.5, 8)
    task = np.repeat(np.arange(8), 12)
    x = rng.random((len(task), 2))
    y = -((x[:, 0] - 0.5 - 0.2 * feature[task]) ** 2) - 0.3 * (x[:, 1] - 0.4) ** 2
    y += noise * y.std() * rng.normal(size=len(y))
    for i in range(8):
        y[task == i] = (y[task == i] - y[task == i].mean()) / y[task == i].std()
    return float32(MultiTaskTrials(x, y, task, feature[task][:, None]))


@pytest.fixture(scope="module")
def moving():
    return fit_multi_task(40, moving_peaks(), generic_prior(2), jnp.full((2, 1), 0.01, jnp.float32))


def test_slopes_are_those_of_the_peak(moving):
    np.testing.assert_allclose(moving.by_features.slopes[:, 0], [0.2, 0.0], atol=0.06)


def test_refit_of_the_slopes_changes_nothing_else(moving):
    trials = moving_peaks()
    some = trials._replace(task=jnp.where(trials.task < 2, -1, trials.task))
    refitted = refit_slopes(20, moving, some, jnp.float32([[0.01], [0.0]]))
    np.testing.assert_allclose(refitted.by_features.slopes[:, 0], [0.2, 0.0], atol=0.06)
    assert refitted.by_features.slopes[1, 0] == 0.0, "columns with a first slope of zero do not move"
    jax.tree.map(np.testing.assert_array_equal, refitted[:5], moving[:5])
