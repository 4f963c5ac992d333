"""Meta-training of deep kernels: what batches hold, what is learned from them, and where fitting starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax.data import Task, build_table
from dre_jax.methods.baselines.dkgp import DeepKernelConfig, init
from dre_jax.methods.baselines.fsbo import KernelTraining, batch_loss, draw_batches, meta_train, random_scale

SMALL = KernelTraining(steps=4, batch=6, support=4)
drawn = jax.jit(draw_batches, static_argnames=("config", "shape", "landmarks"))


def sinusoids(n_tasks, n_rows=40, seed=0):
    """Sinusoids of any phase in the first of two columns."""
    random = np.random.default_rng(seed)
    tasks = {}
    for i in range(n_tasks):
        x = random.random((n_rows, 2)).astype(np.float32)
        tasks[f"t{i}"] = Task(f"t{i}", x, np.sin(9.0 * x[:, 0].astype(np.float64) + random.uniform(0, 6.3)))
    return tasks


@pytest.fixture(scope="module")
def table():
    """Tasks of 40, 7, 1 and 20 rows, the last of equal responses."""
    random = np.random.default_rng(1)
    rows = {n: random.random((n, 2)).astype(np.float32) for n in (7, 1, 20)}
    uneven = {f"u{n}": Task(f"u{n}", x, random.random(n) if n != 20 else np.ones(n)) for n, x in rows.items()}
    return build_table(sinusoids(2) | uneven)


def test_random_scale_is_the_loop():
    random = np.random.default_rng(0)
    y, where, limits = random.random((50, 6)), random.random((50, 6)) < 0.8, random.random((50, 2))
    expected = np.zeros((50, 6))
    for i in range(50):
        low, high = sorted(limits[i])
        for j in range(6):
            expected[i, j] = (y[i, j] - low) / max(high - low, 0.05) if where[i, j] else 0.0
    result = random_scale(jnp.asarray(y, jnp.float32), jnp.asarray(where), jnp.asarray(limits, jnp.float32))
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("landmarks", [False, True])
def test_batches(table, landmarks):
    batches = jax.tree.map(np.asarray, drawn(SMALL, table, jax.random.key(0), (80, 2), landmarks=landmarks))
    start, size, response = (np.asarray(a) for a in (table.start, table.size, table.response))
    calls, supports = set(), set()
    for index in np.ndindex(80, 2):
        support, selected, rows, where = (field[index] for field in batches.rows)
        y = batches.y[index]
        task = int(np.searchsorted(start, rows[0], side="right")) - 1
        calls.add(task)
        chosen, shown = rows[where], support[selected]
        assert len(set(chosen)) == len(chosen)
        assert not set(chosen) & set(shown)
        assert all(start[task] <= row < start[task] + size[task] for row in [*chosen, *shown])
        most = size[task] - (min(max(size[task] // 5, 1), SMALL.support) if landmarks else 0)
        assert len(chosen) == min(SMALL.batch, most)
        assert (y[~where] == 0).all()
        supports.add(len(shown))
        if len(set(response[chosen])) > 1:
            # An affine map: its slope is the inverse of u - l, and it takes l to 0 and u to 1.
            slope, offset = np.polyfit(response[chosen].astype(np.float64), y[where].astype(np.float64), 1)
            np.testing.assert_allclose(slope * response[chosen] + offset, y[where], atol=1e-3)
            assert 0.999 < slope < 20.01
            assert -1e-3 < -offset / slope < 1.001
    assert calls == set(range(5))
    assert supports == ({1, 2, 3, 4} if landmarks else {0})


def test_batches_on_the_scale_of_the_table(table):
    plain = KernelTraining(steps=4, batch=6, rescale=False)
    batches = drawn(plain, table, jax.random.key(0), (20,), landmarks=False)
    rows = batches.rows.query
    np.testing.assert_array_equal(batches.y, np.where(batches.rows.query_where, np.asarray(table.response)[rows], 0.0))


def awkward():
    """As many tasks and rows as twelve sinusoids: duplicate rows, constant columns, constant responses, one row."""
    rows = np.zeros((60, 2), np.float32)
    few = {
        "duplicates": Task("duplicates", rows, np.arange(60.0)),
        "constant": Task("constant", rows[:59], np.ones(59)),
        "single": Task("single", rows[:1], np.ones(1)),
    }
    return build_table(sinusoids(9) | few)


@pytest.mark.parametrize("rho", [(), pytest.param((8, 4), marks=pytest.mark.thorough)])
@pytest.mark.slow
def test_losses_fall_on_new_tasks_and_are_finite_on_degenerate_ones(rho):
    config = DeepKernelConfig(layers=(16, 16), phi=(8, 8), rho=rho)
    training = KernelTraining(steps=500, batch=16, learning_rate=5e-3)
    table = build_table(sinusoids(12))
    (params, losses), again, third = (meta_train(config, training, table, jax.random.key(seed)) for seed in (0, 0, 1))
    assert losses.shape == (500,)
    assert losses[-100:].mean() < losses[:100].mean() - 0.5
    jax.tree.map(np.testing.assert_array_equal, (params, losses), again)
    assert (np.asarray(losses) != np.asarray(third[1])).any()
    other = build_table(sinusoids(6, seed=9))
    batches = drawn(training, other, jax.random.key(7), (64,), landmarks=bool(rho))
    start = init(config, 2, jax.random.key(1))
    loss = jax.jit(lambda params: jax.lax.map(lambda batch: batch_loss(config, params, other, batch), batches).mean())
    assert loss(params) < loss(start) - 0.5
    result = meta_train(config, training, awkward(), jax.random.key(0))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result))
