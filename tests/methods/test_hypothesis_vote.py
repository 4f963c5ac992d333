"""Validation tasks that choose hypotheses' weights: where the past holds, where it lies, and where few are there."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from dre_jax.errors import ConfigError
from dre_jax.methods.hedged_prior import HedgedPrior
from dre_jax.methods.hypothesis_vote import VoteConfig, in_words
from dre_jax.surrogates.hypotheses import Hypothesis
from dre_jax.surrogates.hypothesis_weights import told
from dre_jax.surrogates.learned_prior import LearnedPriorConfig
from dre_jax.surrogates.prior_training import PriorTraining

REVERSED = Hypothesis(weight=0.2, slope=-1.0)
METHOD = HedgedPrior(
    prior=LearnedPriorConfig(trend=(16,), layers=(8, 8), members=2),
    training=PriorTraining(steps=200, tasks=4, rows=12, learning_rate=0.01),
    hypotheses=(Hypothesis(weight=0.4), Hypothesis(weight=0.4, slope=0.05, doubt=0.0), REVERSED),
    vote=VoteConfig(designs=2, lengths=(8, 12), rows=20),
)


@pytest.fixture(scope="module")
def tasks(hills):
    """Past tasks under other names: nothing differs from what was learned."""
    return {f"new {name}": replace(task, name=f"new {name}") for name, task in list(hills.train.items())[:5]}


def fitted(method, hills, tasks):
    return method.fit(replace(hills, validation=tasks), jax.random.key(0))


@pytest.mark.parametrize("order", [1, -1])
def test_tasks_give_weight_to_what_holds_of_them(order, hills, tasks):
    """If all agree, (10 / 2 + 5) / (10 + 5) of the weight that the two share is the one's."""
    found = fitted(replace(METHOD, hypotheses=(*METHOD.hypotheses[:2][::order], REVERSED)), hills, tasks)
    assert int(found.voted.tasks) == len(tasks)
    assert bool(found.voted.taken)
    weights = np.exp(found.by.log_weight)
    np.testing.assert_allclose(weights[:2][::order], [0.8 * 2 / 3, 0.8 / 3], atol=0.05)
    assert weights[2] == pytest.approx(0.2, abs=1e-5)  # what denies the past keeps its weight
    assert "chosen by 5 validation tasks: +" in METHOD.tell(found)["weights of hypotheses"]


def test_few_tasks_are_not_asked(hills, tasks):
    found = fitted(METHOD, hills, dict(list(tasks.items())[:4]))
    np.testing.assert_allclose(np.exp(found.by.log_weight), [h.weight for h in METHOD.hypotheses], rtol=1e-5)
    said = METHOD.tell(found)["weights of hypotheses"]
    assert said == "fixed, as 4 validation tasks are too few to choose them (5 are needed)"


def test_what_gains_nothing_is_told_of():
    said = in_words(METHOD.vote, told(5, 0.01, 0.02))
    assert said == "fixed, as nothing was gained by those of 5 validation tasks: +0.010 +- 0.020 nats on one left out"


@pytest.mark.parametrize("wrong", [{"least": 1}, {"rows": 9}, {"strength": 0.0}, {"designs": 0}, {"lengths": (0, 5)}])
def test_numbers_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        VoteConfig(**{"lengths": (5, 10), **wrong})
