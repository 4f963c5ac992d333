"""What every registered method promises, in one tiny shape: a new one is tested by being registered."""

import math
import random

import jax
import numpy as np
import pytest

from dre_jax import Categorical, Float, Int, Optimizer, Space, Surrogate, Task, testing
from dre_jax.methods import METHODS
from dre_jax.methods.registry import host_of
from dre_jax.search import run_in_python, run_tasks
from dre_jax.search.host import run_host
from dre_jax.search.loop import jitted_value
from dre_jax.search.method import as_padding
from dre_jax.testing.cases import DESIGN, N_SLOTS, N_TRIALS, table, usual_case
from tests.known_methods import by_class

COMPILED = [name for name, entry in METHODS.items() if entry.host is None]
HOST = [name for name, entry in METHODS.items() if entry.host is not None]
FIRST = sorted({type(METHODS[name].default): name for name in reversed(COMPILED)}.values())  # one of each class
GOLDEN = {"dre": [0, 5, 14], "gp": [0, 7, 11], "hedged-prior": [0, 7, 10], "random": [12, 7, 8]}
"""Picks as recorded, each a hundredth of the range of values, or more, before the next; of `gp` the first a ten
thousandth. These methods run with JAX's own settings in every .ci/run."""
COLUMNS = 2
DRAWING = ("random", "hebo", "gcp-ts")
"""Methods that draw for each candidate, so that a value belongs to a slot."""


@pytest.fixture(scope="module")
def padded():
    return table(COLUMNS, N_SLOTS)


def by_tier(names, quick, marks=()):
    """Parameters of a test: one method in the quick tier, the others thoroughly."""
    marks_by_name = {name: [*[pytest.mark.thorough] * (name != quick), *dict(marks).get(name, [])] for name in names}
    return [pytest.param(name, marks=marks) for name, marks in marks_by_name.items()]


@pytest.mark.parametrize("name", by_tier(COMPILED, "dre", {"hedged-prior": [pytest.mark.defaults]}))
def test_the_scanned_run_is_the_plain_loop_of_a_padded_table(name, fitted):
    testing.check_runs(*fitted(name))


AS_USERS_COMPILE = {name: (pytest.mark.defaults,) for name in GOLDEN if name != "dre"}  # one program of "dre" is enough


@pytest.mark.parametrize("name", by_class(COMPILED, AS_USERS_COMPILE))
def test_all_that_one_program_can_show(name, fitted):
    """What a method can do, what changes no value and no order, and hard histories."""
    method, params = fitted(name)
    assert (params is not None) == METHODS[name].transfer
    testing.check_capabilities(METHODS[name].default)
    testing.check_empty_slots(method, params)
    if name not in DRAWING:
        testing.check_candidates_in_any_order(method, params)
    testing.check_compiled_once(method, params)
    testing.check_degenerate_histories(method, params)
    # HPO-B scales responses with the whole table; a quarter of it is exact in floating point.
    history, candidates = usual_case(COLUMNS)
    quarter = history._replace(response=0.25 * history.response)
    orders = [
        np.argsort(np.asarray(jitted_value(method, params, one, candidates, jax.random.key(5)))[candidates.where])
        for one in (history, quarter)
    ]
    np.testing.assert_array_equal(*orders)


@pytest.mark.slow
@pytest.mark.parametrize("name", by_tier(COMPILED, "hedged-prior"))
def test_values_side_by_side_and_traced_again(name, fitted):
    testing.check_keys(*fitted(name))
    testing.check_vmap(*fitted(name))


@pytest.mark.defaults
@pytest.mark.parametrize("name", GOLDEN)
def test_golden_picks(name, padded, fitted):
    """Also beyond the optimum, which most methods find at once."""
    picks = run_in_python(*fitted(name), padded, np.array(DESIGN), jax.random.key(0), N_TRIALS, stop_at_optimum=False)
    assert picks.tolist() == GOLDEN[name]


@pytest.mark.parametrize("name", [name for name in FIRST if as_padding(METHODS[name].default)])
def test_columns_of_zeros_change_nothing(name, fitted):
    testing.check_padded_columns(*fitted(name))


