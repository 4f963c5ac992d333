"""The scale of predictions: it increases, has an inverse at all responses, and is logarithmic where these are."""

import numpy as np
import pytest

from dre_jax.tuning.engine.prediction_scale import choose_scale

RNG = np.random.default_rng(0)
X = RNG.random((30, 2))
BOWL = -10.0 * np.sum((X - 0.3) ** 2, axis=1)
RESPONSES = {
    "linear": BOWL,
    "orders of magnitude": -np.exp(-1.7 * BOWL),
    "a power": -(10 ** (-BOWL / 2)),
    "diverged": np.where(np.arange(30) % 10 == 0, -1e300, BOWL),
    "infinite": np.where(np.arange(30) % 10 == 0, -np.inf, BOWL),
    "both": np.where(np.arange(30) == 3, np.inf, np.where(np.arange(30) % 9 == 0, -np.inf, BOWL)),
    "two values": np.where(np.arange(30) < 4, 2.0, -5.0),
    "most are the best": np.where(np.arange(30) < 4, -np.arange(30.0) - 3, 1.0),
    "small": 1e-200 * BOWL,
    "large": 1e299 * BOWL / np.abs(BOWL).max(),
    "a few": np.array([1.0, 2.0, -7.0]),
    "nothing finite": np.array([np.inf, -np.inf]),
}


@pytest.mark.parametrize("may_compress", [False, True])
@pytest.mark.parametrize("name", RESPONSES)
def test_every_response_is_restored_in_order(name, may_compress):
    responses = RESPONSES[name]
    scale = choose_scale(responses, X[: len(responses)], may_compress=may_compress)
    scaled = scale.apply(responses)
    assert np.isfinite(scaled).all()
    order = np.argsort(responses, kind="stable")
    differs = responses[order[1:]] > responses[order[:-1]]
    assert (np.diff(scaled[order])[differs] > 0).all()
    finite = np.abs(responses) < np.inf
    size = np.abs(responses[finite]).max() if finite.any() else 1.0
    np.testing.assert_allclose(scale.invert(scaled), responses, rtol=1e-9, atol=1e-12 * size)
    wide = np.linspace(-1e3, 1e3, 2001) * max(np.ptp(scaled), 1e-300)
    assert (np.diff(scale.invert(wide)[np.isfinite(scale.invert(wide))]) >= 0).all()
    assert not np.isnan(scale.invert(wide)).any()


@pytest.mark.parametrize("name", ["linear", "orders of magnitude", "diverged"])
@pytest.mark.parametrize("may_compress", [False, True])
def test_slopes_are_those_of_differences(name, may_compress):
    responses = RESPONSES[name]
    scale = choose_scale(responses, X, may_compress=may_compress)
    points = np.append(np.quantile(BOWL, [0.1, 0.5]), responses.max() + 1.0)
    step = 1e-5
    differences = (scale.apply(points + step) - scale.apply(points - step)) / (2 * step)
    np.testing.assert_allclose(scale.slope(points), differences, rtol=1e-4)


def test_an_outlier_leaves_the_others_room():
    """Among 30 responses of a range of a few units, one of -1e300 is at most some twenty of them away."""
    responses = np.append(BOWL, -1e300)
    scaled = choose_scale(responses, np.vstack([X, X[:1]]), may_compress=False).apply(responses)
    assert np.ptp(scaled) < 20 * np.ptp(scaled[:-1])


def test_the_evidence_chooses_the_scale():
    waves = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 * np.cos(4 * X[:, 0])
    assert np.isinf(choose_scale(waves, X, may_compress=True).unit)
    assert np.isfinite(choose_scale(-np.exp(-1.7 * BOWL), X, may_compress=True).unit)
    assert np.isinf(choose_scale(-np.exp(-1.7 * BOWL), X, may_compress=False).unit)
