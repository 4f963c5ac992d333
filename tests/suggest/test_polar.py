"""Improvements along rays against Monte Carlo, exact boxes and inclusion-exclusion."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from hypothesis import given, settings
from hypothesis import strategies as st

from dre_jax.search.history import Components
from dre_jax.suggest import hypervolume as hv
from dre_jax.suggest import polar

SLOTS = 8
"""Points of a front; all tests of one number of objectives share programs."""


@jax.jit
def log_improvement(thresholds, where, parts):
    return polar.log_polar_improvement(polar.rays_beyond(thresholds, where), parts)


def improvement(front, reference, log_weight, mean, deviation, top=1.0):
    """Expected improvements f64[N] in float64; mean and deviation are f64[M, N, K], log_weight f64[K]."""
    n, m = front.shape
    points = np.vstack([front, np.full((SLOTS - n, m), 9.0)])  # empty slots with values that would count
    thresholds = np.vstack([reference, np.broadcast_to(top, m), points]).T
    with jax.enable_x64(True):
        parts = [Components(*map(jnp.asarray, (log_weight, *two))) for two in zip(mean, deviation, strict=True)]
        return np.asarray(jnp.exp(log_improvement(jnp.asarray(thresholds), jnp.arange(SLOTS) < n, parts)))


def union(values, reference):
    """The volume of a union of boxes by inclusion and exclusion."""
    sets = itertools.chain.from_iterable(itertools.combinations(values, k + 1) for k in range(len(values)))
    return sum((-1) ** (len(boxes) + 1) * np.prod(np.maximum(np.min(boxes, 0) - reference, 0.0)) for boxes in sets)


def front_of(rng, n, m):
    """Points of the positive part of a sphere, none of which dominates another."""
    values = np.abs(rng.normal(size=(n, m)))
    return values / np.linalg.norm(values, axis=1, keepdims=True)


NO_WEIGHT = np.zeros(1)


@pytest.mark.parametrize("m", [4, 6])
@pytest.mark.slow
def test_the_improvement_is_the_mean_over_draws(m):
    """Of mixtures of two Gaussians."""
    rng = np.random.default_rng(m)
    front, reference = front_of(rng, 5, m), np.full(m, -0.1)
    mean, deviation = rng.uniform(0.2, 0.8, (m, 4, 2)), rng.uniform(0.05, 0.4, (m, 4, 2))
    weight = np.array([0.3, 0.7])
    values = improvement(front, reference, np.log(weight), mean, deviation)
    before = union(front, reference)
    for i in range(4):
        k = rng.choice(2, (1500, m), p=weight)
        draws = rng.normal(mean[range(m), i, k], deviation[range(m), i, k])
        gains = [union(np.vstack([front, y]), reference) - before for y in draws]
        assert values[i] == pytest.approx(np.mean(gains), rel=0.06, abs=4 * np.std(gains) / len(gains) ** 0.5)


@pytest.mark.parametrize("n", [1, 8])
def test_the_improvement_is_that_of_the_boxes(n):
    """The boxes of three objectives; the best candidate is among the best, and their order is the same."""
    rng = np.random.default_rng(n)
    front, reference, mean = front_of(rng, n, 3), np.array([-0.1, 0.0, -0.4]), rng.uniform(0.1, 1.1, (3, 64, 1))
    deviation = np.exp(rng.uniform(-4.0, 0.0, mean.shape))
    boxes = hv.decompose(front, np.ones(n, bool), reference)
    with jax.enable_x64(True):
        parts = [Components(*map(jnp.asarray, (NO_WEIGHT, *two))) for two in zip(mean, deviation, strict=True)]
        excess = jnp.stack(list(map(hv.log_expected_excess, parts, boxes.thresholds)))
        exact = np.exp(hv.log_hypervolume_improvement(boxes, excess))
    values = improvement(front, reference, NO_WEIGHT, mean, deviation)
    best = np.argsort(-exact)[:32]
    np.testing.assert_allclose(values[best], exact[best], rtol=0.2)
    assert exact[values.argmax()] > 0.98 * exact.max()
    assert np.corrcoef(np.argsort(np.argsort(values)), np.argsort(np.argsort(exact)))[0, 1] > 0.98


def test_values_that_are_known_gain_a_difference_of_volumes():
    """Of one that is much better, one that dominates no point, and a point of the front, which gains nothing."""
    rng = np.random.default_rng(2)
    front, reference = front_of(rng, 6, 4), np.full(4, -0.1)
    known = np.stack([np.full(4, 0.7), front[1] + np.array([0.3, -0.2, 0.0, 0.0]), front[2]])
    mean = known.T[:, :, None]
    values = improvement(front, reference, NO_WEIGHT, mean, np.full_like(mean, 1e-12))
    gains = [union(np.vstack([front, y]), reference) - union(front, reference) for y in known]
    np.testing.assert_allclose(values[:2], gains[:2], rtol=0.15)
    assert values[2] < 2e-3 * union(front, reference)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, SLOTS - 1), st.floats(0.01, 100.0), st.integers(0, 3))
def test_units_do_not_matter_and_fewer_points_leave_more(seed, n, unit, objective):
    """An improvement is in the units of the objectives, is larger for a better mean, and beside fewer points."""
    rng = np.random.default_rng(seed)
    front, reference = front_of(rng, n + 1, 4), rng.uniform(-0.5, 0.0, 4)
    mean, deviation = rng.uniform(0.0, 1.2, (4, 2, 1)), rng.uniform(0.01, 0.5, (4, 1, 1)).repeat(2, axis=1)
    mean[:, 1] = mean[:, 0]
    mean[objective, 1] += 0.2
    values = improvement(front, reference, NO_WEIGHT, mean, deviation)
    units = np.where(np.arange(4) == objective, unit, 1.0)
    scaled = (each * units[:, None, None] for each in (mean, deviation))
    shifted = improvement(front * units, reference * units, NO_WEIGHT, *scaled, top=units)
    np.testing.assert_allclose(shifted, unit * values, rtol=1e-9)
    assert np.all(values > 0.0)
    assert values[1] > 0.99 * values[0]
    beside_fewer = improvement(front[:n], reference, NO_WEIGHT, mean, deviation)
    assert np.all(beside_fewer > 0.9 * values)  # an integral is off by some hundredths


def test_far_candidates_have_finite_values_and_gradients():
    """Small deviations and means far below the front, where improvements underflow; in float32."""
    front = jnp.asarray(front_of(np.random.default_rng(0), 5, 4), jnp.float32)
    thresholds = jnp.vstack([jnp.full((1, 4), -0.1), jnp.full((1, 4), 1.0), front]).T

    def value(mean, deviation):
        parts = [Components(jnp.zeros(1), mean[:, None], deviation[:, None])] * 4
        values = polar.log_polar_improvement(polar.rays_beyond(thresholds, jnp.ones(5, bool)), parts)
        return values.sum(), values

    value_and_gradients = jax.jit(jax.value_and_grad(value, (0, 1), has_aux=True))
    for deviation in (1e-5, 1e-3, 10.0):
        mean = jnp.array([-20.0, -2.0, 0.3, 0.5, 30.0])
        (_, values), gradients = value_and_gradients(mean, jnp.full(5, deviation))
        assert jnp.isfinite(values).all()
        assert all(jnp.isfinite(g).all() for g in gradients)
        assert jnp.all(jnp.diff(values) > 0.0)
        assert jnp.all(gradients[0] > 0.0)


def test_the_survival_is_that_of_a_gaussian():
    z = np.linspace(-40.0, 40.0, 4001)[None]
    mantissa, depth = map(np.asarray, jax.jit(polar._survival)(jnp.asarray(z, jnp.float32)))
    np.testing.assert_allclose(np.log(mantissa) - depth, scipy.special.log_ndtr(-z), rtol=1e-5, atol=4e-5)
