"""Projected BFGS against scipy's L-BFGS-B."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from dre_jax.optim.quasi_newton import maximise_in_box

LOW, HIGH, STARTS = -1.0, 0.8, np.random.default_rng(0).uniform(-1.0, 0.8, (5, 4))


def valley(x):
    """Rosenbrock's function, turned over: its maximum lies outside the box."""
    return -jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def search(function, start, steps=120, movable=None):
    """Points, their values, and those of the starts."""
    with jax.enable_x64(True):
        value_and_gradient = jax.vmap(jax.value_and_grad(function))
        box = jnp.full(start.shape[1], LOW), jnp.full(start.shape[1], HIGH)

        @jax.jit
        def run(start):
            limits = {"steps": steps, "reach": 1.0, "tolerance": 1e-10}
            return maximise_in_box(value_and_gradient, start, *box, movable=movable, **limits)

        return [np.asarray(result) for result in run(jnp.asarray(start))]


def test_maxima_are_those_of_scipy():
    """It has two in the box; which of them a search climbs is its own affair."""
    points, values, _ = search(valley, STARTS)
    with jax.enable_x64(True):
        slope = jax.jit(jax.value_and_grad(lambda x: -valley(x)))
        box = {"jac": True, "bounds": [(LOW, HIGH)] * 4}
        peers = [minimize(lambda x: [np.asarray(a) for a in slope(x)], start, **box) for start in STARTS]
    assert values.max() == pytest.approx(-min(peer.fun for peer in peers), rel=1e-6)
    for point, value in zip(points, values, strict=True):
        peer = min(peers, key=lambda peer, point=point: np.abs(peer.x - point).max())
        assert value == pytest.approx(-peer.fun, rel=1e-4)
        np.testing.assert_allclose(point, peer.x, atol=5e-3)


def test_a_point_is_never_worse_than_its_start():
    result = [search(valley, STARTS, steps) for steps in (0, 3)]
    with jax.enable_x64(True):
        starts = jax.vmap(valley)(jnp.asarray(STARTS))
    for values in (result[0][1], result[0][2], result[1][2]):
        np.testing.assert_allclose(values, np.asarray(starts))
    assert (result[1][1] > np.asarray(starts)).all()


def test_coordinates_that_may_not_move_stay():
    movable = np.arange(4)[None, :] % 2 == np.arange(5)[:, None] % 2
    points, *_ = search(valley, STARTS, movable=movable)
    np.testing.assert_array_equal(points == STARTS, ~movable)


@pytest.mark.parametrize("function", [lambda x: jnp.sum(jnp.log(x)), lambda x: -jnp.sum(jnp.sqrt(jnp.abs(x)))])
def test_points_without_finite_values_are_avoided(function):
    """No values where x < 0, and no slope at 0."""
    points, values, _ = search(function, np.array([[0.5, 0.2], [0.0, 0.0], [-0.5, 0.1]]))
    assert ((points >= LOW) & (points <= HIGH)).all()
    assert np.isfinite(points).all()
    assert values[0] >= function(jnp.array([0.5, 0.2]))
    np.testing.assert_array_equal(points[1], 0.0)
