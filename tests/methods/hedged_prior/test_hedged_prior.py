"""The method on tasks that resemble past tasks and on reversed ones."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from dre_jax.data.tasks import unit_scale
from dre_jax.methods.hedged_prior.common_process import CommonProcessConfig
from dre_jax.methods.hedged_prior.hedged_prior import HedgedPrior
from dre_jax.methods.hedged_prior.priors import LearnedPriorConfig
from dre_jax.methods.hedged_prior.training import PriorTraining
from dre_jax.search import make_history
from dre_jax.search.loop import jitted_value

METHOD = HedgedPrior(
    prior=LearnedPriorConfig(trend=(16,), layers=(8, 8), members=2),
    training=PriorTraining(steps=200, tasks=4, rows=12, learning_rate=0.01),
    common=CommonProcessConfig(rows=0),  # of few tasks, which alone would do
    alone_every=3,
)
DESIGNS, TRIALS, CAPACITY = 6, 12, 14


@pytest.fixture(scope="module")
def learned(hills):
    return METHOD.fit(hills, jax.random.key(0))


def values(params, x, y, candidates):
    values = jitted_value(METHOD, params, make_history(x, y, CAPACITY), candidates, jax.random.key(0))
    return np.asarray(values)[np.asarray(candidates.where)]


def test_first_pick_is_the_best_of_past_tasks(learned, hills, make_candidates):
    task = hills.test["new"]
    result = values(learned, task.X[:0], task.y[:0], make_candidates(task.X))
    assert unit_scale(task.y)[result.argmax()] > 0.95
    assert np.corrcoef(result, task.y)[0, 1] > 0.8


def test_similar_tasks_help_at_once_and_reversed_tasks_are_rejected(learned, hills, mean_regrets):
    """After five trials a Gaussian process without a past is at 0.12 and at 0.06, and random rows are no nearer."""
    task = hills.test["new"]
    assert mean_regrets(METHOD, learned, task, TRIALS, DESIGNS)[1] < 0.03
    reversed_past = mean_regrets(METHOD, learned, replace(task, y=-task.y), TRIALS, DESIGNS)
    assert reversed_past[3] < 0.02
    assert reversed_past[-1] < 0.002


def test_every_third_trial_after_the_ninth_is_without_the_past(learned, hills, make_candidates):
    task, rows = hills.test["new"], make_candidates(hills.test["new"].X)
    turned = learned._replace(priors=learned.priors._replace(trend=jax.tree.map(np.negative, learned.priors.trend)))

    def changes(method, n):
        histories = make_history(task.X[:n], task.y[:n], CAPACITY)
        pair = [jitted_value(method, params, histories, rows, jax.random.key(0)) for params in (learned, turned)]
        on = np.asarray(rows.where)
        return not np.allclose(*(np.asarray(each)[on] for each in pair), rtol=1e-4, atol=1e-4)

    assert [n for n in (2, 5, 8, 10, 11, 12) if not changes(METHOD, n)] == [11]
    assert changes(replace(METHOD, alone_every=0), 11)


@pytest.mark.slow
def test_a_response_with_a_large_error_counts_less(learned, hills, make_candidates):
    task = hills.test["new"]
    worst, others = np.argmin(task.y), np.argsort(task.y)[1:9]
    x, y = task.X[np.r_[others, worst]], np.r_[task.y[others], 3.0 * task.y.max()]
    history, candidates = make_history(x, y, CAPACITY), make_candidates(task.X)

    def distance(noise_var):
        inputs = history._replace(noise_var=np.pad([0.0] * 8 + [noise_var], (0, 5)).astype(np.float32))
        result = jitted_value(METHOD, learned, inputs, candidates, jax.random.key(0))
        pick = np.asarray(result)[: len(task.X)].argmax()
        return float(np.linalg.norm(task.X[pick] - task.X[task.y.argmax()]))

    assert distance(100.0) < 0.2 < distance(0.0)
