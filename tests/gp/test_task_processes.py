"""All processes of the task and their weights, against scipy's t densities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

from dre_jax.gp.task_processes import TaskProcessConfig, condition_processes, fixed_processes
from tests.gp.processes import (
    CAPACITY,
    CONFIG,
    FREEDOM,
    GENERIC,
    N_FITTED,
    N_FIXED,
    log_density,
    trials_of,
    waves,
)

conditioned = jax.jit(condition_processes, static_argnums=(0, 3))


def test_the_processes_before_the_first_trial():
    fixed = fixed_processes(CONFIG, GENERIC)
    lengths = np.outer(CONFIG.lengthscales, [np.sqrt(2.0)] * 2)
    np.testing.assert_allclose(np.exp(fixed.log_lengthscale), lengths, rtol=1e-5)


@pytest.mark.parametrize("n", [0, 9])
def test_equal_responses_leave_each_group_its_weight(n):
    x = waves(n, 3)[0] if n else np.zeros((0, 2))
    weight = np.exp(conditioned(CONFIG, GENERIC, trials_of(x, np.zeros(n)), FREEDOM).log_weight)
    groups = np.split(weight, [N_FIXED, N_FIXED + N_FITTED])
    assert [float(group.sum()) for group in groups] == pytest.approx([0.25, 0.25, 0.5], rel=1e-5)


@pytest.mark.slow
def test_the_weight_of_the_drawn_processes_is_that_of_all_draws():
    """Few of them predict, in place of all."""
    x, y = waves(15, 1)
    trials = trials_of(x, y)
    few, all_ = (conditioned(TaskProcessConfig(draws=32, selected=size), GENERIC, trials, FREEDOM) for size in (4, 32))
    drawn = slice(N_FIXED + N_FITTED, None)
    np.testing.assert_allclose(logsumexp(few.log_weight[drawn]), logsumexp(all_.log_weight[drawn]), rtol=1e-5)
    np.testing.assert_allclose(few.log_weight[: drawn.start], all_.log_weight[: drawn.start], rtol=1e-5)
    densities = [
        log_density(jax.tree.map(lambda a, i=i: a[i], all_.posterior.process), x, y)
        for i in [0, *range(drawn.start, drawn.start + 4)]
    ]
    # Weights are proportional to shares and densities; scipy's have a constant that the library omits.
    expected = np.array(densities) + np.log([0.25 / N_FIXED, *[0.5 / 32] * 4])
    differences = np.asarray(all_.log_weight)[[0, *range(drawn.start, drawn.start + 4)]] - expected
    np.testing.assert_allclose(differences, differences[0], atol=0.02)


def test_padded_columns_change_nothing():
    x, y = waves(CAPACITY, 2)
    config = TaskProcessConfig(steps=0)
    narrow = conditioned(config, GENERIC, trials_of(x, y), FREEDOM)
    padded = trials_of(np.pad(x, ((0, 0), (0, 3))), y)
    wide = conditioned(config, GENERIC.pad_columns(5), padded, FREEDOM)
    np.testing.assert_allclose(wide.log_weight, narrow.log_weight, atol=0.02)  # rounding, with little noise
    new = jnp.asarray(np.random.default_rng(0).random((7, 2)), jnp.float32)
    predict = jax.jit(jax.vmap(lambda one, trials, rows: one.predict(trials, rows), (0, None, None)))
    moments = [
        predict(result.posterior, trials, rows)
        for result, rows, trials in (
            (narrow, new, trials_of(x, y)),
            (wide, jnp.pad(new, ((0, 0), (0, 3))), padded),
        )
    ]
    for a, b in zip(*moments, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-3)
