"""The mixture against a loop in NumPy over members, hypotheses and processes, and the weights after trials."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_t

from dre_jax.gp import fourier
from dre_jax.gp.drawn_processes import draw_processes
from dre_jax.gp.length_scale_prior import generic_prior
from dre_jax.gp.multi_task import MultiTaskParams, MultiTaskTrials
from dre_jax.gp.task_processes import TaskProcessConfig
from dre_jax.methods.hedged_prior.common_process import CommonPrior, condition_common
from dre_jax.methods.hedged_prior.held_out import HeldOutEvidence
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis, hypothesis_arrays
from dre_jax.methods.hedged_prior.improvement_weights import interpolate_noise
from dre_jax.methods.hedged_prior.mixture import HedgedPriorParams, condition_mixture
from dre_jax.methods.hedged_prior.priors import LearnedPriorConfig, init
from tests.oracles import history_of, in_slots, kumaraswamy, learned_prior, log_augmented_improvement, matern52

CONFIG = LearnedPriorConfig(trend=(6, 5), layers=(7, 4), members=3, degrees_of_freedom=3.5)
HYPOTHESES = (
    Hypothesis(weight=1.0),
    Hypothesis(
        weight=0.6, slope_mean=0.0, slope_variance_factor=0.0, feature_variance_factor=0.0, ard_variance_factor=20.0
    ),
    Hypothesis(
        weight=0.4,
        slope_mean=-1.0,
        slope_variance_factor=0.5,
        feature_variance_factor=3.0,
        noise_variance_factor=2.0,
    ),
    Hypothesis(weight=0.1, slope_mean=0.7, ard_variance_factor=0.0),
)
COLUMNS, CAPACITY = 3, 16
CANDIDATES, CHECKED = 4100, [0, 1, 1366, 1367, 2048, 4099]  # in three blocks: their ends, and what is between
GENERIC = generic_prior(COLUMNS)
PROCESSES = TaskProcessConfig(steps=0, initial_lengthscales=(0.3,), draws=8, selected=8)  # other tests fit and select
LENGTHS, NOISE = (0.1, 0.25, 0.6, 0.3), 1e-3
N_FIXED = 3
SHARES, TRANSFER, INCUMBENT = np.array([*[0.25 / 3] * 3, 0.25, *[0.5 / 8] * 8]), 0.8, 0.5
COMMON_HYPOTHESES = (*HYPOTHESES, Hypothesis(weight=0.4, noise_variance_factor=0.1))
PAST = MultiTaskParams(np.array([-1.0, 0.2, -0.4]), np.array([0.1, -0.7, 0.3]), np.array(-0.5), np.array(-1.5), -4.0)
COMMON_SHARE = 0.7
start = jax.jit(jax.vmap(partial(init, CONFIG, COLUMNS)))


def past_trials():
    """Returns 12 trials of two past tasks, with two empty slots among them."""
    rng = np.random.default_rng(11)
    return rng.uniform(size=(14, COLUMNS)), rng.normal(size=14), np.repeat([0, -1, 1, -1], [5, 1, 7, 1])


def make_common():
    past = MultiTaskParams(*(np.asarray(a, np.float32) for a in PAST[:5]))
    x, y, task = past_trials()
    trials = MultiTaskTrials(x.astype(np.float32), y.astype(np.float32), task.astype(np.int32))
    process = condition_common(past, trials)
    log_odds = jnp.float32(np.log(COMMON_SHARE) - np.log1p(-COMMON_SHARE))
    by = hypothesis_arrays(COMMON_HYPOTHESES)
    return CommonPrior(jax.tree.map(lambda a: a[None], process), by, log_odds)


def expected_common(rows):
    """Returns the posterior mean and covariance of the common process, and the correlation of a task's own, at rows."""
    x, y, task = past_trials()
    x, y, task = x[task >= 0], y[task >= 0], task[task >= 0]
    every = np.concatenate([x, rows])
    common = np.exp(PAST.log_common_var) * matern52(every / np.exp(PAST.log_common_lengthscale))
    own = matern52(every / np.exp(PAST.log_own_lengthscale))
    n = len(x)
    past = common[:n, :n] + (task[:, None] == task) * (1.0 + np.exp(PAST.log_own_var) * own[:n, :n])
    gain = common[n:, :n] @ np.linalg.inv(past + np.exp(PAST.log_noise_var) * np.eye(n))
    return gain @ y, common[n:, n:] - gain @ common[:n, n:], own[n:, n:]


def make_params(priors, transfer=TRANSFER, common=None):
    log_odds = jnp.float32(np.log(transfer) - np.log1p(-transfer))
    facts = HeldOutEvidence(*[jnp.int32(0)] * 3, *[jnp.float32(0.0)] * 2)
    by = hypothesis_arrays(HYPOTHESES)
    return HedgedPriorParams(priors, by, log_odds, GENERIC, jnp.int32(1), facts, common)


