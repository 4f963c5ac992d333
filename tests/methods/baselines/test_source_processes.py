"""RGPE, TST and TAF against NumPy loops over past tasks, samples and pairs of trials."""

import itertools

import jax
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.gp import GPConfig, GPParams, fit_gp, gp_posterior, standardise
from dre_jax.gp.source_processes import predict_means, predict_sources
from dre_jax.methods.baselines.rgpe import RGPE, ranking_weights
from dre_jax.methods.baselines.source_processes import misranked_share, misranked_share_left_out
from dre_jax.methods.baselines.tst import TAF, TST, predicted_improvements, source_weights
from dre_jax.search import make_history
from tests.oracles import log_improvement

# One program each, where it would be one for every operation.
fit, predicted, standard = jax.jit(fit_gp, static_argnums=0), jax.jit(gp_posterior), jax.jit(standardise)
wrong, wrong_left_out, means_of = jax.jit(misranked_share), jax.jit(misranked_share_left_out), jax.jit(predict_means)
weights_of = jax.jit(ranking_weights, static_argnums=1)
acquire = jax.jit(lambda method, *arguments: method.acquire(*arguments, jax.random.key(0)), static_argnums=0)
FITTING = GPConfig(steps=25)
METHODS = {"tst": TST(fitting=FITTING, rows=25, bandwidth=0.3), "taf": TAF(fitting=FITTING, rows=25, bandwidth=0.3)}


@pytest.fixture(scope="module")
def sources(hills):
    return METHODS["tst"].fit(hills, jax.random.key(0))


@pytest.fixture(scope="module")
def history(hills):
    task = hills.test["new"]
    return make_history(task.X[10:18], task.y[10:18], capacity=11)


def slow_misranked(predicted, level, where):
    rows = [i for i in range(len(level)) if where[i]]
    pairs = [(i, j) for i, j in itertools.permutations(rows, 2) if level[i] < level[j]]
    wrong = sum(1.0 if predicted[i] < predicted[j] else 0.5 if predicted[i] == predicted[j] else 0.0 for i, j in pairs)
    return wrong / len(pairs) if pairs else 0.0


def test_misranked_pairs_one_by_one_and_nan():
    rng = np.random.default_rng(1)
    predicted = rng.integers(0, 4, size=(6, 9)).astype(np.float32)
    level, where = rng.integers(0, 5, size=9), rng.random(9) < 0.7
    result = wrong(predicted, level.astype(np.int32), where)
    np.testing.assert_allclose(result, [slow_misranked(row, level, where) for row in predicted], rtol=1e-6)
    assert float(wrong(predicted[0] * 0, np.zeros(9, np.int32), np.ones(9, bool))) == 0.0
    level, where, nothing = np.arange(3, dtype=np.int32), np.ones(3, bool), np.full((3, 3), np.nan, np.float32)
    assert float(wrong(nothing[0], level, where)) == 1.0
    assert float(wrong_left_out(nothing, level, where)) == 1.0


def test_misranked_pairs_of_leave_one_out_models():
    rng = np.random.default_rng(1)
    predicted = rng.integers(0, 4, size=(3, 7, 7)).astype(np.float32)
    level, where = rng.integers(0, 4, size=7), rng.random(7) < 0.8
    result = wrong_left_out(predicted, level.astype(np.int32), where)
    for share, of in zip(np.asarray(result), predicted, strict=True):
        turned, pairs = 0.0, 0
        for j, k in itertools.permutations(np.flatnonzero(where), 2):
            if level[j] != level[k]:
                pairs += 1
                # The paper's xor, with a half for equal predictions.
                turned += 0.5 if of[j, j] == of[j, k] else float((of[j, j] < of[j, k]) != (level[j] > level[k]))
        assert float(share) == pytest.approx(turned / pairs)


def slow_ranking_weights(losses, guard):
    """One sample after the other (Feurer et al. 2018, section 4)."""
    n_models, n_samples = losses.shape
    selected = [i for i in range(n_models - 1) if np.median(losses[i]) <= np.quantile(losses[-1], guard)] + [
        n_models - 1
    ]
    weights = np.zeros(n_models)
    for s in range(n_samples):
        least = min(losses[i, s] for i in selected)
        winners = [i for i in selected if losses[i, s] == least]
        if n_models - 1 in winners:
            winners = [n_models - 1]
        for i in winners:
            weights[i] += 1.0 / len(winners) / n_samples
    return weights


