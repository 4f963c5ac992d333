import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from dre_jax.data.tasks import tie_levels
from dre_jax.search import run, run_in_python
from dre_jax.search.history import min_max_scale
from dre_jax.search.loop import segments

compiled = jax.jit(run, static_argnums=0, static_argnames=("n_trials", "stop_at_optimum"))
over_keys = jax.jit(jax.vmap(run, in_axes=(None, None, None, None, 0, None, None)), static_argnums=(0, 5, 6))


@pytest.mark.parametrize(("n_design", "n_trials"), [*itertools.product([0, 1, 5, 16, 40], [1, 2, 11, 12, 100])])
def test_segments_have_room_for_every_history_and_no_more(n_design, n_trials):
    parts = list(segments(n_design, n_trials))
    capacities = [capacity for capacity, _ in parts]
    capacity_of_trial = [capacity for capacity, count in parts for _ in range(count)]
    assert len(capacity_of_trial) == n_trials
    assert all(n_design + t <= capacity for t, capacity in enumerate(capacity_of_trial))
    assert capacities == sorted(set(capacities))
    assert capacities[-1] == max(n_design + n_trials - 1, 1)
    # Doubling: no slot in four stays empty but in the first.
    assert all(later <= 2 * earlier for earlier, later in itertools.pairwise(capacities))
    assert len(parts) <= 1 + np.ceil(np.log2(max((n_design + n_trials) / 16, 1)))


@pytest.mark.parametrize("n_values", [1, 4])
@pytest.mark.parametrize("n_filled", [1, 5])
def test_a_history_is_scaled_by_its_own_range(n_filled, n_values):
    """Slots that are empty hold other rows of the table."""
    response = np.array([3.0, -2.0, 4.0, 9.0])[np.arange(8) % n_values].astype(np.float32)
    response[n_filled:] = np.linspace(-50.0, -20.0, 8 - n_filled)
    where, own = np.arange(8) < n_filled, response[:n_filled]
    expected = np.full(n_filled, 0.5) if np.ptp(own) == 0 else (own - own.min()) / np.ptp(own)
    scaled = min_max_scale(*jax.device_put((response, None, tie_levels(response), where)))
    np.testing.assert_allclose(scaled, np.append(expected, np.zeros(8 - n_filled)), rtol=1e-6)


def test_every_row_once_then_nothing(methods, space, cut_task, search_task):
    task = search_task(cut_task(space.test["wine-proline"], 20), empty=5)
    design, key = jnp.array([3, 11, 4]), jax.random.key(1)
    picks = compiled(*methods["random"], task, design, key, n_trials=24, stop_at_optimum=False)
    assert picks.dtype == jnp.int32
    assert sorted(picks[:17].tolist()) == sorted(set(range(20)) - {3, 11, 4})
    np.testing.assert_array_equal(picks[17:], -1)
    np.testing.assert_array_equal(run_in_python(*methods["random"], task, np.asarray(design), key, 24, False), picks)


def test_a_run_stops_at_the_optimum(methods, space, cut_task, search_task):
    task = search_task(cut_task(space.test["wine-proline"], 20), empty=5)
    # Two rows share the best response, and the empty slots' level is as good: they are no optimum.
    task = task._replace(level=task.level.at[1].set(0))
    ends = set()
    for seed in range(5):
        key = jax.random.key(seed)
        picks = compiled(*methods["random"], task, jnp.array([3, 11, 4]), key, n_trials=24).tolist()
        end = next(t for t, row in enumerate(picks) if row in (0, 1))
        assert set(picks[end + 1 :]) == {-1}
        assert min(picks[: end + 1]) >= 0
        assert run_in_python(*methods["random"], task, np.array([3, 11, 4]), key, 24).tolist() == picks
        ends.add(end)
    assert len(ends) > 1
    picks = compiled(*methods["random"], task, jnp.array([3, 1, 4]), jax.random.key(0), n_trials=24)
    np.testing.assert_array_equal(picks, -1)


N_ROWS, N_KEYS = 12, 3000
DESIGN = np.array([2, 9])


def picks_of_many(method_and_params, task, design=DESIGN, n_trials=3, n_keys=N_KEYS):
    keys = jax.random.split(jax.random.key(5), n_keys)
    return np.asarray(over_keys(*method_and_params, task, jnp.asarray(design, jnp.int32), keys, n_trials, False))


def test_random_search_and_equal_values_are_uniform(methods, space, cut_task, search_task):
    small_task = search_task(cut_task(space.test["diabetes-glucose"], N_ROWS))
    picks = picks_of_many(methods["random"], small_task)
    left = np.setdiff1d(np.arange(N_ROWS), DESIGN)
    for trial in range(3):
        assert set(picks[:, trial]) == set(left)
        assert stats.chisquare(np.bincount(picks[:, trial], minlength=N_ROWS)[left]).pvalue > 1e-3
    # Ordered pairs too: a trial does not depend on the one before.
    pairs = [np.sum((picks[:, :2] == pair).all(axis=1)) for pair in itertools.permutations(left, 2)]
    assert sum(pairs) == N_KEYS
    assert stats.chisquare(pairs).pvalue > 1e-3
    equal, random = (picks_of_many(methods[name], small_task, n_keys=200) for name in ("dre-of-zeros", "random"))
    np.testing.assert_array_equal(equal, random)
