"""The mixture against a loop in NumPy over members, hypotheses and processes, and what trials make of it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_t, norm

from dre_jax.errors import ConfigError
from dre_jax.methods.hedged_prior import draws as hypothesis_draws
from dre_jax.methods.hedged_prior import hypotheses
from dre_jax.methods.hedged_prior.draws import draw_response
from dre_jax.methods.hedged_prior.folds import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis, log_evidence
from dre_jax.methods.hedged_prior.length_scale_prior import generic_prior
from dre_jax.methods.hedged_prior.posterior import condition_all, mean_and_improvement, predict_mixture
from dre_jax.methods.hedged_prior.prior import LearnedPriorConfig, init
from dre_jax.methods.hedged_prior.task_process import TaskHyperpriors, TaskProcessConfig
from dre_jax.methods.hedged_prior.weights import WeighedPriors, told
from dre_jax.search.acquisition import RESOLUTION

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
PROCESSES = TaskProcessConfig(steps=0, first_lengths=(0.3,))  # what fits do is tested beside
LENGTHS, NOISES, SLOPES = (0.1, 0.25, 0.6, 0.3, 0.3), (1e-3, 1e-3, 1e-3, 1e-3, np.exp(-6.0)), (0.0, 0.0, 0.0, 0.0, 1.0)
SHARES, TRUST, INCUMBENT = np.array([1 / 6, 1 / 6, 1 / 6, 1 / 4, 1 / 4]), 0.8, 0.5
CERTAIN = 1.0 - 1e-6
start = jax.jit(jax.vmap(partial(init, CONFIG, COLUMNS)))


def knowledge(priors, trust=TRUST):
    hyperpriors = TaskHyperpriors(generic_prior(COLUMNS), generic_prior(COLUMNS))
    log_odds = jnp.float32(np.log(trust) - np.log1p(-trust))
    facts = HeldOutEvidence(*[jnp.int32(0)] * 3, *[jnp.float32(0.0)] * 2)
    by = hypotheses.believed(HYPOTHESES)
    return WeighedPriors(priors, by, told(0), log_odds, hyperpriors, jnp.int32(1), facts)


@jax.jit
def believed(priors, x, y, where, new, trust=TRUST):
    """Weights f[J, H] and f[K]; mean, variance and the logarithm of the improvement of the mixture."""
    past = knowledge(priors)
    past = past._replace(trust=jnp.log(trust) - jnp.log1p(-trust))
    found = condition_all(CONFIG, PROCESSES, past, x, y, where)
    moments = predict_mixture(CONFIG, past, found, new)
    improvement = mean_and_improvement(CONFIG, past, found, new, jnp.float32(INCUMBENT))[1]
    return found.learned_weights, found.own_weights, *moments, improvement


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


def matern52(rows):
    r = np.sqrt(5.0) * np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)


def component(signal, noise, mean, y):
    """Log density of the trials, and mean and variance at what follows them."""
    n = len(y)
    seen = signal[:n, :n] + noise * np.eye(n)
    off, gain = y - mean[:n], signal[n:, :n] @ np.linalg.inv(seen)
    density = multivariate_t(mean[:n], seen, df=CONFIG.freedom).logpdf(y) if n else 0.0
    scale = (CONFIG.freedom + off @ np.linalg.inv(seen) @ off) / (CONFIG.freedom + n - 2.0)
    left = np.diag(signal)[n:] - (gain * signal[n:, :n]).sum(axis=1)
    return density, mean[n:] + gain @ off, scale * left, np.sqrt(scale * noise)


def written_out(parts, priors, x, y, new):
    """Weights f64[J, H] and f64[K]; mean, variance and augmented improvement of the mixture, three f64[m]."""
    cases, rows, trend = [], np.concatenate([x, new]), 0.0
    for j in range(CONFIG.members):
        prior = member(priors, j)
        m, (offset, slope, deep, plain) = parts(prior, rows, len(y))
        trend = trend + m / CONFIG.members
        for h in HYPOTHESES:
            signal = offset + h.doubt * slope + h.deep * deep + h.plain * plain
            noise, weight = h.noise * np.exp(np.float64(prior.noise)), h.weight / sum(h.weight for h in HYPOTHESES)
            density, *moments = component(signal, noise, h.slope * m, y)
            cases.append((np.log(TRUST * weight / CONFIG.members) + density, *moments))
    for length, noise, slope, share in zip(LENGTHS, NOISES, SLOPES, SHARES, strict=True):
        variance = np.exp(-1.0) if slope else 1.0
        signal = 1.0 + variance * matern52(rows / (length * np.sqrt(COLUMNS))) + 0.1 * slope * np.outer(trend, trend)
        density, *moments = component(signal, noise, slope * trend, y)
        cases.append((np.log((1.0 - TRUST) * share) + density, *moments))
    evidence, means, variances, noises = (np.array(a) for a in zip(*cases, strict=True))
    share = softmax(evidence)
    mean, z = share @ means, (means - INCUMBENT) / np.sqrt(variances)
    noises = np.minimum(noises, RESOLUTION)[:, None]
    factor = 1.0 - noises / np.sqrt(variances + noises**2)
    improvement = share @ (np.sqrt(variances) * (norm.pdf(z) + z * norm.cdf(z)) * factor)
    learned, own = np.split(share, [len(share) - len(SHARES)])
    return (
        learned.reshape(CONFIG.members, -1),
        own,
        mean,
        share @ (variances + (means - mean) ** 2),
        np.log(improvement),
    )


@pytest.mark.parametrize("n", [0, 1, 9, CAPACITY])
def test_the_mixture_is_the_loops_at_any_number_of_candidates(n, priors, prior_in_numpy):
    rng = np.random.default_rng(n)
    x, new = (rng.uniform(size=(rows, COLUMNS)).astype(np.float32) for rows in (n, CANDIDATES))
    y, new[: min(n, 2)] = rng.normal(size=n), x[:2]  # trials again, about which little is left to learn
    expected = written_out(prior_in_numpy, priors, x.astype(float), y, new[CHECKED].astype(float))
    *shares, mean, variance, improvement = believed(priors, *slots(x, y), new)
    moments = mean, variance, improvement
    for found, one in zip((*shares, *(a[jnp.asarray(CHECKED)] for a in moments)), expected, strict=True):
        np.testing.assert_allclose(found, one, rtol=1e-3, atol=2e-4)
    assert sum(float(share.sum()) for share in shares) == pytest.approx(1.0, abs=1e-6)
    assert {a.shape for a in moments} == {(CANDIDATES,)}


def test_drawn_functions_have_the_moments_of_the_mixture(priors, prior_in_numpy, monkeypatch):
    monkeypatch.setattr(hypothesis_draws, "FEATURES", 64)  # over draws, the moments are the same
    rng, draws = np.random.default_rng(4), 600
    x, new, y = rng.uniform(size=(5, COLUMNS)), rng.uniform(size=(4, COLUMNS)), rng.normal(size=5)
    x, new = x.astype(np.float32), np.concatenate([new, x[:1]]).astype(np.float32)
    past = knowledge(jax.tree.map(jnp.asarray, priors))

    @jax.jit
    def draw(keys, x, y, where):
        found = condition_all(CONFIG, PROCESSES, past, x, y, where)
        return jax.vmap(lambda key: draw_response(CONFIG, past, found, new, key))(keys)

    found = np.asarray(draw(jax.random.split(jax.random.key(8), draws), *slots(x, y)), np.float64)
    _, _, mean, variance, _ = written_out(prior_in_numpy, priors, x.astype(float), y, new.astype(float))
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
        share = np.asarray(believed(priors, *slots(x, (y - y.mean()) / y.std()), new, CERTAIN)[0])
        assert share.sum(axis=0)[expected] > 0.5, expected
        if expected != NOTHING:
            assert share.sum(axis=1)[1] > 0.8  # the member that it was drawn from


def test_evidence_is_what_turns_the_weights_before_into_those_after(priors):
    rng = np.random.default_rng(7)
    trials = slots(rng.uniform(size=(9, COLUMNS)), rng.normal(size=9))
    by = hypotheses.believed(HYPOTHESES)
    after = believed(priors, *trials, np.zeros((CANDIDATES, COLUMNS), np.float32), CERTAIN)[0]
    evidence = jax.jit(log_evidence, static_argnums=0)(CONFIG, by, priors, *trials)
    share, expected = np.asarray(after).sum(axis=0), softmax(np.asarray(by.log_weight) + np.asarray(evidence))
    np.testing.assert_allclose(share, expected, rtol=1e-4)


def test_equal_responses_leave_the_weights_as_they_were(priors):
    x, new = np.random.default_rng(6).uniform(size=(9, COLUMNS)), np.zeros((CANDIDATES, COLUMNS), np.float32)
    share, own = map(np.asarray, believed(priors, *slots(x, np.zeros(9)), new)[:2])
    before = TRUST * np.array([hypothesis.weight for hypothesis in HYPOTHESES])
    np.testing.assert_allclose(
        share, np.tile(before / before.sum() * TRUST / CONFIG.members, (CONFIG.members, 1)), rtol=1e-5
    )
    np.testing.assert_allclose(own, (1.0 - TRUST) * SHARES, rtol=1e-5)


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