@jax.jit
def predict(priors, x, y, where, new, transfer=TRANSFER, errors=None, common=None):
    """Returns weights f[J, H], f[C] and f[K]; mean, variance and log expected improvement of the mixture."""
    params = make_params(priors, common=common)._replace(transfer_log_odds=jnp.log(transfer) - jnp.log1p(-transfer))
    posterior = condition_mixture(PROCESSES, params, history_of(x, y, where, errors), CONFIG.degrees_of_freedom)
    moments = posterior.predict(new)
    log_weight = interpolate_noise(PROCESSES, posterior.log_weight, posterior.noise_deviations(), posterior.n_past)
    improvement = posterior.mean_and_improvement(new, jnp.float32(INCUMBENT), log_weight)[1]
    past = posterior.past_weights
    common_weights = past[1][0] if len(past) > 1 else jnp.zeros(0)
    return past[0], common_weights, posterior.process_weights, *moments, improvement


def member(priors, j):
    return jax.tree.map(lambda a: a[j], priors)


@pytest.fixture(scope="module")
def priors():
    """Returns members with different parameters, biases included, and trends of deviation one."""
    keys = jax.random.split(jax.random.key(0), (2, CONFIG.members))
    rng = np.random.default_rng(0)
    moved = lambda a: np.asarray(a + 0.3 * rng.normal(size=a.shape), np.float32)  # noqa: E731
    priors = jax.tree.map(moved, jax.tree.map(np.asarray, start(*keys)))
    x, out = rng.uniform(size=(200, COLUMNS)), priors.trend["out_kernel"]
    for j in range(CONFIG.members):
        out[j] /= learned_prior(member(priors, j), x, 200)[0].std()
    return priors


slots = partial(in_slots, CAPACITY)


def component(signal, noise, mean, y, errors):
    """Returns the log-density of the trials, and mean, variance and noise deviation at the other points."""
    n = len(y)
    observed = signal[:n, :n] + noise * np.eye(n) + np.diag(errors)
    off, gain = y - mean[:n], signal[n:, :n] @ np.linalg.inv(observed)
    density = multivariate_t(mean[:n], observed, df=CONFIG.degrees_of_freedom).logpdf(y) if n else 0.0
    scale = (CONFIG.degrees_of_freedom + off @ np.linalg.inv(observed) @ off) / (CONFIG.degrees_of_freedom + n - 2.0)
    left = np.diag(signal)[n:] - (gain * signal[n:, :n]).sum(axis=1)
    return density, mean[n:] + gain @ off, scale * left, np.sqrt(scale * noise)


def expected_processes(rows):
    """Yields the covariance of the signal of each process of the task, and its noise."""
    for length in LENGTHS:
        yield 1.0 + matern52(rows / (length * np.sqrt(COLUMNS))), NOISE
    draws = jax.tree.map(lambda a: np.asarray(a, np.float64), draw_processes(PROCESSES.draws, GENERIC))
    for log_length, log_noise, log_warp in zip(*draws, strict=True):
        yield 1.0 + matern52(kumaraswamy(rows, *np.exp(log_warp)) / np.exp(log_length)), np.exp(log_noise)


def expected_mixture(priors, x, y, new, errors=0.0, has_common=False):
    """Returns weights f64[J, H], f64[C] and f64[K]; mean, variance and log augmented improvement, three f64[m]."""
    cases, rows, errors = [], np.concatenate([x, new]), np.broadcast_to(errors, len(y))
    transfer = TRANSFER * (1.0 - COMMON_SHARE) if has_common else TRANSFER
    for j in range(CONFIG.members):
        prior = member(priors, j)
        m, (offset, slope, learned, ard) = learned_prior(prior, rows, len(y))
        for h in HYPOTHESES:
            signal = offset + h.slope_variance_factor * slope + h.ard_variance_factor * ard
            signal = signal + h.feature_variance_factor * learned
            noise = h.noise_variance_factor * np.exp(np.float64(prior.log_noise_var))
            weight = h.weight / sum(h.weight for h in HYPOTHESES)
            density, *moments = component(signal, noise, h.slope_mean * m, y, errors)
            cases.append((np.log(transfer * weight / CONFIG.members) + density, *moments))
    for h in COMMON_HYPOTHESES if has_common else ():
        m, posterior, own = expected_common(rows)
        m = m - (m[: len(y)].mean() if len(y) else 0.0)
        signal = 1.0 + h.slope_variance_factor * 0.1 * np.outer(m, m) + h.feature_variance_factor * posterior
        signal = signal + h.ard_variance_factor * np.exp(PAST.log_own_var) * own
        noise = h.noise_variance_factor * np.exp(PAST.log_noise_var)
        density, *moments = component(signal, noise, h.slope_mean * m, y, errors)
        weight = h.weight / sum(h.weight for h in COMMON_HYPOTHESES)
        cases.append((np.log(TRANSFER * COMMON_SHARE * weight) + density, *moments))
    for (signal, noise), share in zip(expected_processes(rows), SHARES, strict=True):
        density, *moments = component(signal, noise, np.zeros(len(rows)), y, errors)
        cases.append((np.log((1.0 - TRANSFER) * share) + density, *moments))
    evidence, means, variances, noises = (np.array(a) for a in zip(*cases, strict=True))
    share = softmax(evidence)
    mean = share @ means
    each = np.exp(log_augmented_improvement(means, np.sqrt(variances), INCUMBENT, noises[:, None]))
    learned, common, own = np.split(share, [CONFIG.members * len(HYPOTHESES), len(share) - len(SHARES)])
    n_past = len(share) - len(SHARES)
    fixed, moved = own[:N_FIXED] / own[:N_FIXED].sum(), PROCESSES.interpolation * min(share @ noises**2, 1.0)
    improvement = (1.0 - moved) * share @ each + moved * fixed @ each[n_past : n_past + N_FIXED]
    variance = share @ (variances + (means - mean) ** 2)
    n_drawn = PROCESSES.selected
    own = np.concatenate([own[:-n_drawn], np.sort(own[-n_drawn:])[::-1]])  # in the order of their evidence
    return learned.reshape(CONFIG.members, -1), common, own, mean, variance, np.log(improvement)


