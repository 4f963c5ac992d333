"""Training of priors: histories, densities against scipy, steps against optax, and the trained priors."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.spatial.distance import pdist
from scipy.special import gammaln
from scipy.stats import multivariate_t

from dre_jax.data import Task, build_table
from dre_jax.data.folds import Folds, make_folds
from dre_jax.gp.cholesky import safe_cholesky
from dre_jax.gp.length_scale_prior import LengthScalePrior
from dre_jax.gp.regression import add_noise
from dre_jax.methods.hedged_prior import training
from dre_jax.methods.hedged_prior.hedged_prior import explain_training
from dre_jax.methods.hedged_prior.held_out import held_out_evidence, uninformed_priors
from dre_jax.methods.hedged_prior.priors import LearnedPriorConfig, clip_prior, history_features, init, prior_covariance
from dre_jax.methods.hedged_prior.training import PriorTraining, draw_histories, history_loss, train_priors
from dre_jax.runtime.reports import Progress, listening
from tests.oracles import compressed_scores, history_of, in_slots, learned_prior, matern52

CONFIG = LearnedPriorConfig(trend=(8, 8), layers=(8, 4), members=2, degrees_of_freedom=3.5)
TRAINING = PriorTraining(steps=200, tasks=4, rows=10, learning_rate=0.01)
ADAM = optax.adam(TRAINING.learning_rate)
COLUMNS, SLOTS, KEY = 2, 10, jax.random.key(0)
drawn = jax.jit(draw_histories, static_argnums=0)
loss_and_slope = jax.jit(jax.value_and_grad(partial(history_loss, CONFIG)))
start = jax.jit(partial(init, CONFIG, COLUMNS))


def explained(fit):
    return explain_training(int(fit.steps), float(fit.transfer_probability), fit.held_out)


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
    return history_of(*in_slots(SLOTS, x, y))


def constant(n):
    """Returns the term of scipy's log-density of n responses that the code omits."""
    nu = CONFIG.degrees_of_freedom
    return gammaln((nu + n) / 2.0) - gammaln(nu / 2.0) - n / 2.0 * np.log(np.pi * nu)


@pytest.mark.parametrize("n", [2, 7, SLOTS])
def test_loss_is_scipys_density_on_the_scale_of_a_search(n, prior):
    rng = np.random.default_rng(n)
    x, y = rng.random((n, COLUMNS), np.float32), 40.0 + 9.0 * rng.normal(size=n)
    m, parts = learned_prior(prior, x.astype(float), n)
    matrix = sum(parts) + np.exp(np.float64(prior.log_noise_var)) * np.eye(n)
    nu = CONFIG.degrees_of_freedom
    expected = (constant(n) - multivariate_t(m, matrix, df=nu).logpdf(compressed_scores(y))) / n
    assert float(loss_and_slope(prior, history(x, y))[0]) == pytest.approx(expected, abs=1e-4)


def test_held_out_evidence_is_scipys_conditional_density(prior):
    tasks = few(hills([0.0]), 1, 12)
    folds = make_folds(tasks, members=1, folds=2, histories=3, rows=SLOTS)
    priors = jax.tree.map(lambda a: jnp.stack([a, a + 0.1]), prior)
    result = np.asarray(held_out_evidence(CONFIG, priors, folds.table, folds.held_out))
    columns, y = np.asarray(folds.table.x, np.float64), np.asarray(folds.table.response, np.float64)
    for (j, h), value in np.ndenumerate(result):
        rows, where, context = (np.asarray(a[j, h]) for a in folds.held_out)
        chosen, in_context = rows[where], context[where]
        n, off = len(chosen), compressed_scores(y[chosen])
        m, parts = learned_prior(jax.tree.map(lambda a, j=j: a[j], priors), columns[chosen], n)
        matrix = sum(parts) + np.exp(np.float64(priors.log_noise_var[j])) * np.eye(n)
        every, of_context = (
            multivariate_t(m[selected], matrix[np.ix_(selected, selected)], df=CONFIG.degrees_of_freedom).logpdf(
                off[selected]
            )
            - constant(selected.sum())
            for selected in (np.ones(n, bool), in_context)
        )
        assert value == pytest.approx(every - of_context, abs=1e-3)


