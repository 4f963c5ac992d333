"""Processes of the task against a loop in NumPy and scipy's t densities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_t, zscore

from dre_jax.gp.length_scale_prior import GENERIC_LENGTHSCALE, generic_prior
from dre_jax.methods.hedged_prior.priors import Trials
from dre_jax.methods.hedged_prior.task_process import (
    TaskHyperpriors,
    TaskProcessConfig,
    condition_processes,
    fit_sequence,
    fixed_processes,
    log_shares,
    refit_sizes,
    start_processes,
)
from tests.oracles import in_slots, matern52

COLUMNS, CAPACITY, FREEDOM = 2, 24, 5.0
CONFIG = TaskProcessConfig()
GENERIC = generic_prior(COLUMNS)
HYPERPRIORS = TaskHyperpriors(GENERIC, GENERIC._replace(mean=jnp.log(jnp.array([0.2, 3.0]))))
N_FIXED, N_FITTED = len(CONFIG.lengthscales), len(CONFIG.initial_lengthscales) + 1
conditioned = jax.jit(condition_processes, static_argnums=(0, 3))
fitted = jax.jit(fit_sequence, static_argnums=(0, 4))


def waves(n, seed=0):
    """Returns standardised responses that depend on the first column alone, and an unrelated trend."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, COLUMNS))
    return x, 0.3 * rng.normal(size=n), zscore(np.sin(9.0 * x[:, 0]))


def trials_of(x, trend, y):
    x, trend, y, where = in_slots(CAPACITY, x, trend, y, fill=(0.7, 0.7, 0.0))
    return Trials(x, y, where, trend=trend)


def log_density(process, x, trend, y):
    """Returns the t log-density of the trials, with the constant that `dre_jax.gp.student` omits."""
    if len(y) == 0:
        return 0.0
    lengths = np.exp(np.asarray(process.log_lengthscale, np.float64))
    signal, noise = np.exp(np.float64(process.log_signal_var)), np.exp(np.float64(process.log_noise_var))
    slope = float(process.trend_weight)
    matrix = 1.0 + signal * matern52(x / lengths) + slope * 0.1 * np.outer(trend, trend) + noise * np.eye(len(y))
    return multivariate_t(slope * trend, matrix, df=FREEDOM).logpdf(y)


def test_the_processes_before_the_first_trial():
    fixed, (starts, priors) = fixed_processes(CONFIG, HYPERPRIORS), start_processes(CONFIG, HYPERPRIORS)
    lengths = np.outer(CONFIG.lengthscales, [np.sqrt(2.0)] * 2)
    np.testing.assert_allclose(np.exp(fixed.log_lengthscale), lengths, rtol=1e-5)
    np.testing.assert_allclose(np.exp(starts.log_lengthscale[-1]), [0.2, 3.0], rtol=1e-5)
    assert starts.trend_weight.tolist() == [0.0, 0.0, 1.0]
    np.testing.assert_allclose(priors.mean[0], np.log(GENERIC_LENGTHSCALE * np.sqrt(2.0)), rtol=1e-5)
    shares = np.exp(log_shares(CONFIG, jnp.dtype(jnp.float32)))
    assert shares.sum() == pytest.approx(1.0, abs=1e-6)
    assert shares[:N_FIXED].sum() == pytest.approx(1.0 - CONFIG.fitted_weight, abs=1e-6)


def test_the_score_of_a_fitted_process_is_its_predictive_density():
    """Each piece has the density that the fit before gives it: the fits are made again on the trials so far."""
    x, trend, y = waves(17)
    starts, priors = start_processes(CONFIG, HYPERPRIORS)
    last = conditioned(CONFIG, HYPERPRIORS, trials_of(x, trend, y), FREEDOM)
    sizes = [size for _, stage in refit_sizes(17) for size in stage]
    expected, fit, done = np.zeros(N_FITTED), starts, 0
    for size in [*sizes, 17]:
        for i in range(N_FITTED):
            one = jax.tree.map(lambda a, i=i: a[i], fit)
            parts = [log_density(one, x[:n], trend[:n], y[:n]) for n in (size, done)]
            expected[i] += parts[0] - parts[1]
        fit, done = fitted(CONFIG, starts, priors, trials_of(x[:size], trend[:size], y[:size]), FREEDOM).process, size
    differences = np.asarray(last.log_density)[N_FIXED:] - expected
    np.testing.assert_allclose(differences, np.full(N_FITTED, differences[0]), atol=0.02)
    np.testing.assert_allclose(last.process.log_lengthscale[N_FIXED:], fit.log_lengthscale, rtol=1e-4)


def test_fits_find_which_column_counts():
    x, trend, y = waves(CAPACITY)
    process = fitted(CONFIG, *start_processes(CONFIG, HYPERPRIORS), trials_of(x, trend, y), FREEDOM).process
    lengths = np.exp(np.asarray(process.log_lengthscale))
    assert (lengths[:, 1] > 3.0 * lengths[:, 0]).all()
    assert (np.asarray(process.log_noise_var) < np.log(1e-2)).all()
    assert process.log_signal_var[:2].tolist() == [0.0, 0.0]  # the unit of the scale


def test_numbers_of_trials_at_which_processes_are_fitted_grow_by_a_share():
    for capacity in (4, 16, 192):
        stages = list(refit_sizes(capacity))
        sizes = [size for _, stage in stages for size in stage]
        assert sizes == sorted(set(sizes))
        assert sizes[0] == 4
        assert all(max(stage) <= most <= capacity for most, stage in stages)
    assert not list(refit_sizes(3))
