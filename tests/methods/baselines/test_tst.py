"""TST and TAF against NumPy loops over the past tasks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax.gp.fit import GPConfig, fit_gp
from dre_jax.gp.regression import gp_posterior
from dre_jax.gp.response_scale import standardise
from dre_jax.methods.baselines.sources import predict_means
from dre_jax.methods.baselines.tst import TAF, TST, predicted_improvements, source_weights
from dre_jax.search import make_history

FITTING = GPConfig(steps=25)
fit, predicted = jax.jit(fit_gp, static_argnums=0), jax.jit(gp_posterior)
METHODS = {"tst": TST(fitting=FITTING, rows=25, bandwidth=0.3), "taf": TAF(fitting=FITTING, rows=25, bandwidth=0.3)}


@pytest.fixture(scope="module")
def sources(hills):
    return METHODS["tst"].fit(hills, jax.random.key(0))


@pytest.fixture(scope="module")
def history(hills):
    task = hills.test["new"]
    return make_history(task.X[10:18], task.y[10:18], capacity=11)


@pytest.fixture(scope="module")
def candidates(hills, make_candidates):
    return make_candidates(hills.test["new"].X[30:50], empty=3)


acquire = jax.jit(lambda method, *given: method.acquire(*given, jax.random.key(0)), static_argnums=0)
means_of = jax.jit(predict_means)


@pytest.mark.parametrize("name", METHODS)
def test_before_the_first_trial_past_tasks_say_where(name, sources, history, candidates):
    none = history._replace(where=jnp.zeros(11, bool))
    values = acquire(METHODS[name], sources, none, candidates)[:20]
    assert np.isfinite(values).all()
    assert len(np.unique(values)) > 15


def slow_weight(predicted, y, bandwidth):
    """Equations 8, 9 and 11 of Wistuba et al. 2016, pair by pair."""
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    distance = sum(predicted[i] < predicted[j] for i, j in pairs) / len(pairs)
    t = distance / bandwidth
    return 0.75 * (1 - t * t) if t <= 1 else 0.0


def test_weights_are_the_loops(sources, history):
    found = np.asarray(jax.jit(source_weights)(sources, history, 0.3))
    y = np.asarray(history.response)[:8]
    means = np.asarray(means_of(sources, history.x))[:, :8]
    np.testing.assert_allclose(found, [*(slow_weight(row, y, 0.3) for row in means), 0.75], atol=1e-6)
    assert found[:3].min() > 0.3
    assert found[3:5].max() < found[:3].min()


def test_both_acquisitions(sources, history, candidates):
    x = candidates.x[:20]
    y = standardise(history.response, history.where).y
    own = fit(FITTING, history.x, y, history.where)
    mean, variance = (np.asarray(a, np.float64) for a in predicted(own, history.x, y, history.where, x))
    weights = np.asarray(jax.jit(source_weights)(sources, history, 0.3), np.float64)
    means = np.asarray(means_of(sources, x), np.float64)

    def improvement(mean):
        z = (mean - float(y.max())) / np.sqrt(variance)
        return np.sqrt(variance) * (stats.norm.pdf(z) + z * stats.norm.cdf(z))

    two_stage = sum(w * m for w, m in zip(weights, [*means, mean], strict=True)) / weights.sum()
    values = acquire(METHODS["tst"], sources, history, candidates)[:20]
    np.testing.assert_allclose(np.exp(values), improvement(two_stage), rtol=1e-3, atol=1e-5)

    seen = np.asarray(means_of(sources, history.x))[:, :8].max(axis=1)
    gains = np.maximum(means - seen[:, None], 0.0)
    np.testing.assert_allclose(jax.jit(predicted_improvements)(sources, history, x), gains, atol=1e-5)
    expected = (weights[:-1] @ gains + weights[-1] * improvement(mean)) / weights.sum()
    values = acquire(METHODS["taf"], sources, history, candidates)[:20]
    np.testing.assert_allclose(np.exp(values), expected, rtol=1e-3, atol=1e-5)
