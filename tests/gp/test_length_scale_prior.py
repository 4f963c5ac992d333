"""Priors of length scales from tasks with known length scales, and against generic pseudo-tasks."""

import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import Task
from dre_jax.gp.length_scale_prior import (
    LengthScaleConfig,
    _update,
    fit_length_scale_prior,
    generic_prior,
)
from tests.oracles import matern52

LENGTHS, ROWS = np.array([0.2, 0.7, 5.0]), 40
CONFIG = LengthScaleConfig()


def draws(count, rows=ROWS, noise=0.05, seed=0, lengths=LENGTHS):
    """Samples tasks from a Gaussian process with these length scales; each has its own response scale."""
    rng, tasks = np.random.default_rng(seed), {}
    for i in range(count):
        x = rng.random((rows, 3)).astype(np.float32)
        root = np.linalg.cholesky(matern52(x / lengths) + 1e-9 * np.eye(rows))
        y = root @ rng.normal(size=rows) + noise * rng.normal(size=rows)
        tasks[str(i)] = Task(str(i), x, 10.0 ** rng.normal() * y + rng.normal())
    return tasks


@pytest.fixture(scope="module")
def tasks():
    return draws(12)


def test_length_scales_of_past_tasks_are_recovered(tasks):
    learned = fit_length_scale_prior(CONFIG, tasks, "standardised")
    mean, generic = np.asarray(learned.mean), float(generic_prior(3).mean[0])
    assert mean[0] + 0.3 < mean[1] < mean[2] - 0.3
    assert abs(mean[:2] - np.log(LENGTHS[:2])).max() < 0.5
    assert mean[2] > generic + 0.5  # an irrelevant column has a long length scale


def test_the_noise_of_past_tasks_is_learned():
    """The functions are smooth, because a short length scale can replace noise."""
    tasks = [draws(12, noise=noise, lengths=5.0 * LENGTHS) for noise in (0.02, 0.5)]
    little, much = (float(fit_length_scale_prior(CONFIG, one, "standardised").noise_mean) for one in tasks)
    assert little < much - 1.0


def test_a_column_that_a_task_does_not_vary_has_the_generic_prior(tasks):
    generic = generic_prior(3)
    fixed = {name: Task(name, task.X * np.float32([1, 0, 1]), task.y) for name, task in tasks.items()}
    some = {name: fixed[name] if i % 2 else task for i, (name, task) in enumerate(tasks.items())}
    none, half, full = (fit_length_scale_prior(CONFIG, one, "standardised") for one in (fixed, some, tasks))
    assert (none.mean[1], none.deviation[1]) == (generic.mean[1], generic.deviation[1])
    assert full.deviation[1] < half.deviation[1] < generic.deviation[1]


def test_generic_tasks_count_as_tasks():
    """Two generic tasks, one at either side of the generic mean, and past tasks with weights of whole numbers."""
    values, weight = np.array([[0.5, 1.0], [2.0, -1.0], [3.0, 0.0]]), np.array([[1.0], [2.0], [0.0]])
    mean, deviation = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    every = np.concatenate([[mean - deviation, mean + deviation], np.repeat(values, [1, 2, 0], axis=0)])
    moments = _update(2.0, values, mean, deviation, weight)
    np.testing.assert_allclose(moments, (every.mean(axis=0), every.std(axis=0)))


def test_empty_slots_and_equal_responses_do_not_change_the_prior(tasks):
    short = {"0": tasks["0"]}
    alone = fit_length_scale_prior(CONFIG, short, "standardised")
    padded = fit_length_scale_prior(
        CONFIG, {**short, "flat": Task("flat", np.zeros((60, 3), np.float32), np.ones(60))}, "standardised"
    )
    for a, b in zip(alone, padded, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    assert np.isfinite(jnp.concatenate([alone.mean, alone.deviation])).all()
    x = np.random.default_rng(0).random((ROWS, 3), np.float32)
    prior, generic = (
        fit_length_scale_prior(CONFIG, {"flat": Task("flat", x, np.ones(ROWS))}, "standardised"),
        generic_prior(3),
    )
    for a, b in zip(prior, generic, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