@pytest.mark.parametrize(
    ("n", "has_errors", "has_common"),
    [
        (0, False, False),
        (1, False, False),
        (CAPACITY, False, False),
        (9, True, True),
        *(pytest.param(*case, marks=pytest.mark.thorough) for case in ((9, True, False), (0, False, True))),
    ],
)
def test_mixture_equals_the_loop_at_any_number_of_candidates(n, has_errors, has_common, priors):
    rng = np.random.default_rng(n)
    x, new = (rng.uniform(size=(rows, COLUMNS)).astype(np.float32) for rows in (n, CANDIDATES))
    y, new[: min(n, 2)] = rng.normal(size=n), x[:2]  # evaluated configurations, whose variance is small
    errors = rng.uniform(0.0, 2.0, CAPACITY).astype(np.float32) if has_errors else None
    variances = errors[:n] if has_errors else 0.0
    at = x.astype(float), y, new[CHECKED].astype(float)
    expected = expected_mixture(priors, *at, variances, has_common)
    common = make_common() if has_common else None
    *shares, mean, variance, improvement = predict(priors, *slots(x, y), new, errors=errors, common=common)
    moments = mean, variance, improvement
    for result, one in zip((*shares, *(a[jnp.asarray(CHECKED)] for a in moments)), expected, strict=True):
        np.testing.assert_allclose(result, one, rtol=1e-3, atol=2e-4)
    assert sum(float(share.sum()) for share in shares) == pytest.approx(1.0, abs=1e-6)
    assert {a.shape for a in moments} == {(CANDIDATES,)}


@pytest.mark.parametrize("has_common", [pytest.param(False, marks=pytest.mark.thorough), True])
@pytest.mark.slow
def test_sampled_functions_have_the_moments_of_the_mixture(has_common, priors, monkeypatch):
    monkeypatch.setattr(fourier, "N_FEATURES", 64)  # the moments over samples do not depend on it
    rng, draws = np.random.default_rng(4), 600
    x, new, y = rng.uniform(size=(5, COLUMNS)), rng.uniform(size=(4, COLUMNS)), rng.normal(size=5)
    x, new = x.astype(np.float32), np.concatenate([new, x[:1]]).astype(np.float32)
    params = make_params(jax.tree.map(jnp.asarray, priors), common=make_common() if has_common else None)
    errors = rng.uniform(0.0, 2.0, CAPACITY).astype(np.float32)

    @jax.jit
    def draw(keys, x, y, where):
        posterior = condition_mixture(PROCESSES, params, history_of(x, y, where, errors), CONFIG.degrees_of_freedom)
        return jax.vmap(lambda key: posterior.sample(new, key))(keys)

    result = np.asarray(draw(jax.random.split(jax.random.key(8), draws), *slots(x, y)), np.float64)
    *_, mean, variance, _ = expected_mixture(priors, x.astype(float), y, new.astype(float), errors[:5], has_common)
    np.testing.assert_allclose(result.mean(axis=0), mean, atol=5.0 * np.sqrt(variance.max() / draws))
    np.testing.assert_allclose(result.var(axis=0), variance, rtol=0.25)


def test_equal_responses_keep_the_initial_weights(priors):
    x, new = np.random.default_rng(6).uniform(size=(9, COLUMNS)), np.zeros((CANDIDATES, COLUMNS), np.float32)
    share, _, own = map(np.asarray, predict(priors, *slots(x, np.zeros(9)), new)[:3])
    before = TRANSFER * np.array([hypothesis.weight for hypothesis in HYPOTHESES])
    expected = np.broadcast_to(before / before.sum() * TRANSFER / CONFIG.members, share.shape)
    np.testing.assert_allclose(share, expected, rtol=1e-5)
    np.testing.assert_allclose(own, (1.0 - TRANSFER) * SHARES, rtol=1e-5)
