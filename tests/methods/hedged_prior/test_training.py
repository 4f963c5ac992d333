"""Training of priors: histories, densities against scipy, steps against optax, and the trained priors."""

from dataclasses import replace
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
from dre_jax.methods.hedged_prior import training as prior_training
from dre_jax.methods.hedged_prior.folds import make_folds
from dre_jax.methods.hedged_prior.length_scale_prior import LengthScalePrior
from dre_jax.methods.hedged_prior.prior import (
    LearnedPriorConfig,
    clip_prior,
    history_features,
    init,
    prior_covariance,
    uninformed_priors,
)
from dre_jax.methods.hedged_prior.training import (
    PriorTraining,
    draw_histories,
    explain_training,
    held_out_evidence,
    history_loss,
    train_priors,
)

CONFIG = LearnedPriorConfig(trend=(8, 8), layers=(8, 4), members=2, degrees_of_freedom=3.5)
TRAINING = PriorTraining(steps=200, tasks=4, rows=10, learning_rate=0.01)
ADAM = optax.adam(TRAINING.learning_rate)
COLUMNS, SLOTS, KEY = 2, 10, jax.random.key(0)
drawn = jax.jit(draw_histories, static_argnums=0)
loss_and_slope = jax.jit(jax.value_and_grad(partial(history_loss, CONFIG)))
start = jax.jit(partial(init, CONFIG, COLUMNS))


def explained(fit):
    return explain_training(int(fit.steps), float(fit.trust), fit.held_out)


def hills(shifts, seed=0):
    """Returns tasks with a shifted peak near 0.6 of the first column, each with its own offset and range."""
    rng, tasks = np.random.default_rng(seed), {}
    for shift in shifts:
        x = rng.random((40, COLUMNS), np.float32)
        y = np.exp(-10.0 * (x[:, 0] - 0.6 - shift) ** 2) + 0.05 * rng.normal(size=40)
        tasks[f"{shift}"] = Task(f"{shift}", x, 10.0 ** rng.normal() * y + rng.normal())
    return tasks


@pytest.fixture(scope="module")
def past():
    return hills(np.linspace(-0.1, 0.1, 6))


@pytest.fixture(scope="module")
def table(past):
    return build_table(past)


@pytest.fixture(scope="module")
def learned(past):
    return train_priors(CONFIG, TRAINING, past, KEY)


@pytest.fixture(scope="module")
def prior():
    return start(*jax.random.split(jax.random.key(3)))


@pytest.mark.parametrize("histories", ["best", "any"])
def test_histories_are_rows_of_one_task(histories):
    sizes = np.array([40, 5, 1, 40])
    tasks = {str(i): Task(str(i), np.zeros((n, 1), np.float32), np.arange(float(n))) for i, n in enumerate(sizes)}
    table, training = build_table(tasks), PriorTraining(tasks=4000, rows=12, min_rows=3, histories=histories)
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


def constant(n):
    """Returns the term of scipy's log-density of n responses that the code omits."""
    nu = CONFIG.degrees_of_freedom
    return gammaln((nu + n) / 2.0) - gammaln(nu / 2.0) - n / 2.0 * np.log(np.pi * nu)


@pytest.mark.parametrize("n", [2, 7, SLOTS])
def test_loss_is_scipys_density_on_the_scale_of_a_search(n, prior, prior_in_numpy):
    rng = np.random.default_rng(n)
    x, y = rng.random((n, COLUMNS), np.float32), 40.0 + 9.0 * rng.normal(size=n)
    m, parts = prior_in_numpy(prior, x.astype(float), n)
    matrix = sum(parts) + np.exp(np.float64(prior.log_noise_var)) * np.eye(n)
    nu = CONFIG.degrees_of_freedom
    expected = (constant(n) - multivariate_t(m, matrix, df=nu).logpdf(zscore(y))) / n
    assert float(loss_and_slope(prior, *history(x, y))[0]) == pytest.approx(expected, abs=1e-4)


def test_held_out_evidence_is_scipys_conditional_density(prior, prior_in_numpy):
    tasks = few(hills([0.0]), 1, 12)
    folds = make_folds(tasks, members=1, folds=2, histories=3, rows=SLOTS)
    priors = jax.tree.map(lambda a: jnp.stack([a, a + 0.1]), prior)
    found = np.asarray(held_out_evidence(CONFIG, priors, folds.table, folds.held_out))
    columns, y = np.asarray(folds.table.x, np.float64), np.asarray(folds.table.response, np.float64)
    for (j, h), value in np.ndenumerate(found):
        rows, where, context = (np.asarray(a[j, h]) for a in folds.held_out)
        chosen, known = rows[where], context[where]
        n, off = len(chosen), zscore(y[chosen])
        m, parts = prior_in_numpy(jax.tree.map(lambda a, j=j: a[j], priors), columns[chosen], n)
        matrix = sum(parts) + np.exp(np.float64(priors.log_noise_var[j])) * np.eye(n)
        every, of_context = (
            multivariate_t(m[kept], matrix[np.ix_(kept, kept)], df=CONFIG.degrees_of_freedom).logpdf(off[kept])
            - constant(kept.sum())
            for kept in (np.ones(n, bool), known)
        )
        assert value == pytest.approx(every - of_context, abs=1e-3)


