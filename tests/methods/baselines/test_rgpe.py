"""RGPE's weights against a loop over samples, and what they do."""

import jax
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import GPParams
from dre_jax.gp.response_scale import standardise
from dre_jax.methods.baselines.rgpe import RGPE, ranking_weights
from dre_jax.methods.baselines.sources import joint_posterior, predict_means, predict_sources
from dre_jax.search import make_history

fit, standard, weights_of = (
    jax.jit(fit_gp, static_argnums=0),
    jax.jit(standardise),
    jax.jit(ranking_weights, static_argnums=1),
)
METHOD = RGPE(fitting=GPConfig(steps=25), samples=40, rows=25)


@pytest.fixture(scope="module")
def sources(hills):
    return METHOD.fit(hills, jax.random.key(0))


def slow_weights(losses, guard):
    """One sample after the other (Feurer et al. 2018, section 4)."""
    n_models, n_samples = losses.shape
    kept = [i for i in range(n_models - 1) if np.median(losses[i]) <= np.quantile(losses[-1], guard)] + [n_models - 1]
    weights = np.zeros(n_models)
    for s in range(n_samples):
        least = min(losses[i, s] for i in kept)
        winners = [i for i in kept if losses[i, s] == least]
        if n_models - 1 in winners:
            winners = [n_models - 1]
        for i in winners:
            weights[i] += 1.0 / len(winners) / n_samples
    return weights


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_the_loops(seed):
    losses = np.random.default_rng(seed).integers(0, 7, size=(5, 31)).astype(np.float32)
    losses[1] += 4.0
    found = np.asarray(weights_of(losses, 0.95))
    np.testing.assert_allclose(found, slow_weights(losses, 0.95), atol=1e-6)
    assert float(found.sum()) == pytest.approx(1.0, abs=1e-6)


def test_the_guard_leaves_out_who_is_worse_than_the_task_at_hand():
    # By luck it has the least loss now and then; by its median it is out.
    losses = np.array([[0.0, 0.9, 0.9, 0.9], [0.2, 0.2, 0.3, 0.3]], np.float32)
    assert weights_of(losses, 0.95).tolist() == [0.0, 1.0]


@pytest.mark.thorough
def test_alike_tasks_get_the_weight(sources, hills):
    task = hills.test["new"]
    rows = np.random.default_rng(0).choice(80, 12, replace=False)
    history = make_history(task.X[rows], task.y[rows], capacity=16)
    y = standard(history.response, history.where).y
    own = fit(METHOD.fitting, history.x, y, history.where)
    losses = np.asarray(jax.jit(METHOD.losses)(sources, own, history, y, jax.random.key(1)))
    weights = np.asarray(weights_of(losses, METHOD.guard))
    assert weights[3:5].sum() < 0.05  # those with another peak
    assert losses[:3].mean() < losses[3:5].mean() - 0.2


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


def test_moments_of_the_sources(sources, hills):
    x = hills.test["new"].X[:6]
    mean, variance = map(np.asarray, jax.jit(predict_sources)(sources, x))
    np.testing.assert_allclose(jax.jit(predict_means)(sources, x), mean, atol=1e-5)
    joint_mean, joint = jax.jit(joint_posterior)(jax.tree.map(lambda a: np.asarray(a)[2], sources), x)
    np.testing.assert_allclose(joint_mean, mean[2], atol=1e-5)
    np.testing.assert_allclose(np.diagonal(joint), variance[2], atol=1e-4)
