"""Validation tasks that choose hypotheses' weights: where the past holds, where it lies, and where few are there."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.methods.hedged_prior import weight_selection as hypothesis_vote
from dre_jax.methods.hedged_prior.hypotheses import Hypothesis
from dre_jax.methods.hedged_prior.method import HedgedPrior
from dre_jax.methods.hedged_prior.prior import LearnedPriorConfig
from dre_jax.methods.hedged_prior.training import PriorTraining
from dre_jax.methods.hedged_prior.weight_selection import VoteConfig, in_words
from dre_jax.methods.hedged_prior.weights import told

REVERSED = Hypothesis(weight=0.2, slope=-1.0)
METHOD = HedgedPrior(
    prior=LearnedPriorConfig(trend=(16,), layers=(8, 8), members=2),
    training=PriorTraining(steps=200, tasks=4, rows=12, learning_rate=0.01),
    hypotheses=(Hypothesis(weight=0.4), Hypothesis(weight=0.4, plain=2.0), REVERSED),
    vote=VoteConfig(designs=2, lengths=(2, 6), rows=40),
)


@pytest.fixture(scope="module")
def tasks(hills):
    """Past tasks under other names: nothing differs from what was learned."""
    return {f"new {name}": replace(task, name=f"new {name}") for name, task in list(hills.train.items())[:5]}


def fitted(method, hills, tasks):
    return method.fit(replace(hills, validation=tasks), jax.random.key(0))


def test_likelier_weights_with_which_runs_have_less_regret_are_taken(hills, tasks, monkeypatch):
    """All tasks say the second: (10 / 2 + 5) / (10 + 5) of the weight that the two share is its."""
    evidence, regret = jnp.tile(jnp.array([0.0, 50.0, 100.0]), (5, 4, 1)), jnp.array([0.3, 0.5, 0.2, 0.4, 0.3])
    answers = iter([(evidence, regret), (evidence, regret - jnp.array([0.1, 0.2, 0.05, 0.1, 0.15]))])
    monkeypatch.setattr(hypothesis_vote, "_runs", lambda *_: hypothesis_vote._Runs(*next(answers)))
    found = fitted(METHOD, hills, tasks)
    assert int(found.voted.tasks) == len(tasks)
    assert bool(found.voted.taken)
    assert float(found.voted.gain) == pytest.approx(0.12)
    assert float(found.voted.error) == pytest.approx(np.std([0.1, 0.2, 0.05, 0.1, 0.15], ddof=1) / 5**0.5)
    weights = np.exp(found.by.log_weight)  # what denies the past keeps its weight, likely or not
    np.testing.assert_allclose(weights, [0.8 / 3, 0.8 * 2 / 3, 0.2], rtol=1e-5)
    said = METHOD.tell(found)["weights of hypotheses"]
    assert said == "chosen by 5 validation tasks: -0.1200 +- 0.0255 of mean regret"


def test_weights_that_cost_nothing_stay(hills, tasks):
    """Runs are perfect as it is: no other weights have less regret."""
    found = fitted(replace(METHOD, hypotheses=METHOD.hypotheses[:2]), hills, tasks)
    assert not bool(found.voted.taken)
    np.testing.assert_allclose(np.exp(found.by.log_weight), [0.5, 0.5], rtol=1e-5)


@pytest.mark.parametrize("alone", [Hypothesis(weight=1.0), REVERSED])
def test_one_hypothesis_keeps_its_weight(alone, hills, tasks):
    found = fitted(replace(METHOD, hypotheses=(alone,)), hills, tasks)
    assert np.exp(found.by.log_weight).tolist() == [1.0]
    assert not bool(found.voted.taken)


def test_few_tasks_are_not_asked(hills, tasks):
    found = fitted(METHOD, hills, dict(list(tasks.items())[:4]))
    np.testing.assert_allclose(np.exp(found.by.log_weight), [h.weight for h in METHOD.hypotheses], rtol=1e-5)
    said = METHOD.tell(found)["weights of hypotheses"]
    assert said == "fixed, as 4 validation tasks are too few to choose them (5 are needed)"


def test_what_gains_nothing_is_told_of():
    said = in_words(METHOD.vote, told(5, 0.01, 0.02))
    assert said == (
        "fixed, as nothing is gained beyond chance by those of 5 validation tasks: -0.0100 +- 0.0200 of mean regret"
    )


@pytest.mark.parametrize("wrong", [{"least": 1}, {"rows": 9}, {"strength": 0.0}, {"designs": 0}, {"lengths": (0, 5)}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        VoteConfig(**{"lengths": (5, 10), **wrong})
