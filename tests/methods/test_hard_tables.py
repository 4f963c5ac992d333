"""Every method on tables that break a careless one: no NaN that decides, no end before its time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import SearchSpace, Task
from dre_jax.methods import METHODS
from dre_jax.search import run_tasks
from dre_jax.search.history import Candidates, History
from dre_jax.search.host import run_host

COMPILED = [name for name, entry in METHODS.items() if entry.host is None]
# These differ from a method above by a loss or a number alone.
ALIKE = ("-ri", "dre-paper", "pointwise", "pairwise", "listwise")
CAPACITY, N = 8, 20


def tables(columns):
    """Histories and candidates of one shape, stacked: rows of eight slots, and what is hard about them."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(CAPACITY, columns))
    new = rng.uniform(size=(N, columns))
    y = rng.uniform(size=CAPACITY)
    constant = np.full(CAPACITY, 0.5)
    cases = {
        "one trial": (x, y, 1, new),
        "equal rows": (np.repeat(x[:1], CAPACITY, axis=0), y, 7, np.repeat(x[:1], N, axis=0)),
        "equal responses": (x, constant, 6, new),
        "two values": (x, (y > 0.5).astype(float), 8, new),
        "constant columns": (np.zeros_like(x), y, 6, np.zeros_like(new)),
        "candidates that were tried": (x, y, 8, np.concatenate([x, x, x])[:N]),
        "far outlier": (x, np.where(np.arange(CAPACITY) == 2, 0.0, 1.0 - 1e-7 * y), 8, new),
    }
    level = [np.unique(-y, return_inverse=True)[1] for _, y, _, _ in cases.values()]
    fields = zip(*cases.values(), strict=True)
    xs, ys, counts, news = (np.stack(field) for field in fields)
    where = np.arange(CAPACITY) < counts[:, None]
    history = History(
        jnp.asarray(xs, jnp.float32),
        jnp.asarray(ys, jnp.float32),
        jnp.asarray(np.stack(level), jnp.int32),
        jnp.asarray(where),
    )
    left = np.broadcast_to(np.arange(N) < N - 3, (len(cases), N))
    return list(cases), history, Candidates(jnp.asarray(news, jnp.float32), jnp.asarray(left))


def past(columns):
    """Training tasks of 5 to 30 rows: a usual one, one with equal responses, one of equal rows."""
    rng = np.random.default_rng(1)
    sizes = {"usual": 30, "flat": 9, "copies": 5}
    x = {name: rng.uniform(size=(n, columns)).astype(np.float32) for name, n in sizes.items()}
    x["copies"][:] = x["copies"][0]
    y = {name: rng.normal(size=n) for name, n in sizes.items()}
    y["flat"][:] = 3.0
    return SearchSpace("hard", train={name: Task(name, x[name], y[name]) for name in sizes})


TESTED = [name for name in COMPILED if not name.endswith(ALIKE)]


@pytest.mark.thorough
@pytest.mark.parametrize("name", TESTED)
@pytest.mark.parametrize("columns", [1, 64])
def test_values_that_can_be_compared(name, columns, quick):
    method = quick(name)
    params = method.fit(past(columns), jax.random.key(0))
    cases, history, candidates = tables(columns)
    keys = jax.random.split(jax.random.key(1), len(cases))
    if getattr(method, "stateful", False):
        acquire = lambda h, c, k: method.advance(method.begin(params, columns, k), h, c, k)[0]  # noqa: E731
    else:
        acquire = lambda h, c, k: method.acquire(params, h, c, k)  # noqa: E731
    values = np.asarray(jax.jit(jax.vmap(acquire))(history, candidates, keys))
    for case, row in zip(cases, values, strict=True):
        assert not np.isnan(row[: N - 3]).any(), case


TRIALS = 2
HOST = [name for name, entry in METHODS.items() if entry.host is not None]


def task_of(rows):
    """Every row twice, and responses in steps of a thousandth, so that of many rows hundreds are tied."""
    x = np.repeat(np.random.default_rng(0).random((rows // 2, 3), np.float32), 2, axis=0)
    return Task("one", x, np.round(1.0 - np.linalg.norm(x - 0.3, axis=1), 3))


def trace_of(name, task, design, quick):
    if name in HOST:
        return run_host(METHODS[name].host(), task.X, task.y, design, TRIALS, name=name)
    method = quick(name)
    params = method.fit(past(3), jax.random.key(0))
    designs = {task.name: {"test0": design}}
    return next(run_tasks(method, params, {task.name: task}, designs, n_trials=TRIALS, key=jax.random.key(1)))[2]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*TESTED, *HOST])
@pytest.mark.parametrize("rows", [6, 200_000])
def test_a_run_on_few_rows_and_on_many(name, rows, quick):
    trace = np.asarray(trace_of(name, task_of(rows), np.linspace(0, rows - 1, 5).astype(int), quick))
    assert trace.shape == (TRIALS + 1,)
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= 0).all()
