"""Scales of responses: values against NumPy, order, the way back, and outliers that change nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import zscore

from dre_jax.gp.response_scale import scale_responses, without_uncertain
from tests.oracles import compressed_scores, in_slots

ORACLES = {"standardised": zscore, "compressed": compressed_scores}
scaled = jax.jit(scale_responses, static_argnums=0)


@pytest.mark.parametrize("scale", ORACLES)
@pytest.mark.parametrize("n", [2, 5, 8, 12])
def test_padded_responses_are_scaled_as_numpy_scales_them(scale, n):
    y = 3.0 - np.random.default_rng(n).exponential(size=n) ** 2
    result, transform = scaled(scale, *in_slots(12, y))
    np.testing.assert_allclose(result[:n], ORACLES[scale](y), atol=2e-5)
    np.testing.assert_array_equal(result[n:], 0.0)
    np.testing.assert_allclose(transform.apply(jnp.float32(y)), ORACLES[scale](y), atol=2e-5)


@pytest.mark.parametrize("scale", ORACLES)
@pytest.mark.parametrize(
    "y", [[0.0], [4.0, 4.0, 4.0], [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0, 1.0 + 1e-7, 1.0]]
)
def test_ties_and_single_responses_stay_finite(scale, y):
    result, transform = scaled(scale, *in_slots(4, np.array(y)))
    assert np.isfinite(jax.tree.leaves((result, transform.apply(jnp.float32(y)), transform))[0]).all()
    order = np.argsort(y, kind="stable")
    assert (np.diff(np.asarray(result)[order]) >= 0.0).all()
    assert float(transform.deviation) > 0.0


def test_no_response_is_no_number():
    y, transform = scaled("compressed", jnp.full(3, jnp.nan), jnp.zeros(3, bool))
    assert y.tolist() == [0.0] * 3
    assert float(transform.deviation) == 1.0


@pytest.mark.parametrize("scale", ORACLES)
def test_predictions_are_restored(scale):
    with jax.enable_x64(True):
        y = -(np.random.default_rng(0).exponential(size=9) ** 3)
        transform = scale_responses(scale, jnp.array(y), jnp.ones(9, bool)).transform
        points = jnp.array([-200.0, *y, 0.5, 3.0])
        restored = transform.invert(np.asarray(transform.apply(points)))
        np.testing.assert_allclose(restored, points, rtol=1e-9, atol=1e-12)
        slopes = (transform.apply(points + 1e-6) - transform.apply(points - 1e-6)) / 2e-6
        np.testing.assert_allclose(transform.slope(points), slopes, rtol=1e-4)


def test_diverged_trials_do_not_decide_the_scale_of_the_others():
    """Losses of 1e6 in place of 10 leave good trials a quarter of their distance, and no distance if standardised."""
    good = np.array([0.1, 0.2, 0.3, 0.5, 0.4])
    gaps = []
    for bad in (-10.0, -1e6):
        y = jnp.array([*good, bad, bad], jnp.float32)
        gaps.append({scale: np.ptp(scaled(scale, y, jnp.ones(7, bool)).y[2:4]) for scale in ORACLES})
    assert gaps[1]["standardised"] < 1e-6
    assert 0.25 < gaps[1]["compressed"] / gaps[0]["compressed"] < 1.0


def test_only_responses_with_large_errors_are_replaced():
    y, mean, where = jnp.array([1.0, 5.0, 2.0, 9.0]), jnp.array([0.5, 1.0, 1.5, 0.0]), jnp.array([1, 1, 1, 0], bool)
    for noise_var, expected in (
        ([0.3, 0.3, 0.3, 0.0], [1.0, 5.0, 2.0]),
        ([0.0, 0.4, 0.0, 0.0], [1.0, 1.0, 2.0]),
        ([0.1, 0.3, 0.1, 9.0], [1.0, 1.0, 2.0]),
    ):
        assert without_uncertain(y, mean, jnp.array(noise_var), where)[:3].tolist() == expected
