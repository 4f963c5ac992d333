"""Trials, hyperpriors and the density of a process of the task, for its tests."""

import jax.numpy as jnp
import numpy as np
from scipy.stats import multivariate_t, zscore

from dre_jax.gp.length_scale_prior import generic_prior
from dre_jax.gp.task_process import TaskHyperpriors, Trials
from dre_jax.gp.task_processes import TaskProcessConfig
from tests.oracles import in_slots, kumaraswamy, matern52

COLUMNS, CAPACITY, FREEDOM = 2, 24, 5.0
CONFIG = TaskProcessConfig()
GENERIC = generic_prior(COLUMNS)
HYPERPRIORS = TaskHyperpriors(GENERIC, GENERIC._replace(mean=jnp.log(jnp.array([0.2, 3.0]))))
N_FIXED, N_FITTED = len(CONFIG.lengthscales), len(CONFIG.initial_lengthscales) + 1


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
    warped = kumaraswamy(x, *np.exp(np.asarray(process.log_warp, np.float64)))
    matrix = 1.0 + signal * matern52(warped / lengths) + slope * 0.1 * np.outer(trend, trend) + noise * np.eye(len(y))
    return multivariate_t(slope * trend, matrix, df=FREEDOM).logpdf(y)
