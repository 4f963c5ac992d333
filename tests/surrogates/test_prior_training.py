"""Training of learned priors: histories, their evidence against scipy's, steps against optax's, and what is learned."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_t, zscore

from dre_jax.data import Task
from dre_jax.data.tasks import build_table
from dre_jax.errors import ConfigError
from dre_jax.surrogates.learned_prior import LearnedPriorConfig, init, within_bounds
from dre_jax.surrogates.prior_training import (
    PriorTraining,
    draw_histories,
    history_loss,
    past_table,
    train_priors,
)

CONFIG = LearnedPriorConfig(trend=(8, 8), layers=(8, 4), members=2, freedom=3.5)
TRAINING = PriorTraining(steps=200, tasks=4, rows=10, learning_rate=0.01)
ADAM = optax.adam(optax.cosine_decay_schedule(TRAINING.learning_rate, TRAINING.steps))
COLUMNS, SLOTS, KEY = 2, 10, jax.random.key(0)
drawn = jax.jit(draw_histories, static_argnums=0)
loss_and_slope = jax.jit(jax.value_and_grad(partial(history_loss, CONFIG)))
start = jax.jit(partial(init, CONFIG, COLUMNS))


def hills(shifts, seed=0):
    """Tasks with a peak at 0.6 of the first column and such shifts, each with an offset and a range of its own."""
    rng, tasks = np.random.default_rng(seed), {}
    for shift in shifts:
        x = rng.random((40, COLUMNS), np.float32)
        y = np.exp(-10.0 * (x[:, 0] - 0.6 - shift) ** 2) + 0.05 * rng.normal(size=40)
        tasks[f"{shift}"] = Task(f"{shift}", x, 10.0 ** rng.normal() * y + rng.normal())
    return tasks


@pytest.fixture(scope="module")
def table():
    return past_table(hills(np.linspace(-0.1, 0.1, 6)))


@pytest.fixture(scope="module")
def learned(table):
    return train_priors(CONFIG, TRAINING, table, KEY)


@pytest.fixture(scope="module")
def prior():
    return start(*jax.random.split(jax.random.key(3)))


@pytest.mark.parametrize("histories", ["best", "any"])
def test_histories_are_rows_of_one_task(histories):
    sizes = np.array([40, 5, 1, 40])
    tasks = {str(i): Task(str(i), np.zeros((n, 1), np.float32), np.arange(float(n))) for i, n in enumerate(sizes)}
    table, training = build_table(tasks), PriorTraining(tasks=4000, rows=12, least=3, histories=histories)
    rows, where = (np.asarray(a) for a in drawn(training, table, jax.random.key(0)))
    start = np.asarray(table.start)
    task = np.searchsorted(start, rows[:, 0], side="right") - 1
    place = np.where(where, rows - start[task][:, None], -np.arange(1, 13))  # of a row in its task, best first
    assert all(len(set(row)) == 12 for row in place.tolist())
    assert (place < sizes[task][:, None]).all()
    assert (place[where] >= 0).all()
    np.testing.assert_allclose(np.bincount(task), 1000, atol=140)
    for i, size in enumerate(sizes):
        lengths, often = np.unique(where[task == i].sum(axis=1), return_counts=True)
        expected = np.bincount(np.minimum(np.arange(3, 13), size))
        assert lengths.tolist() == np.flatnonzero(expected).tolist()
        np.testing.assert_allclose(often / often.sum(), expected[lengths] / 10.0, atol=0.05)
    for n in (3, 7, 12):
        of_length = place[(where.sum(axis=1) == n) & (sizes[task] == 40)]
        # Of 12 rows of 40, places from 0 on, the i-th best has the mean place 41 i / 13 - 1.
        expected = 19.5 if histories == "any" else 41.0 * (1 + n) / 2.0 / 13.0 - 1.0
        assert of_length[of_length >= 0].mean() == pytest.approx(expected, abs=2.0)


def history(x, y):
    empty = SLOTS - len(y)
    padded = np.pad(x, ((0, empty), (0, 0)), constant_values=3.0), np.pad(y, (0, empty), constant_values=-5.0)
    return *(jnp.asarray(a, jnp.float32) for a in padded), jnp.arange(SLOTS) < len(y)


@pytest.mark.parametrize("n", [2, 7, SLOTS])
def test_loss_is_scipys_density_of_standardised_rows(n, prior, prior_in_numpy):
    rng = np.random.default_rng(n)
    x, y = rng.random((n, COLUMNS), np.float32), 40.0 + 9.0 * rng.normal(size=n)
    m, parts = prior_in_numpy(prior, x.astype(float), n)
    matrix = sum(parts) + np.exp(np.float64(prior.noise)) * np.eye(n)
    nu = CONFIG.freedom
    left_out = gammaln((nu + n) / 2.0) - gammaln(nu / 2.0) - n / 2.0 * np.log(np.pi * nu)
    expected = (left_out - multivariate_t(m, matrix, df=nu).logpdf(zscore(y))) / n
    assert float(loss_and_slope(prior, *history(x, y))[0]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("case", ["no row", "one row", "equal responses", "equal rows", "two rows, one response off"])
def test_histories_that_say_little(case, prior):
    rng = np.random.default_rng(0)
    x, y = rng.random((6, COLUMNS)), rng.normal(size=6)
    cases = {
        "no row": (x[:0], y[:0]),
        "one row": (x[:1], y[:1]),
        "equal responses": (x, np.full(6, 0.1)),
        "equal rows": (np.repeat(x[:1], 6, axis=0), y),
        "two rows, one response off": (np.repeat(x[:2], 3, axis=0), np.where(np.arange(6) == 2, 1e6, 1.0)),
    }
    value, slope = loss_and_slope(prior, *history(*cases[case]))
    leaves = [np.asarray(leaf) for leaf in (value, *jax.tree.leaves(slope))]
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert all((leaf == 0.0).all() for leaf in leaves) == (case in ("no row", "one row", "equal responses"))


def step(table, prior, key):
    """Mean loss of a step's histories and its gradient, one after the other; without what the weights cost."""
    rows, where = (np.asarray(a) for a in drawn(TRAINING, table, key))
    x, y = np.asarray(table.x)[rows], np.asarray(table.response)[rows]
    found = [loss_and_slope(prior, *one) for one in zip(x, y, where, strict=True)]
    return jax.tree.map(lambda *a: np.mean(a, axis=0), *found)