def test_uninformed_priors_are_isotropic_processes():
    x = np.random.default_rng(2).random((5, COLUMNS))
    priors = uninformed_priors(CONFIG, COLUMNS)
    for j, share in enumerate((0.1, 0.25, 0.6)):
        one = jax.tree.map(lambda a, j=j: a[j], priors)
        m, parts = learned_prior(one, x, 5)
        assert (m == 0.0).all()
        np.testing.assert_allclose(sum(parts), 1.0 + matern52(x / (share * np.sqrt(COLUMNS))), rtol=1e-5)
        assert float(jnp.exp(one.log_noise_var)) == pytest.approx(1e-3)
        at = history_features(one, history_of(*in_slots(5, x, np.zeros(5))))[0]
        np.testing.assert_allclose(prior_covariance(at, at, one), sum(parts), rtol=1e-4)


def test_histories_without_differences_have_no_loss_and_others_a_finite_one(prior):
    rng = np.random.default_rng(0)
    x, y = rng.random((6, COLUMNS)), rng.normal(size=6)
    for rows, responses in ((x[:1], y[:1]), (x, np.full(6, 0.1))):
        assert not any(np.any(leaf) for leaf in jax.tree.leaves(loss_and_slope(prior, history(rows, responses))))
    odd = np.repeat(x[:2], 3, axis=0), np.where(np.arange(6) == 2, 1e6, 1.0)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(loss_and_slope(prior, history(*odd))))


def step(table, prior, key):
    """Returns the mean loss of a step's histories and its gradient by a loop, without the penalties."""
    rows, where = (np.asarray(a) for a in drawn(TRAINING, table, key))
    columns = (np.asarray(a)[rows] for a in (table.x, table.response))
    result = [loss_and_slope(prior, history_of(*one)) for one in zip(*columns, where, strict=True)]
    return jax.tree.map(lambda *a: np.mean(a, axis=0), *result)


HYPERPRIORS = {
    "log_slope_var": (-2.0, 1.5),
    "log_feature_var": (-0.7, 1.5),
    "log_ard_var": (-1.2, 1.0),
    "log_noise_var": (-4.6, 1.5),
    "log_lengthscale": (0.5 * np.log(COLUMNS) - 0.7, 1.0),
}


@jax.jit
@jax.value_and_grad
def costs(prior):
    """Returns the weight decay of both networks plus the log hyperprior over 240 trials."""
    decay = sum(jnp.sum(a**2) for a in jax.tree.leaves((prior.trend, prior.features)))
    off = [(getattr(prior, name) - mean) / spread for name, (mean, spread) in HYPERPRIORS.items()]
    return TRAINING.decay * decay + TRAINING.hyperprior / 240.0 * 0.5 * sum(jnp.sum(a**2) for a in off)


@jax.jit
def move(gradient, state, params):
    with jax.numpy_dtype_promotion("standard"):  # optax promotes types as it goes
        updates, state = ADAM.update(gradient, state)
        return clip_prior(optax.apply_updates(params, updates)), state


@pytest.mark.slow
def test_steps_are_those_of_a_loop_over_members_and_histories_with_optax(learned, table):
    start_key, step_key = jax.random.split(KEY)
    trend_key, feature_key = jax.random.split(start_key)
    draw_keys = [jax.random.split(jax.random.fold_in(step_key, number), CONFIG.members) for number in range(6)]
    expected = []
    for j in range(CONFIG.members):
        params = start(*(jax.random.split(key, CONFIG.members)[j] for key in (trend_key, feature_key)))
        state = jax.jit(ADAM.init)(params)
        for keys in draw_keys:
            value, gradient = jax.tree.map(lambda a, b: a + b, step(table, params, keys[j]), costs(params))
            params, state = move(gradient, state, params)
            expected.append(float(value))
    # The length of Adam's first step does not depend on the size of the gradient, even if that is rounding error.
    np.testing.assert_allclose(learned.losses[:6], np.reshape(expected, (CONFIG.members, 6)).mean(axis=0), rtol=1e-3)


