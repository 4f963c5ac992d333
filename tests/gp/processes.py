"""Trials, the prior and the density of a process of the task, for its tests."""

import numpy as np
from scipy.stats import multivariate_t, zscore

from dre_jax.gp.length_scale_prior import generic_prior
from dre_jax.gp.task_processes import TaskProcessConfig
from tests.oracles import history_of, in_slots, kumaraswamy, matern52

COLUMNS, CAPACITY, FREEDOM = 2, 24, 5.0
CONFIG = TaskProcessConfig()
GENERIC = generic_prior(COLUMNS)
N_FIXED, N_FITTED = len(CONFIG.lengthscales), len(CONFIG.initial_lengthscales)


def waves(n, seed=0):
    """Returns standardised responses that depend on the first column alone."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, COLUMNS))
    return x, zscore(np.sin(9.0 * x[:, 0]))


def trials_of(x, y):
    x, y, where = in_slots(CAPACITY, x, y, fill=(0.7, 0.0))
    return history_of(x, y, where)


def log_density(process, x, y):
    """Returns the t log-density of the trials, with the constant that `dre_jax.gp.student` omits."""
    if len(y) == 0:
        return 0.0
    lengths = np.exp(np.asarray(process.log_lengthscale, np.float64))
    noise = np.exp(np.float64(process.log_noise_var))
    warped = kumaraswamy(x, *np.exp(np.asarray(process.log_warp, np.float64)))
    matrix = 1.0 + matern52(warped / lengths) + noise * np.eye(len(y))
    return multivariate_t(np.zeros(len(y)), matrix, df=FREEDOM).logpdf(y)
