"""The Gaussian process' acquisition by hand, and Metis' three proposals one by one."""

import jax
import numpy as np
import pytest
from scipy import stats

from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import gp_posterior
from dre_jax.gp.response_scale import standardise
from dre_jax.methods.baselines.gp import GaussianProcess
from dre_jax.methods.baselines.metis import Metis, good_over_bad, log_parzen
from dre_jax.search import make_history
from dre_jax.search.acquisition import RESOLUTION

FITTING = GPConfig(steps=60)
METIS = Metis(fitting=FITTING)
fit, predicted, standard = jax.jit(fit_gp, static_argnums=0), jax.jit(gp_posterior), jax.jit(standardise)
ratio_of, density = jax.jit(good_over_bad, static_argnums=0), jax.jit(log_parzen)
acquire = jax.jit(lambda method, *given: method.acquire(None, *given, jax.random.key(0)), static_argnums=0)


@pytest.fixture(scope="module")
def seen(hills, make_candidates):
    task = hills.test["new"]
    return make_history(task.X[10:20], task.y[10:20], capacity=14), make_candidates(task.X[20:60], empty=3)


def moments(history, x):
    y = standard(history.response, history.where).y
    process = fit(FITTING, history.x, y, history.where)
    mean, variance = predicted(process, history.x, y, history.where, x)
    return y, np.asarray(mean, np.float64), np.sqrt(np.asarray(variance, np.float64))


def test_augmented_expected_improvement_of_the_gaussian_process(seen):
    """By the textbook's formula, times the factor of Huang et al. (2006)."""
    history, candidates = seen
    y, mean, deviation = moments(history, candidates.x)
    z = (mean - np.max(y)) / deviation
    expected = deviation * (stats.norm.pdf(z) + z * stats.norm.cdf(z))
    process = fit(FITTING, history.x, y, history.where)
    noise = min(float(np.exp(0.5 * process.log_noise)), RESOLUTION)
    expected *= 1.0 - noise / np.hypot(deviation, noise)
    found = acquire(GaussianProcess(fitting=FITTING), history, candidates)
    np.testing.assert_allclose(np.exp(found), expected, rtol=2e-3, atol=1e-6)


def test_metis_takes_the_proposal_of_the_largest_gain(seen):
    history, candidates = seen
    values = np.asarray(acquire(METIS, history, candidates))
    _, mean, deviation = moments(history, candidates.x)
    real = np.asarray(candidates.where)
    fitted = moments(history, history.x)[1][:10]
    gain = mean + 2.326 * deviation - fitted.max()
    ratio = np.asarray(ratio_of(0.25, history, candidates.x))
    proposed = [np.flatnonzero(real)[np.argmax(a[real])] for a in (deviation, ratio)]
    (picked,) = np.flatnonzero(values)
    assert gain[picked] >= max(gain[i] for i in proposed) - 1e-4
    assert gain[picked] > 0


def test_metis_looks_around_an_outlier(make_candidates):
    # The trials but one lie on a plane; a candidate stands beside that one.
    x = np.random.default_rng(0).uniform(size=(14, 2)).astype(np.float32)
    y = x[:, 0].astype(np.float64)
    y[3] += 5.0
    beside = np.clip(x[3] + 0.01, 0, 1)
    candidates = make_candidates(np.stack([beside, x[5] + 0.001, x[6] + 0.001]), empty=40)
    assert np.flatnonzero(acquire(METIS, make_history(x, y), candidates)).tolist() == [0]


def test_metis_without_a_gain_is_random(make_candidates):
    # Candidates that were all tried before, far below the best: nothing to gain.
    x = np.linspace([0, 0.5], [1, 0.5], 12, dtype=np.float32)
    history = make_history(x, x[:, 0].astype(np.float64), capacity=14)
    assert not acquire(METIS, history, make_candidates(x[:3], empty=40)).any()


def test_good_and_bad_trials(seen):
    history, candidates = seen
    levels = np.asarray(history.level)[:10]
    good = np.argsort(levels, kind="stable")[:3]  # a quarter of ten, rounded up
    mask = np.isin(np.arange(14), good)
    bad = ~mask & np.asarray(history.where)
    expected = np.asarray(density(history.x, mask, candidates.x)) - density(history.x, bad, candidates.x)
    np.testing.assert_allclose(ratio_of(0.25, history, candidates.x), expected, atol=1e-5)
