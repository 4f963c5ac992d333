"""Mixtures of hypotheses against a loop in NumPy over members and hypotheses, and what trials make of them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_t

from dre_jax.errors import ConfigError
from dre_jax.surrogates import hypotheses, hypothesis_draws
from dre_jax.surrogates.hypotheses import Hypothesis, log_evidence, posterior, weights
from dre_jax.surrogates.hypothesis_draws import draw_response
from dre_jax.surrogates.learned_prior import LearnedPriorConfig, init

CONFIG = LearnedPriorConfig(trend=(6, 5), layers=(7, 4), members=3, freedom=3.5)
HYPOTHESES = (
    Hypothesis(weight=1.0),
    Hypothesis(weight=0.6, slope=0.0, doubt=0.0, deep=0.0, plain=20.0),
    Hypothesis(weight=0.4, slope=-1.0, doubt=0.5, deep=3.0, noise=2.0),
    Hypothesis(weight=0.1, slope=0.7, plain=0.0),
)
AS_LEARNED, NOTHING, REVERSED = 0, 1, 2
COLUMNS, CAPACITY = 3, 16
CANDIDATES, CHECKED = 4100, [0, 1, 1366, 1367, 2048, 4099]  # in three blocks: their ends, and what is between
start = jax.jit(jax.vmap(partial(init, CONFIG, COLUMNS)))


@jax.jit
def believed(priors, x, y, where, new):
    """Weights f[J, H], and mean and variance of the mixture."""
    given = CONFIG, hypotheses.believed(HYPOTHESES), priors, x, y, where
    return weights(*given), *posterior(*given, new)


def member(priors, j):
    return jax.tree.map(lambda a: a[j], priors)


@pytest.fixture(scope="module")
def priors(prior_in_numpy):
    """Members that differ in everything, the networks' biases too, with trends of a deviation of one."""
    keys = jax.random.split(jax.random.key(0), (2, CONFIG.members))
    rng = np.random.default_rng(0)
    moved = lambda a: np.asarray(a + 0.3 * rng.normal(size=a.shape), np.float32)  # noqa: E731
    priors = jax.tree.map(moved, jax.tree.map(np.asarray, start(*keys)))
    x, out = rng.uniform(size=(200, COLUMNS)), priors.trend["out_kernel"]
    for j in range(CONFIG.members):
        out[j] /= prior_in_numpy(member(priors, j), x, 200)[0].std()
    return priors


def slots(x, y):
    """Trials with empty slots behind, full of rubbish."""
    empty = CAPACITY - len(y)
    padded = np.pad(x, ((0, empty), (0, 0)), constant_values=7.0), np.pad(y, (0, empty), constant_values=-5.0)
    return *(jnp.asarray(a, jnp.float32) for a in padded), jnp.arange(CAPACITY) < len(y)


def written_out(parts, priors, x, y, new):
    """Weights f64[J, H], and the mixture's mean and variance, two f64[m]."""
    n, cases = len(y), []
    for j in range(CONFIG.members):
        prior = member(priors, j)
        m, (offset, slope, deep, plain) = parts(prior, np.concatenate([x, new]), n)
        for h in HYPOTHESES:
            signal = offset + h.doubt * slope + h.deep * deep + h.plain * plain
            seen = signal[:n, :n] + h.noise * np.exp(np.float64(prior.noise)) * np.eye(n)
            off, gain = y - h.slope * m[:n], signal[n:, :n] @ np.linalg.inv(seen)
            density = multivariate_t(h.slope * m[:n], seen, df=CONFIG.freedom).logpdf(y) if n else 0.0
            scale = (CONFIG.freedom + off @ np.linalg.inv(seen) @ off) / (CONFIG.freedom + n)
            left = np.diag(signal)[n:] - (gain * signal[n:, :n]).sum(axis=1)
            cases.append((np.log(h.weight) + density, h.slope * m[n:] + gain @ off, scale * left))
    evidence, means, variances = (np.array(a) for a in zip(*cases, strict=True))
    share = softmax(evidence)
    mean = share @ means
    return share.reshape(CONFIG.members, -1), mean, share @ (variances + (means - mean) ** 2)


