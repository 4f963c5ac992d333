"""Fits to the trials of a task, and the score of a fitted process, against scipy's t densities."""

import jax
import numpy as np

from dre_jax.gp.fitted_processes import fit_sequence, refit_sizes
from dre_jax.gp.task_processes import make_processes
from tests.gp.processes import (
    CAPACITY,
    CONFIG,
    FREEDOM,
    GENERIC,
    N_FITTED,
    log_density,
    trials_of,
    waves,
)

fitted = jax.jit(fit_sequence, static_argnums=(0, 4))


def test_the_score_of_a_fitted_process_is_its_predictive_density():
    """Each piece has the density that the fit before gives it: the fits are made again on the trials so far."""
    x, y = waves(17)
    starts = make_processes(CONFIG.initial_lengthscales, CONFIG, GENERIC)
    last = fitted(CONFIG.steps, starts, GENERIC, trials_of(x, y), FREEDOM)
    sizes = [size for _, stage in refit_sizes(17) for size in stage]
    expected, fit, done = np.zeros(N_FITTED), starts, 0
    for size in [*sizes, 17]:
        for i in range(N_FITTED):
            one = jax.tree.map(lambda a, i=i: a[i], fit)
            parts = [log_density(one, x[:n], y[:n]) for n in (size, done)]
            expected[i] += parts[0] - parts[1]
        fit, done = (
            fitted(CONFIG.steps, starts, GENERIC, trials_of(x[:size], y[:size]), FREEDOM).process,
            size,
        )
    final = [log_density(jax.tree.map(lambda a, i=i: a[i], fit), x, y) for i in range(N_FITTED)]
    np.testing.assert_allclose(last.gain, expected - final, atol=0.02)
    np.testing.assert_allclose(last.process.log_lengthscale, fit.log_lengthscale, rtol=1e-4)


def test_fits_find_which_column_counts():
    x, y = waves(CAPACITY)
    process = fitted(
        CONFIG.steps, make_processes(CONFIG.initial_lengthscales, CONFIG, GENERIC), GENERIC, trials_of(x, y), FREEDOM
    ).process
    lengths = np.exp(np.asarray(process.log_lengthscale))
    assert (lengths[:, 1] > 3.0 * lengths[:, 0]).all()
    assert (np.asarray(process.log_noise_var) < np.log(1e-2)).all()


def test_numbers_of_trials_at_which_processes_are_fitted_grow_by_a_share():
    for capacity in (4, 16, 192):
        stages = list(refit_sizes(capacity))
        sizes = [size for _, stage in stages for size in stage]
        assert sizes == sorted(set(sizes))
        assert sizes[0] == 4
        assert all(max(stage) <= most <= capacity for most, stage in stages)
    assert not list(refit_sizes(3))