def add_decay(value, gradient, prior):
    """With what the weights of both networks cost."""
    weights = prior._asdict()
    cost = TRAINING.decay * sum((a**2).sum() for name in ("trend", "features") for a in weights[name].values())
    slopes = {
        name: {layer: g + 2.0 * TRAINING.decay * weights[name][layer] for layer, g in getattr(gradient, name).items()}
        for name in ("trend", "features")
    }
    return value + cost, gradient._replace(**slopes)


@jax.jit
def move(gradient, state, params):
    with jax.numpy_dtype_promotion("standard"):  # optax promotes types as it goes
        updates, state = ADAM.update(gradient, state)
        return within_bounds(optax.apply_updates(params, updates)), state


def test_steps_are_those_of_a_loop_over_members_and_histories_with_optax(learned, table):
    trend_key, feature_key, step_key = jax.random.split(KEY, 3)
    draw_keys = [jax.random.split(jax.random.fold_in(step_key, number), CONFIG.members) for number in range(6)]
    expected = []
    for j in range(CONFIG.members):
        params = start(*(jax.random.split(key, CONFIG.members)[j] for key in (trend_key, feature_key)))
        state = jax.jit(ADAM.init)(params)
        for keys in draw_keys:
            value, gradient = add_decay(*step(table, params, keys[j]), params)
            params, state = move(gradient, state, params)
            expected.append(float(value))
    # Adam's first step is as long for a gradient of roundings as for any.
    np.testing.assert_allclose(learned[1][:6], np.reshape(expected, (CONFIG.members, 6)).mean(axis=0), rtol=1e-3)


def held_out_loss(prior):
    """Mean over 80 histories of tasks that were not learned from."""
    table = past_table(hills(np.linspace(-0.09, 0.08, 6), seed=9))
    return np.mean([step(table, prior, key)[0] for key in jax.random.split(jax.random.key(7), 20)])


def test_what_past_tasks_have_in_common_is_learned(learned, table, prior, prior_in_numpy):
    priors, losses = learned
    assert losses.shape == (TRAINING.steps,)
    jax.tree.map(np.testing.assert_array_equal, learned, train_priors(CONFIG, TRAINING, table, KEY))
    members = [jax.tree.map(lambda a, j=j: np.asarray(a[j]), priors) for j in range(CONFIG.members)]
    x = np.stack([np.linspace(0.0, 1.0, 41), np.full(41, 0.5)], axis=1)
    trends = [prior_in_numpy(member, x, 0)[0] for member in members]
    untrained = held_out_loss(prior)
    for member, trend in zip(members, trends, strict=True):
        assert held_out_loss(member) < untrained - 0.2
        assert x[trend.argmax(), 0] == pytest.approx(0.6, abs=0.1)
    assert np.abs(trends[0] - trends[1]).max() > 1e-3


def test_numbers_out_of_range_are_refused():
    for field, value in (
        ("steps", 0),
        ("tasks", 0),
        ("least", 1),
        ("rows", 3),
        ("learning_rate", 0.0),
        ("decay", -1.0),
    ):
        with pytest.raises(ConfigError, match=field):
            PriorTraining(**{field: value})
