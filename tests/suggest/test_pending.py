"""Trials that still run, against a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import rankdata

from dre_jax import DRE, ConfigError, FineTuneConfig, ModelConfig, RandomSearch
from dre_jax.methods.baselines.shared import ByResponse
from dre_jax.methods.dre.model.ensemble import Support, init, scores
from dre_jax.search import Candidates, make_history
from dre_jax.search.method import NoMetaLearning, value
from dre_jax.suggest.pending import constant_liar_response, impute_pending, with_pending_trials

COMPLETED = np.array([0.2, 0.9, 0.9, 0.4])
KEY = jax.random.key(0)


class Slope(ByResponse, NoMetaLearning):
    """Expects the more of a configuration, the further it lies in the first column."""

    def predict(self, params, history, y, candidates, key):
        return jnp.exp(candidates.x[:, 0]), jnp.ones(len(candidates.x))


running = jax.jit(with_pending_trials, static_argnames=("method", "strategy"))


@pytest.mark.parametrize("strategy", ["min", "mean", "max", "believer", "draw", "none"])
@pytest.mark.parametrize("responses", [COMPLETED, COMPLETED[:1], np.zeros(0)])
def test_responses_of_pending_trials_are_imputed(strategy, responses):
    rng = np.random.default_rng(0)
    x, n = rng.random((7, 2)).astype(np.float32), len(responses)
    pending = (np.arange(7) >= n) & (np.arange(7) < n + 2)
    history = make_history(x[:n], responses, capacity=7)
    result = running(Slope(), None, history, x, pending, strategy=strategy, key=KEY)
    if strategy in ("draw", "none"):
        jax.tree.map(np.testing.assert_array_equal, result, history)
        return
    scaled = (responses - responses.min()) / np.ptp(responses) if n > 1 else np.full(n, 0.5)
    if strategy == "believer" and n:
        # The i-th furthest of those told stands for the i-th best; no more than the best is expected.
        claimed = np.interp(np.exp(x[n : n + 2, 0]), np.sort(np.exp(x[:n, 0])), np.sort(scaled))
    else:
        claimed = [{"min": np.min, "mean": np.mean, "max": np.max}[strategy](scaled) if n else 0.5] * 2
    expected = np.append(scaled, claimed)
    filled = np.arange(7) < n + 2
    np.testing.assert_array_equal(result.where, filled)
    np.testing.assert_array_equal(result.x[: n + 2], x[: n + 2])
    np.testing.assert_allclose(result.response[: n + 2], expected, rtol=1e-5)
    levels = rankdata(-expected, method="dense")
    np.testing.assert_array_equal(rankdata(result.level[: n + 2], method="dense"), levels)


def test_stand_ins_are_in_bounds_and_levels_follow_the_responses():
    """Any stand-ins, with ties among them and with those told, between filled slots and empty ones with garbage."""
    rng, impute = np.random.default_rng(3), jax.jit(impute_pending)
    response_of = jax.jit(constant_liar_response, static_argnames="strategy")
    for _ in range(40):
        kind = rng.integers(0, 3, 12)  # empty, told, pending
        history = make_history(np.zeros((12, 1)), rng.integers(0, 5, 12).astype(float))
        history = history._replace(response=np.where(kind == 1, history.response, np.float32(9.0)), where=kind == 1)
        claims = {strategy: float(response_of(history, strategy=strategy)) for strategy in ("min", "mean", "max")}
        told = np.asarray(history.response)[kind == 1]
        assert list(claims.values()) == pytest.approx([told.min(), told.mean(), told.max()] if len(told) else [0.5] * 3)
        claimed = np.where(rng.random(12) < 0.5, rng.choice(told, 12) if len(told) else 0.5, rng.integers(0, 9, 12) / 8)
        result = impute(history, np.ones((12, 1), np.float32), kind == 2, claimed.astype(np.float32))
        np.testing.assert_array_equal(result.where, kind > 0)
        np.testing.assert_array_equal(np.asarray(result.response)[kind == 1], told)
        levels, responses = (np.asarray(field)[kind > 0] for field in (result.level, result.response))
        np.testing.assert_array_equal(rankdata(levels, method="dense"), rankdata(-responses, method="dense"))


def test_one_member_of_an_ensemble_is_drawn():
    model = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
    method, params = DRE(model=model, fine_tuning=FineTuneConfig(epochs=0)), init(model, 2, KEY)
    x = np.random.default_rng(0).random((9, 2)).astype(np.float32)
    history, candidates = make_history(x[:4], COMPLETED), Candidates(x[4:], np.ones(5, bool))
    draw = jax.jit(jax.vmap(lambda key: value(method, params, history, candidates, key, sample=True)))
    result = np.asarray(draw(jax.random.split(KEY, 16)))
    best_first = np.argsort(-COMPLETED, kind="stable")
    support = Support(x[:4][best_first], np.asarray(history.response)[best_first], np.ones(4, bool))
    members = np.asarray(jax.jit(scores, static_argnums=0)(model, params, support, x[4:]))
    of = [[np.allclose(row, member, atol=1e-5) for member in members].index(True) for row in result]
    assert 0 < sum(of) < 16


def test_methods_without_a_mean_or_without_models_are_refused():
    x, history = np.zeros((7, 2), np.float32), make_history(np.zeros((4, 2)), COMPLETED, capacity=7)
    with pytest.raises(ConfigError, match="needs a method with an acquisition function, but got RandomSearch"):
        with_pending_trials(RandomSearch(), None, history, x, np.arange(7) == 4, "believer", KEY)
    with pytest.raises(ConfigError, match="draws need a method that has several models, but got Slope"):
        value(Slope(), None, history, Candidates(x, np.ones(7, bool)), KEY, sample=True)