@pytest.mark.parametrize("n", [0, 1, 9, CAPACITY])
def test_the_mixture_is_the_loops_at_any_number_of_candidates(n, priors, prior_in_numpy):
    rng = np.random.default_rng(n)
    x, new = (rng.uniform(size=(rows, COLUMNS)).astype(np.float32) for rows in (n, CANDIDATES))
    y, new[: min(n, 2)] = rng.normal(size=n), x[:2]  # trials again, about which little is left to learn
    expected = written_out(prior_in_numpy, priors, x.astype(float), y, new[CHECKED].astype(float))
    share, *moments = believed(priors, *slots(x, y), new)
    for found, one in zip((share, *(a[jnp.asarray(CHECKED)] for a in moments)), expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-4, atol=2e-5)
    assert float(share.sum()) == pytest.approx(1.0, abs=1e-6)
    assert {a.shape for a in moments} == {(CANDIDATES,)}


def test_drawn_functions_have_the_moments_of_the_mixture(priors, prior_in_numpy, monkeypatch):
    monkeypatch.setattr(hypothesis_draws, "FEATURES", 64)  # over draws, the moments are the same
    rng, draws = np.random.default_rng(4), 600
    x, new, y = rng.uniform(size=(5, COLUMNS)), rng.uniform(size=(4, COLUMNS)), rng.normal(size=5)
    x, new = x.astype(np.float32), np.concatenate([new, x[:1]]).astype(np.float32)
    by, given = hypotheses.believed(HYPOTHESES), (jax.tree.map(jnp.asarray, priors), *slots(x, y), new)
    draw = jax.jit(jax.vmap(lambda key: draw_response(CONFIG, by, *given, key)))
    found = np.asarray(draw(jax.random.split(jax.random.key(8), draws)), np.float64)
    _, mean, variance = written_out(prior_in_numpy, priors, x.astype(float), y, new.astype(float))
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=5.0 * np.sqrt(variance.max() / draws))
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.25)


def test_weights_move_to_what_holds(priors, prior_in_numpy):
    rng = np.random.default_rng(5)
    x, new = rng.uniform(size=(CAPACITY, COLUMNS)), np.zeros((CANDIDATES, COLUMNS), np.float32)
    m, _ = prior_in_numpy(member(priors, 1), x, CAPACITY)
    own = np.sin(30.0 * x).sum(axis=1)  # nothing that a network would say of it
    cases = {AS_LEARNED: m, REVERSED: -m, NOTHING: own}
    for expected, response in cases.items():
        y = response + 0.05 * rng.normal(size=CAPACITY)
        share = np.asarray(believed(priors, *slots(x, (y - y.mean()) / y.std()), new)[0])
        assert share.sum(axis=0)[expected] > 0.5, expected
        if expected != NOTHING:
            assert share.sum(axis=1)[1] > 0.8  # the member that it was drawn from


def test_evidence_is_what_turns_the_weights_before_into_those_after(priors):
    rng = np.random.default_rng(7)
    trials = slots(rng.uniform(size=(9, COLUMNS)), rng.normal(size=9))
    by = hypotheses.believed(HYPOTHESES)
    after, evidence = (jax.jit(f, static_argnums=0)(CONFIG, by, priors, *trials) for f in (weights, log_evidence))
    share, expected = np.asarray(after).sum(axis=0), softmax(np.asarray(by.log_weight) + np.asarray(evidence))
    np.testing.assert_allclose(share, expected, rtol=1e-4)


def test_equal_responses_leave_the_weights_as_they_were(priors):
    x, new = np.random.default_rng(6).uniform(size=(9, COLUMNS)), np.zeros((CANDIDATES, COLUMNS), np.float32)
    share = np.asarray(believed(priors, *slots(x, np.zeros(9)), new)[0])
    before = np.array([hypothesis.weight for hypothesis in HYPOTHESES])
    np.testing.assert_allclose(share, np.tile(before / before.sum() / CONFIG.members, (CONFIG.members, 1)), rtol=1e-5)


def test_no_weight_no_noise_and_negative_variances_are_refused():
    for field, value in (
        ("weight", 0.0),
        ("noise", 0.0),
        ("doubt", -0.1),
        ("deep", float("nan")),
        ("plain", -1.0),
        ("slope", float("inf")),
    ):
        with pytest.raises(ConfigError, match=field):
            Hypothesis(**{"weight": 1.0, field: value})