def test_uninformed_priors_are_isotropic_processes(prior_in_numpy):
    x = np.random.default_rng(2).random((5, COLUMNS))
    priors = uninformed_priors(CONFIG, COLUMNS)
    for j, share in enumerate((0.1, 0.25, 0.6)):
        one = jax.tree.map(lambda a, j=j: a[j], priors)
        m, parts = prior_in_numpy(one, x, 5)
        distance = np.linalg.norm(x[:, None] - x[None], axis=-1) / (share * np.sqrt(COLUMNS))
        r = np.sqrt(5.0) * distance
        assert (m == 0.0).all()
        np.testing.assert_allclose(sum(parts), 1.0 + (1.0 + r + r**2 / 3.0) * np.exp(-r), rtol=1e-5)
        assert float(jnp.exp(one.log_noise_var)) == pytest.approx(1e-3)
        seen = history_features(CONFIG, one, jnp.asarray(x, jnp.float32), jnp.ones(5, bool))[0]
        np.testing.assert_allclose(prior_covariance(seen, seen, one), sum(parts), rtol=1e-4)


@pytest.mark.parametrize("case", ["no row", "one row", "equal responses", "equal rows", "two rows, one response off"])
def test_degenerate_histories_have_finite_losses(case, prior):
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
    """Returns the mean loss of a step's histories and its gradient by a loop, without the penalties."""
    rows, where = (np.asarray(a) for a in drawn(TRAINING, table, key))
    columns = (np.asarray(a)[rows] for a in (table.x, table.response))
    found = [loss_and_slope(prior, *one) for one in zip(*columns, where, strict=True)]
    return jax.tree.map(lambda *a: np.mean(a, axis=0), *found)


def add_costs(value, gradient, prior):
    """Adds the weight decay of both networks, and the log hyperprior over 240 trials."""
    weights = prior._asdict()
    cost = TRAINING.decay * sum((a**2).sum() for name in ("trend", "features") for a in weights[name].values())
    slopes = {
        name: {layer: g + 2.0 * TRAINING.decay * weights[name][layer] for layer, g in getattr(gradient, name).items()}
        for name in ("trend", "features")
    }
    factor = TRAINING.hyperprior / 240.0
    hyperpriors = {
        "log_slope_var": (-2.0, 1.5),
        "log_feature_var": (-0.7, 1.5),
        "log_ard_var": (-1.2, 1.0),
        "log_noise_var": (-4.6, 1.5),
    }
    hyperpriors["log_lengthscale"] = (0.5 * np.log(COLUMNS) - 0.7, 1.0)
    for name, (mean, spread) in hyperpriors.items():
        off = (np.asarray(weights[name]) - mean) / spread
        cost += factor * 0.5 * (off**2).sum()
        slopes[name] = (getattr(gradient, name) + factor * off / spread).astype(np.float32)
    return value + cost, gradient._replace(**slopes)


@jax.jit
def move(gradient, state, params):
    with jax.numpy_dtype_promotion("standard"):  # optax promotes types as it goes
        updates, state = ADAM.update(gradient, state)
        return clip_prior(optax.apply_updates(params, updates)), state


def test_steps_are_those_of_a_loop_over_members_and_histories_with_optax(learned, table):
    start_key, step_key = jax.random.split(KEY)
    trend_key, feature_key = jax.random.split(start_key)
    draw_keys = [jax.random.split(jax.random.fold_in(step_key, number), CONFIG.members) for number in range(6)]
    expected = []
    for j in range(CONFIG.members):
        params = start(*(jax.random.split(key, CONFIG.members)[j] for key in (trend_key, feature_key)))
        state = jax.jit(ADAM.init)(params)
        for keys in draw_keys:
            value, gradient = add_costs(*step(table, params, keys[j]), params)
            params, state = move(gradient, state, params)
            expected.append(float(value))
    # The length of Adam's first step does not depend on the size of the gradient, even if that is rounding error.
    np.testing.assert_allclose(learned.losses[:6], np.reshape(expected, (CONFIG.members, 6)).mean(axis=0), rtol=1e-3)


def held_out_loss(prior):
    """Returns the mean loss over 80 histories of tasks that are not training data."""
    table = build_table(hills(np.linspace(-0.09, 0.08, 6), seed=9))
    return np.mean([step(table, prior, key)[0] for key in jax.random.split(jax.random.key(7), 20)])