@pytest.mark.parametrize("seed", range(4))
def test_ranking_weights_are_the_loops(seed):
    losses = np.random.default_rng(seed).integers(0, 7, size=(5, 31)).astype(np.float32)
    losses[1] += 4.0
    result = np.asarray(weights_of(losses, 0.95))
    np.testing.assert_allclose(result, slow_ranking_weights(losses, 0.95), atol=1e-6)
    assert float(result.sum()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.slow
def test_rgpe_weights_means_and_variances_of_processes(sources, history, hills, make_candidates):
    """Feurer et al. 2018, section 3: mu = sum_i w_i mu_i, sigma^2 = sum_i w_i^2 sigma_i^2."""
    method, key = RGPE(fitting=FITTING, rows=25, samples=40), jax.random.key(3)
    candidates = make_candidates(hills.test["new"].X[30:50], empty=0)
    y = standard(history.response, history.where).y
    own = fit(FITTING, history.x, y, history.where)
    losses = np.asarray(jax.jit(method.losses)(sources, own, history, y, key))
    weights = slow_ranking_weights(losses, method.guard)
    assert np.sort(weights)[-2] > 0.1  # two processes count
    means, variances = map(np.asarray, jax.jit(predict_sources)(sources, candidates.x))
    own_mean, own_variance = predicted(own, history.x, y, history.where, candidates.x)
    mean, variance = jax.jit(method.predict)(sources, history, y, candidates, key)
    np.testing.assert_allclose(mean, weights @ [*means, own_mean], atol=1e-4)
    np.testing.assert_allclose(variance, weights**2 @ [*variances, own_variance], rtol=1e-4)


@pytest.mark.thorough
def test_smooth_tasks_are_not_mistaken_for_perfect_ones():
    # Of a Gaussian process that is sure of everything, rounding alone is left of the covariance.
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(100, 1)).astype(np.float32)
    tasks = {f"t{i}": Task(f"t{i}", x, np.sin(2 * x[:, 0] * rng.normal() + rng.normal())) for i in range(4)}
    method = RGPE(samples=40)
    sources = method.fit(SearchSpace("smooth", train=tasks), jax.random.key(0))
    losses = jax.jit(method.losses)
    for seed in range(10):
        chosen = np.random.default_rng(seed).choice(100, 16, replace=False)
        y = np.random.default_rng(1).normal(size=16)  # no past task explains it
        history = make_history(x[chosen], y, 20)
        own = GPParams(np.zeros(1, np.float32), np.float32(0.0), np.float32(-3.0))
        y_standard = standard(history.response, history.where).y
        assert np.min(losses(sources, own, history, y_standard, jax.random.key(3))) > 0.2


def test_kernel_weights_are_the_loops(sources, history):
    result = np.asarray(jax.jit(source_weights)(sources, history, 0.3))
    level, means = -np.asarray(history.response), np.asarray(means_of(sources, history.x))
    # Equations 8, 9 and 11 of Wistuba et al. 2016.
    distances = np.array([slow_misranked(row, level, np.arange(11) < 8) for row in means]) / 0.3
    np.testing.assert_allclose(result, np.append(np.maximum(0.75 * (1 - distances**2), 0.0), 0.75), atol=1e-6)
    assert result[:3].min() > 0.3
    assert result[3:5].max() < result[:3].min()


@pytest.mark.slow
def test_both_acquisitions(sources, history, hills, make_candidates):
    candidates = make_candidates(hills.test["new"].X[30:50], empty=3)
    x = candidates.x[:20]
    y = standardise(history.response, history.where).y
    own = fit(FITTING, history.x, y, history.where)
    mean, variance = (np.asarray(a, np.float64) for a in predicted(own, history.x, y, history.where, x))
    weights = np.asarray(jax.jit(source_weights)(sources, history, 0.3), np.float64)
    means = np.asarray(means_of(sources, x), np.float64)

    def improvement(mean):
        return np.exp(log_improvement(mean, np.sqrt(variance), float(y.max())))

    two_stage = sum(w * m for w, m in zip(weights, [*means, mean], strict=True)) / weights.sum()
    values = acquire(METHODS["tst"], sources, history, candidates)[:20]
    np.testing.assert_allclose(np.exp(values), improvement(two_stage), rtol=1e-3, atol=1e-5)

    at_trials = np.asarray(means_of(sources, history.x))[:, :8].max(axis=1)
    gains = np.maximum(means - at_trials[:, None], 0.0)
    np.testing.assert_allclose(jax.jit(predicted_improvements)(sources, history, x), gains, atol=1e-5)
    expected = (weights[:-1] @ gains + weights[-1] * improvement(mean)) / weights.sum()
    values = acquire(METHODS["taf"], sources, history, candidates)[:20]
    np.testing.assert_allclose(np.exp(values), expected, rtol=1e-3, atol=1e-5)
