"""Metis' three proposals one by one, and its Parzen densities against scikit-learn."""

import jax
import numpy as np
import pytest

from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import gp_posterior
from dre_jax.gp.response_scale import standardise
from dre_jax.methods.baselines.metis import Metis, bandwidths, good_over_bad, log_parzen
from dre_jax.search import make_history

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_parzen_is_scikit_learns_with_a_uniform_component():
    from sklearn.neighbors import KernelDensity

    rng = np.random.default_rng(2)
    x, new = rng.uniform(size=(7, 1)), rng.uniform(size=(5, 1))
    where = np.array([True] * 6 + [False])
    trials, candidates = x.astype(np.float32), new.astype(np.float32)
    width = float(np.asarray(jax.jit(bandwidths)(trials, where))[0])
    assert width == pytest.approx(x[:6].std() * 6 ** (-1 / 5), rel=1e-5)
    kernels = KernelDensity(bandwidth=width).fit(x[:6]).score_samples(new)
    expected = np.log((6 * np.exp(kernels) + 1.0) / 7)
    np.testing.assert_allclose(density(trials, where, candidates), expected, atol=1e-5)
    np.testing.assert_array_equal(density(trials, np.zeros(7, bool), candidates), 0.0)