def test_common_trend_is_learned(learned, past):
    priors = learned.priors
    assert learned.losses.shape == (TRAINING.steps,)
    assert explained(learned) == "200 steps, as given; transfer probability 0.30"
    assert float(learned.transfer_probability) == pytest.approx(TRAINING.transfer_probability)
    reports = []
    with listening(reports.append):
        jax.tree.map(np.testing.assert_array_equal, learned, train_priors(CONFIG, TRAINING, past, KEY))
    assert reports[0] == Progress("compiling the training of priors")
    steps = [report.done for report in reports[1:]]
    assert steps == sorted(set(steps))
    assert steps[-1] == TRAINING.steps
    members = [jax.tree.map(lambda a, j=j: np.asarray(a[j]), priors) for j in range(CONFIG.members)]
    x = np.stack([np.linspace(0.0, 1.0, 41), np.full(41, 0.5)], axis=1)
    trends = [learned_prior(member, x, 0)[0] for member in members]
    for trend in trends:
        assert x[trend.argmax(), 0] == pytest.approx(0.6, abs=0.1)
    assert np.abs(trends[0] - trends[1]).max() > 1e-3


def few(tasks, count, rows):
    chosen = list(tasks.values())[:count]
    return {task.name: Task(task.name, task.X[:rows], task.y[:rows]) for task in chosen}


CHOSEN = PriorTraining(tasks=4, rows=10, learning_rate=0.03, patience=2)


@pytest.fixture(scope="module")
def chosen(past):
    """Returns fits with a selected number of steps, to six tasks and to one short task."""
    cases = {"six tasks": past, "one short task": few(past, 1, 10)}
    jax.clear_caches()  # a test that ran before in this process may have compiled one of them
    before = training.descend_priors._cache_size()
    result = {name: train_priors(CONFIG, CHOSEN, tasks, KEY) for name, tasks in cases.items()}
    # Members and folds are trained by one program, for each of two shapes.
    assert training.descend_priors._cache_size() - before == 2
    return result


@pytest.mark.slow
def test_held_out_trials_choose_the_number_of_steps(chosen):
    six, one = chosen["six tasks"], chosen["one short task"]
    for fit in chosen.values():
        assert fit.losses.shape == (int(fit.steps),)
    assert int(one.steps) < int(six.steps)
    assert (int(six.held_out.tasks), int(six.held_out.folds), bool(six.held_out.by_rows)) == (6, 4, False)
    assert bool(one.held_out.by_rows)
    assert explained(six).startswith(f"{int(six.steps)} steps, chosen by 4 folds of 6 tasks: ")
    assert "halves of 1 task:" in explained(one)


@pytest.mark.parametrize(
    ("scores", "steps"),
    [((1.0, 3.0, 2.0, 2.5), 75), ((np.nan, -2.0, -3.0, np.inf), 75), ((1.0, 2.0, 3.0, 4.0), 300)],
)
def test_steps_have_the_highest_evidence_and_twice_as_many_if_it_still_increases(past, scores, steps, monkeypatch):
    values = iter([*scores, 0.0])  # the last one is without past tasks
    monkeypatch.setattr(Folds, "mean_a_trial", lambda *_: next(values))
    monkeypatch.setattr(training, "_CHECKPOINTS", (50, 75, 100, 150))
    fit = train_priors(CONFIG, CHOSEN, few(past, 1, 10), KEY)
    assert (int(fit.steps), len(fit.losses)) == (steps, steps)
    assert float(fit.held_out.learned) == scores[1 if steps == 75 else -1]


