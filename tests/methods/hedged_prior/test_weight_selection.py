"""Selection of hypotheses' weights on validation tasks: with less regret, with no less, and with too few tasks."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from dre_jax.methods.hedged_prior import weight_selection as selection_module
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis
from dre_jax.methods.hedged_prior.method import HedgedPrior
from dre_jax.methods.hedged_prior.prior import LearnedPriorConfig
from dre_jax.methods.hedged_prior.training import PriorTraining
from dre_jax.methods.hedged_prior.weight_selection import WeightSelectionConfig
from dre_jax.methods.hedged_prior.weights import fit_mixture_weights

REVERSED = Hypothesis(weight=0.2, slope_mean=-1.0)
METHOD = HedgedPrior(
    prior=LearnedPriorConfig(trend=(16,), layers=(8, 8), members=2),
    training=PriorTraining(steps=200, tasks=4, rows=12, learning_rate=0.01),
    hypotheses=(Hypothesis(weight=0.4), Hypothesis(weight=0.4, ard_variance_factor=2.0), REVERSED),
    weight_selection=WeightSelectionConfig(designs=2, history_lengths=(2, 6), rows=40),
)


@pytest.fixture(scope="module")
def tasks(hills):
    """Training tasks under other names."""
    return {f"new {name}": replace(task, name=f"new {name}") for name, task in list(hills.train.items())[:5]}


def fit(method, hills, tasks):
    return method.fit(replace(hills, validation=tasks), jax.random.key(0))


def test_fitted_weights_that_reduce_the_regret_are_accepted(hills, tasks, monkeypatch):
    """All tasks favour the second hypothesis: its share of the two weights is (10 / 2 + 5) / (10 + 5)."""
    evidence, regret = jnp.tile(jnp.array([0.0, 50.0, 100.0]), (5, 4, 1)), jnp.array([0.3, 0.5, 0.2, 0.4, 0.3])
    answers = iter([(evidence, regret), (evidence, regret - jnp.array([0.1, 0.2, 0.05, 0.1, 0.15]))])
    monkeypatch.setattr(selection_module, "_runs", lambda *_: next(answers))
    params = fit(METHOD, hills, tasks)
    assert int(params.weight_selection.tasks) == len(tasks)
    assert bool(params.weight_selection.accepted)
    assert float(params.weight_selection.regret_reduction) == pytest.approx(0.12)
    assert float(params.weight_selection.standard_error) == pytest.approx(
        np.std([0.1, 0.2, 0.05, 0.1, 0.15], ddof=1) / 5**0.5
    )
    weights = np.exp(params.hypotheses.log_weight)  # the reversed hypothesis keeps its weight
    np.testing.assert_allclose(weights, [0.8 / 3, 0.8 * 2 / 3, 0.2], rtol=1e-5)
    text = METHOD.explain_fit(params)["weights of hypotheses"]
    assert text == "chosen by 5 validation tasks: -0.1200 +- 0.0255 of mean regret"


def test_initial_weights_without_regret_stay(hills, tasks):
    """Runs with the initial weights have no regret, so that no weights have less."""
    params = fit(replace(METHOD, hypotheses=METHOD.hypotheses[:2]), hills, tasks)
    assert not bool(params.weight_selection.accepted)
    np.testing.assert_allclose(np.exp(params.hypotheses.log_weight), [0.5, 0.5], rtol=1e-5)


@pytest.mark.parametrize("alone", [Hypothesis(weight=1.0), REVERSED])
def test_one_hypothesis_keeps_its_weight(alone, hills, tasks):
    params = fit(replace(METHOD, hypotheses=(alone,)), hills, tasks)
    assert np.exp(params.hypotheses.log_weight).tolist() == [1.0]
    assert not bool(params.weight_selection.accepted)


def test_too_few_tasks_keep_the_initial_weights(hills, tasks):
    params = fit(METHOD, hills, dict(list(tasks.items())[:4]))
    np.testing.assert_allclose(np.exp(params.hypotheses.log_weight), [h.weight for h in METHOD.hypotheses], rtol=1e-5)
    text = METHOD.explain_fit(params)["weights of hypotheses"]
    assert text == "fixed, as 4 validation tasks are too few to choose them (5 are needed)"


# The weights against a general optimiser.

INITIAL, STRENGTH = np.array([0.6, 0.3, 0.1]), 4.0


def random_log_likelihood(n_tasks):
    return np.random.default_rng(0).normal([0.0, 1.0, 0.0], 3.0, (n_tasks, 2, 3))


def test_weights_maximise_the_posterior_density():
    log_likelihood = random_log_likelihood(6)

    def negative(free):
        log_weight = log_softmax(np.append(free, 0.0))
        return -(logsumexp(log_weight + log_likelihood, axis=-1).mean(axis=1).sum() + STRENGTH * INITIAL @ log_weight)

    expected = np.exp(log_softmax(np.append(minimize(negative, np.zeros(2), tol=1e-10).x, 0.0)))
    np.testing.assert_allclose(fit_mixture_weights(INITIAL, log_likelihood, STRENGTH), expected, atol=1e-5)
