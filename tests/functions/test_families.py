"""Test functions against their published optima."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.functions.families import FAMILIES, SPREAD_POINTS

LEAST = {  # as published
    "branin": 0.397887,
    "hartmann-3": -3.86278,
    "hartmann-6": -3.32237,
    "ackley-5": 0.0,
    "ackley-20": 0.0,
    "rosenbrock-4": 0.0,
    "levy-6": 0.0,
    "griewank-5": 0.0,
    "styblinski-tang-8": 8 * -39.16617,
    "bowl-3": 0.0,
}


def in_double(family, x):
    """Values of the formula at points f64[n, D] of its own box."""
    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(family.formula))(np.asarray(x, np.float64)))


@pytest.mark.parametrize("name", LEAST)
def test_a_task_is_scaled_by_the_published_optimum_of_its_function(name):
    """Which searches from many points miss in twenty columns, and among many local optima."""
    family, least, rng = FAMILIES[name], LEAST[name], np.random.default_rng(0)
    at = np.broadcast_to(family.minimiser, family.n_columns)
    near = np.vstack([at, at + 0.01 * rng.normal(size=(50, family.n_columns))])
    assert in_double(family, near)[0] == pytest.approx(least, abs=1e-4)
    assert (in_double(family, near) > least - 1e-4).all()
    task, turned = (family.draw(np.random.default_rng(1), reverse=reverse, refine=False) for reverse in (False, True))
    points = np.random.default_rng(0).random((SPREAD_POINTS, family.n_columns))
    shift = np.random.default_rng(1).uniform(-family.shift, family.shift, family.n_columns)
    low, high = np.asarray(family.low), np.asarray(family.high)
    values = in_double(family, low + (high - low) * (points + shift))
    expected = (values - least) / (np.median(values) - least)
    if name != "bowl-3":  # whose optimum may lie outside
        np.testing.assert_allclose(
            (family.losses(task, points) - task.least) / task.spread, expected, rtol=1e-4, atol=1e-4
        )
    assert np.corrcoef(family.losses(turned, points), values)[0, 1] < -0.999


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("branin", (0.0, 0.0), 56.0 - 1.25 / np.pi),
        ("ackley-5", (3.0,) * 5, 20.0 - 20.0 * np.exp(-0.6)),
        ("rosenbrock-4", (-1.0,) * 4, 3 * (100.0 * 4.0 + 4.0)),
        ("levy-6", (-3.0,) * 6, 5 * (1.0 + 10.0 * np.sin(1.0) ** 2) + 1.0),
        ("griewank-5", (0.0, np.pi * 2**0.5, 0.0, 0.0, 0.0), np.pi**2 / 2000.0 + 2.0),
        ("styblinski-tang-8", (-1.0,) * 8, -80.0),
        ("bowl-3", (3.0,) * 3, 9.0 * 1.39),
    ],
)
def test_formulas_away_from_the_optimum(name, x, expected):
    """Worked out by hand from the published formulas, where squares are not doubles."""
    assert in_double(FAMILIES[name], [x])[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["hartmann-6", "mixed-5"])
def test_searches_find_an_optimum_that_none_of_many_points_beats(name):
    family = FAMILIES[name]
    task = family.draw(np.random.default_rng(3))
    losses = family.losses(task, np.random.default_rng(4).random((4096, family.n_columns)))
    assert (losses >= task.least).all()
    assert np.median(family.regret(task, losses)) == pytest.approx(1.0, abs=0.1)


def test_the_optimum_of_whole_numbers_and_choices_is_attained():
    """Nearer and nearer to the best of random points, of which all have a whole number and a choice."""
    family, rng = FAMILIES["mixed-5"], np.random.default_rng(0)
    task = family.draw(np.random.default_rng(3))
    best, least = 0.5, np.inf
    for radius in 0.1 ** np.arange(6):
        points = np.clip(best + radius * rng.uniform(-1.0, 1.0, (4096, family.n_columns)), 0.0, 1.0)
        losses = family.losses(task, points)
        if losses.min() < least:
            best, least = points[losses.argmin()], losses.min()
    assert (least - task.least) / task.spread == pytest.approx(0.0, abs=1e-6)


def test_hyperparameters_have_the_loss_of_their_point():
    """A whole number, a choice, and a number that is not active: 0.5 takes its place."""
    family, random = FAMILIES["mixed-5"], np.random.default_rng(0)
    task = family.draw(random, refine=False)
    params = family.space.params(np.array([0.2, 0.9, 0.1, 0.7, 0.3]))
    choices = {"x2": jnp.int32("abc".index(params["x2"])), "x3": jnp.int32(params["x3"]), "x4": jnp.float32(0.9)}
    of_params = family.loss(jax.tree.map(jnp.float32, task), {"x0": jnp.float32(0.2), "x1": jnp.float32(0.9)} | choices)
    (expected,) = family.losses(task, family.space.point(params)[None])
    assert of_params == pytest.approx(expected, rel=1e-5)


def test_noise_is_that_of_the_family():
    family = FAMILIES["branin-noisy"]
    task = jax.tree.map(jnp.float32, family.draw(np.random.default_rng(0), refine=False))
    at = jnp.array([0.3, 0.4])
    noisy = jax.vmap(lambda key: family.loss(task, at, key))(jax.random.split(jax.random.key(0), 2000))
    assert np.std(noisy - family.loss(task, at)) / task.spread == pytest.approx(0.1, rel=0.1)