@pytest.mark.slow
def test_members_are_those_of_a_training_of_the_chosen_length(chosen, past):
    """The folds that are trained in the same program do not change the members."""
    six, one = chosen["six tasks"], chosen["one short task"]
    again = train_priors(CONFIG, replace(CHOSEN, steps=int(one.steps)), few(past, 1, 10), KEY)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-3, atol=1e-4), one.priors, again.priors)
    assert six.priors.log_slope_var.shape == again.priors.log_slope_var.shape == (CONFIG.members,)


def test_held_out_evidence_without_past_tasks_is_of_the_mean_likelihood(chosen, past):
    folds = make_folds(past, members=CONFIG.members, folds=CHOSEN.folds, histories=64, rows=CHOSEN.rows)
    priors = uninformed_priors(CONFIG, COLUMNS)
    stacked = [jax.tree.map(lambda a, j=j: jnp.stack([a[j]] * CHOSEN.folds), priors) for j in range(3)]
    each = [held_out_evidence(CONFIG, one, folds.table, folds.held_out) for one in stacked]
    trials = (np.asarray(folds.held_out.where) & ~np.asarray(folds.held_out.context)).sum(axis=-1)
    result = np.log(np.mean(np.exp(np.array(each, np.float64)), axis=0)) / trials
    expected = np.mean([result[folds.task == i].mean() for i in range(6)])
    assert float(chosen["six tasks"].held_out.uninformed) == pytest.approx(expected, abs=1e-4)


def test_the_transfer_probability_is_high_if_past_tasks_predict_each_other(chosen):
    probability = {name: float(fit.transfer_probability) for name, fit in chosen.items()}
    assert float(chosen["six tasks"].held_out.learned) > float(chosen["six tasks"].held_out.uninformed) + 0.2
    # Six tasks and three prior ones, of which 0.3 favour the learned priors: at most 6.9 / 9.
    assert 0.65 < probability["six tasks"] < 6.91 / 9.0
    # One task at most: between 0.9 / 4 and 1.9 / 4.
    assert 0.22 < probability["one short task"] < 0.48


def test_length_scales_begin_with_those_of_past_tasks(past):
    lengths = LengthScalePrior(jnp.array([-1.5, 0.5]), jnp.ones(2), jnp.float32(-4.0), jnp.float32(1.0))
    fit = train_priors(CONFIG, replace(TRAINING, steps=1), past, KEY, lengths)
    # Adam's first step is as long as the learning rate.
    expected, step = [[-1.5, 0.5]] * CONFIG.members, TRAINING.learning_rate
    np.testing.assert_allclose(fit.priors.log_lengthscale, expected, atol=1.01 * step)
    assert (np.ptp(fit.priors.trend["hidden_0_kernel"], axis=0) > 0.0).all()


WIDE = LearnedPriorConfig(trend=(8,), layers=(32, 32, 32, 32))


@jax.jit
def clip_and_factorise(prior, x):
    """Returns the clipped prior and the jitter of its covariance."""
    clipped = clip_prior(prior)
    at = clipped.compute_features(x)
    matrix = add_noise(prior_covariance(at, at, clipped), jnp.exp(clipped.log_noise_var), jnp.ones(len(x), bool))
    return clipped, safe_cholesky(matrix)[1]


def test_initial_and_clipped_priors():
    """Features and scaled columns suit a kernel of length scale one, and no bounds need jitter."""
    x = np.random.default_rng(0).random((40, 8), np.float32)
    prior = jax.jit(init, static_argnums=(0, 1))(WIDE, 8, *jax.random.split(jax.random.key(0)))
    at = jax.jit(type(prior).compute_features)(prior, x)
    for z in (np.asarray(at.features), np.asarray(at.scaled_columns)):
        assert 0.3 < np.median(pdist(z)) < 4.0
    for sign in (-1, 1):
        far = prior._replace(**{name: getattr(prior, name) + sign * 1e3 for name in prior._fields[2:]})
        assert float(clip_and_factorise(far, x)[1]) == 0.0
    jax.tree.map(np.testing.assert_array_equal, clip_and_factorise(prior, x)[0], prior)