OFTEN = [(name, 64) for name in ("dngo", "fsbo")]
AT_LENGTH = [(name, columns) for name in COMPILED for columns in (1, 64)]


@pytest.mark.parametrize(
    ("name", "columns"),
    [pytest.param(*case, marks=[] if case in OFTEN else pytest.mark.thorough) for case in AT_LENGTH],
)
def test_hard_histories_of_one_column_and_of_many_after_many_steps(name, columns, fitted):
    testing.check_degenerate_histories(*fitted(name, columns, times=50), columns)


MODULES = {"scikit-learn": "sklearn", "smac": "smac", "optuna": "optuna"}


def host(name, seed=0):
    """An object for a run with a seed."""
    pytest.importorskip(MODULES[METHODS[name].library], reason=f"the extra {METHODS[name].extra} is not installed")
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - what host methods draw from
    return host_of(name)()


def odd_tables():
    rng = np.random.default_rng(0)
    x = rng.random((20, 3)).astype(np.float32)
    yield "constant response", x, np.full(20, 0.7)
    yield "tied responses", x, np.repeat([0.1, 0.2], 10)
    yield "equal rows", np.repeat(x[:4], 5, axis=0), rng.random(20)
    yield "constant columns", np.concatenate([x, np.ones((20, 2)), np.zeros((20, 1))], axis=1), rng.random(20)
    yield "one column", x[:, :1], rng.random(20)
    yield "many columns", rng.random((20, 64)), rng.random(20)
    yield "five rows", x[:5], rng.random(5)
    yield "ends of the range", np.round(x), rng.random(20)


@pytest.mark.parametrize("name", HOST)
class TestHost:
    @pytest.mark.parametrize("design", [[1, 2, 3], pytest.param([0], marks=pytest.mark.thorough)])
    def test_odd_tables(self, name, design):
        for what, x, y in odd_tables():
            trace = run_host(host(name, 1), x, y, np.array(design), 14)
            assert np.isfinite(trace).all(), what
            assert len(trace) == 15
            assert trace[-1] == 1.0 or len(x) > 15 or what == "constant response", what

    def test_the_seed_decides_at_any_scale(self, name):
        rng = np.random.default_rng(3)
        x, y, design = rng.random((60, 3)), rng.random(60), np.arange(5)
        np.testing.assert_array_equal(*(run_host(host(name, 8), x, y, design, 12) for _ in range(2)))
        for points in (x[:1], x[:6], np.repeat(x[:1], 6, axis=0)):
            response = y[: len(points), None]
            # A quarter of the table's scale is exact in floating point.
            picks = {host(name, 8).observe_and_suggest(points, scale * response, x[6:]) for scale in (1.0, 0.25)}
            assert len(picks) == 1


def table_of(rows):
    """Every row twice, and responses in steps of a thousandth, so that of many rows hundreds are tied."""
    x = np.repeat(np.random.default_rng(0).random((rows // 2, 3), np.float32), 2, axis=0)
    return Task("one", x, np.round(1.0 - np.linalg.norm(x.astype(np.float64) - 0.3, axis=1), 3))


def trace_of(name, fitted, task, design):
    if name in HOST:
        return run_host(host(name), task.X, task.y, design, 2)
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


KERNEL, DEGREE = Categorical(["rbf", "poly"]), Int(2, 5, when={"kernel": "poly"})
SPACE = Space({"x": Float(1e-3, 1.0, log=True), "kernel": KERNEL, "degree": DEGREE})


@pytest.mark.thorough
@pytest.mark.parametrize("name", COMPILED)
def test_as_a_tuner(name, fitted):
    """From nothing, with trials that run, failed, are infinite or equal: valid, new, and the same again."""
    surrogate = Surrogate(SPACE, name, *fitted(name, SPACE.layout.n_columns))

    def run():
        optimizer = Optimizer(SPACE, surrogate, seed=2)
        for value in (1.0, math.inf, math.nan, 1.0, None):
            trial = optimizer.ask()
            if value is not None:
                optimizer.tell(trial, value)
        return [trial.params for trial in (*optimizer.trials, *optimizer.ask(2))]

    suggested = run()
    assert all(SPACE.check(params) == params for params in suggested)
    assert len({tuple(params.items()) for params in suggested}) == 7
    assert run() == suggested
