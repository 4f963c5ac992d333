"""What every registered method promises, in one tiny shape: a new one is tested by being registered."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import Task
from dre_jax.data.tasks import sort_task, tie_levels, unit_scale
from dre_jax.methods import METHODS
from dre_jax.methods.foreign import host_of, load_class
from dre_jax.search import SearchTask, run, run_tasks
from dre_jax.search.acquisition import pick
from dre_jax.search.history import Candidates, History
from dre_jax.search.host import run_host
from dre_jax.search.loop import begin, trial_keys

COMPILED = [name for name, entry in METHODS.items() if entry.host is None]
HOST = [name for name, entry in METHODS.items() if entry.host is not None]
ROWS, COLUMNS, TRIALS = 16, 2, 3
DESIGN = np.array([13, 4, 9], np.int32)
CAPACITY = len(DESIGN) + TRIALS - 1


@partial(jax.jit, static_argnames="method")
def step(method, params, state, history, candidates, key):
    """Values, the state after them, and the row that is picked: one trial, as the protocol has it."""
    method_key, choice_key = trial_keys(key, jnp.sum(history.where) - len(DESIGN))
    if state is None:
        values = method.acquire(params, history, candidates, method_key)
    else:
        values, state = method.advance(state, history, candidates, method_key)
    return values, state, pick(values, candidates.where, choice_key)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    task = sort_task(
        Task("new", rng.uniform(size=(ROWS, COLUMNS)).astype(np.float32), np.round(rng.normal(size=ROWS), 1))
    )
    return SearchTask(*map(jnp.asarray, (task.x, task.response, task.level)), jnp.ones(ROWS, bool))


def history_of(x, y, rubbish=0.0):
    """A history of fewer trials than it has room for, and rubbish in the empty slots."""
    filled, empty = np.arange(CAPACITY) < len(y), CAPACITY - len(y)
    return History(
        jnp.asarray(np.pad(x, ((0, empty), (0, 0)), constant_values=rubbish), jnp.float32),
        jnp.asarray(np.pad(unit_scale(y), (0, empty), constant_values=rubbish), jnp.float32),
        jnp.asarray(np.pad(tie_levels(y), (0, empty), constant_values=1)),
        jnp.asarray(filled),
    )


def values_of(fitted, history, candidates, columns=COLUMNS):
    method, params = fitted
    key = jax.random.key(5)
    values = step(method, params, begin(method, params, columns, key), history, candidates, key)[0]
    return np.asarray(values)[np.asarray(candidates.where)]


def loop(method, params, table, key):
    """The picks of a run, by a plain loop over the one protocol."""
    rows, state = DESIGN.tolist(), begin(method, params, COLUMNS, key)
    level = np.asarray(table.level)
    while len(rows) < len(DESIGN) + TRIALS and level[rows].min() > 0:
        history = history_of(np.asarray(table.x)[rows], np.asarray(table.response)[rows])
        left = jnp.asarray(~np.isin(np.arange(ROWS), rows))
        _, state, row = step(method, params, state, history, Candidates(table.x, left), key)
        rows.append(int(row))
    picks = rows[len(DESIGN) :]
    return picks + [-1] * (TRIALS - len(picks))


@pytest.mark.parametrize("name", COMPILED)
class TestCompiled:
    def test_the_scanned_run_is_the_plain_loop_and_repeats(self, name, table, fitted):
        method, params = fitted(name)
        assert (params is not None) == METHODS[name].transfer
        scanned = jax.jit(partial(run, method, n_trials=TRIALS))
        for seed in range(3):
            key = jax.random.key(seed)
            picks = scanned(params, table, jnp.asarray(DESIGN), key).tolist()
            assert picks == loop(method, params, table, key)
            # HPO-B scales responses with the whole table; a quarter of it is exact in floating point.
            quarter = table._replace(response=0.25 * table.response)
            assert picks == scanned(params, quarter, jnp.asarray(DESIGN), key).tolist()
            made = [row for row in picks if row >= 0]
            assert len({*DESIGN.tolist(), *made}) == len(DESIGN) + len(made)

    def test_empty_slots_change_nothing(self, name, table, fitted):
        rng = np.random.default_rng(7)
        x, y = rng.uniform(size=(4, COLUMNS)), np.array([0.25, 1.0, 0.5, 0.75])
        candidates = Candidates(table.x, jnp.arange(ROWS) % 3 > 0)
        values = values_of(fitted(name), history_of(x, y), candidates)
        np.testing.assert_array_equal(values_of(fitted(name), history_of(x, y, rubbish=3.0), candidates), values)

    def test_hard_histories_give_values_that_can_be_compared(self, name, fitted):
        check_hard_histories(fitted(name), COLUMNS)


def check_hard_histories(fitted, columns):
    rng = np.random.default_rng(0)
    x, y, new = rng.uniform(size=(CAPACITY, columns)), rng.uniform(size=CAPACITY), rng.uniform(size=(ROWS, columns))
    copies = lambda rows: np.repeat(x[:1], rows, axis=0)  # noqa: E731
    cases = {
        "one trial": (x[:1], y[:1], new),
        "equal rows": (copies(CAPACITY), y, copies(ROWS)),
        "equal responses": (x, np.full(CAPACITY, 0.5), new),
        "constant columns": (np.zeros_like(x), y, np.zeros_like(new)),
        "candidates that were tried": (x, y, x[np.arange(ROWS) % CAPACITY]),
        "far outlier": (x, np.where(np.arange(CAPACITY) == 2, 0.0, 1.0 - 1e-7 * y), new),
    }
    for case, (tried, response, rows) in cases.items():
        candidates = Candidates(jnp.asarray(rows, jnp.float32), jnp.arange(ROWS) < ROWS - 3)
        assert not np.isnan(values_of(fitted, history_of(tried, response), candidates, columns)).any(), case


@pytest.mark.thorough
@pytest.mark.parametrize("columns", [1, 64])
@pytest.mark.parametrize("name", COMPILED)
def test_hard_histories_of_one_column_and_of_many(name, columns, fitted):
    check_hard_histories(fitted(name, columns), columns)


def host(name):
    np.random.seed(0)  # noqa: NPY002 - what host methods draw from
    return load_class(host_of(name))()


@pytest.mark.parametrize("name", HOST)
def test_host_methods(name):
    pytest.importorskip({"rf": "sklearn", "smac": "smac"}.get(name, "optuna"))
    rng = np.random.default_rng(2)
    x, y, left = rng.uniform(size=(6, COLUMNS)), rng.uniform(size=(6, 1)), rng.uniform(size=(9, COLUMNS))
    for tried, response in ((x, y), (x[:1], y[:1]), (x, np.full_like(y, 0.5)), (np.repeat(x[:1], 6, axis=0), y)):
        picked = host(name).observe_and_suggest(tried, response, left)
        assert 0 <= picked < len(left)
        assert picked == host(name).observe_and_suggest(tried, response, left)
        assert picked == host(name).observe_and_suggest(tried, 0.25 * response, left)


def table_of(rows):
    """Every row twice, and responses in steps of a thousandth, so that of many rows hundreds are tied."""
    x = np.repeat(np.random.default_rng(0).random((rows // 2, 3), np.float32), 2, axis=0)
    return Task("one", x, np.round(1.0 - np.linalg.norm(x.astype(np.float64) - 0.3, axis=1), 3))


def trace_of(name, fitted, task, design):
    if name in HOST:
        return run_host(host(name), task.X, task.y, design, 2, name=name)
    method, params = fitted(name, 3)
    designs = {task.name: {"test0": design}}
    return next(run_tasks(method, params, {task.name: task}, designs, n_trials=2, key=jax.random.key(1)))[2]


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [6, 200_000])
@pytest.mark.parametrize("name", [*COMPILED, *HOST])
def test_a_run_on_few_rows_and_on_many(name, rows, fitted):
    task = table_of(rows)
    design = np.linspace(0, rows - 1, 5).astype(int)
    scaled = (task.y - task.y.min()) / (task.y.max() - task.y.min())
    trace = np.asarray(trace_of(name, fitted, task, design))
    assert trace.shape == (3,)
    assert trace[0] == pytest.approx(scaled[design].max(), abs=1e-12)
    # An incumbent is a row's response, and no design's row: a pick that is none of the table's would show.
    assert np.isclose(trace[:, None], scaled[None, :], rtol=0, atol=1e-12).any(axis=1).all()
    if rows == 6:  # one row is left after the design, so that the run has seen all
        assert trace[-1] == 1.0