def test_common_trend_is_learned(learned, past, prior, prior_in_numpy):
    priors = learned.priors
    assert learned.losses.shape == (TRAINING.steps,)
    assert explained(learned) == "200 steps, as given; trust 0.30"
    assert float(learned.trust) == pytest.approx(TRAINING.trust)
    jax.tree.map(np.testing.assert_array_equal, learned, train_priors(CONFIG, TRAINING, past, KEY))
    members = [jax.tree.map(lambda a, j=j: np.asarray(a[j]), priors) for j in range(CONFIG.members)]
    x = np.stack([np.linspace(0.0, 1.0, 41), np.full(41, 0.5)], axis=1)
    trends = [prior_in_numpy(member, x, 0)[0] for member in members]
    untrained = held_out_loss(prior)
    for member, trend in zip(members, trends, strict=True):
        assert held_out_loss(member) < untrained - 0.2
        assert x[trend.argmax(), 0] == pytest.approx(0.6, abs=0.1)
    assert np.abs(trends[0] - trends[1]).max() > 1e-3


def few(tasks, count, rows):
    chosen = list(tasks.values())[:count]
    return {task.name: Task(task.name, task.X[:rows], task.y[:rows]) for task in chosen}


CHOSEN = PriorTraining(tasks=4, rows=10, learning_rate=0.03)


@pytest.fixture(scope="module")
def chosen(past):
    """Returns fits with a selected number of steps, to six tasks and to one short task."""
    cases = {"six tasks": past, "one short task": few(past, 1, 10)}
    before = prior_training._descend._cache_size()
    found = {name: train_priors(CONFIG, CHOSEN, tasks, KEY) for name, tasks in cases.items()}
    # Members and folds are trained by one program, for each of two shapes.
    assert prior_training._descend._cache_size() - before == 2
    return found


def test_held_out_trials_choose_the_number_of_steps(chosen):
    six, one = chosen["six tasks"], chosen["one short task"]
    for fit in chosen.values():
        assert fit.losses.shape == (int(fit.steps),)
    assert int(one.steps) < int(six.steps)
    assert (int(six.held_out.tasks), int(six.held_out.folds), bool(six.held_out.by_rows)) == (6, 4, False)
    assert bool(one.held_out.by_rows)
    assert explained(six).startswith(f"{int(six.steps)} steps, chosen by 4 folds of 6 tasks: ")
    assert "halves of 1 task:" in explained(one)


def test_members_are_those_of_a_training_of_the_chosen_length(chosen, past):
    """The folds that are trained in the same program do not change the members."""
    six, one = chosen["six tasks"], chosen["one short task"]
    again = train_priors(CONFIG, replace(CHOSEN, steps=int(one.steps)), few(past, 1, 10), KEY)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), one.priors, again.priors)
    assert six.priors.log_slope_var.shape == again.priors.log_slope_var.shape == (CONFIG.members,)


def test_trust_is_high_if_past_tasks_predict_each_other(chosen):
    trust = {name: float(fit.trust) for name, fit in chosen.items()}
    assert float(chosen["six tasks"].held_out.learned) > float(chosen["six tasks"].held_out.uninformed) + 0.2
    # Six tasks and three prior ones, of which 0.3 favour the learned priors: at most 6.9 / 9.
    assert 0.65 < trust["six tasks"] < 6.91 / 9.0
    # One task at most: between 0.9 / 4 and 1.9 / 4.
    assert 0.22 < trust["one short task"] < 0.48


def test_length_scales_begin_with_those_of_past_tasks(past):
    lengths = LengthScalePrior(jnp.array([-1.5, 0.5]), jnp.ones(2), jnp.float32(-4.0), jnp.float32(1.0))
    fit = train_priors(CONFIG, replace(TRAINING, steps=1), past, KEY, lengths)
    # Adam's first step is as long as the learning rate.
    np.testing.assert_allclose(
        fit.priors.log_lengthscale, [[-1.5, 0.5]] * CONFIG.members, atol=1.01 * TRAINING.learning_rate
    )
    assert (np.ptp(fit.priors.trend["hidden_0_kernel"], axis=0) > 0.0).all()


def test_numbers_out_of_range_are_refused():
    for field, value in (
        ("steps", 0),
        ("tasks", 0),
        ("min_rows", 1),
        ("rows", 3),
        ("learning_rate", 0.0),
        ("decay", -1.0),
        ("hyperprior", -1.0),
        ("folds", 0),
        ("patience", 0),
        ("trust", 1.0),
        ("trust_strength", 0.0),
    ):
        with pytest.raises(ConfigError, match=field):
            PriorTraining(**{field: value})
