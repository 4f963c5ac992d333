"""Average ranks and regrets against loops and SciPy, their errors against the bootstrap."""

import numpy as np
import pytest
from scipy import stats

from dre_jax.data import Results
from dre_jax.errors import ConfigError, DataError
from dre_jax.report import compare


def results(runs):
    """Results from {(space, dataset, seed): incumbents}."""
    traces = {}
    for (space, dataset, seed), trace in runs.items():
        traces.setdefault(space, {}).setdefault(dataset, {})[seed] = np.array(trace, np.float64)
    return Results(traces)


def draw(seed, n_trials=6, levels=5, tasks=("a", "b", "c")):
    """Incumbents on a few levels, so that many are tied."""
    rng = np.random.default_rng(seed)
    keys = [(space, task, run) for space in ("s", "t") for task in tasks for run in ("test0", "test1")]
    values = rng.integers(0, levels, (len(keys), n_trials + 1)) / (levels - 1)
    return dict(zip(keys, np.maximum.accumulate(values, axis=1), strict=True))


def scipys_ranks(regret):
    return stats.rankdata(np.round(regret, 8), axis=0)


def test_against_loops():
    """Four methods, two designs a task: averages pooled, and errors both ways."""
    runs = {name: draw(seed) for seed, name in enumerate("abcd")}
    result = compare({name: results(each) for name, each in runs.items()})
    regret = np.array([[1.0 - runs[name][key] for key in sorted(runs["a"])] for name in runs])
    ranks = scipys_ranks(regret)
    assert (ranks % 1 == 0.5).any()  # ties there are
    np.testing.assert_array_equal(result.ranks(), ranks)
    for values, average, error in (
        (regret, result.average_regret(), result.standard_error),
        (ranks, result.average_rank(), result.rank_error),
    ):
        np.testing.assert_allclose(average, values.mean(axis=1), atol=1e-12)
        tasks = values.reshape(4, 6, 2, 7).mean(axis=2)
        np.testing.assert_allclose(error(), stats.sem(tasks, axis=1), atol=1e-12)
        by_space = [np.var(tasks[:, part], axis=1, ddof=1) / 3 for part in (slice(0, 3), slice(3, 6))]
        np.testing.assert_allclose(error("spaces"), np.sqrt(sum(by_space)) / 2, atol=1e-12)


@pytest.mark.parametrize(("gap", "tied"), [(1e-10, True), (1e-6, False)])
def test_ranks_round_to_eight_decimals(gap, tied):
    one = results({("s", "a", "0"): [0.5, 0.7]})
    two = results({("s", "a", "0"): [0.5, 0.7 + gap]})
    result = compare({"one": one, "two": two})
    expected = [1.5, 1.5] if tied else [2.0, 1.0]
    np.testing.assert_array_equal(result.average_rank()[:, 1], expected)
    assert result.win_tie_loss("one", 1) == {"two": (0, 1, 0) if tied else (0, 0, 1)}
    assert result.average_regret()[0, 1] > result.average_regret()[1, 1]  # the regret itself is not rounded


def test_only_common_runs_count_as_far_as_the_shortest():
    one, two, alone = draw(0, n_trials=9), draw(1, n_trials=4), ("t", "only here", "test0")
    missing = sorted(two)[:3]
    selected = sorted(set(one) - set(missing))
    result = compare({"one": results(one | {alone: [0.0] * 7}), "two": results({key: two[key] for key in selected})})
    assert (result.dropped, result.missing) == (4, {"one": 0, "two": 4})
    assert (result.n_trials, result.trials) == (4, {"one": 9, "two": 4})
    assert result.tasks == tuple(key[:2] for key in selected)
    for regret, traces in zip(result.regret, (one, two), strict=True):
        np.testing.assert_array_equal(regret, [1.0 - traces[key][:5] for key in selected])


@pytest.fixture
def uneven():
    """Four methods on two spaces of one and three tasks, with one and two designs."""
    keys = [("s", "a", "0"), *(("t", task, seed) for task in "abc" for seed in "01")]
    values = np.maximum.accumulate(np.random.default_rng(3).integers(0, 4, (4, 7, 5)) / 3, axis=2)
    return compare({name: results(dict(zip(keys, v, strict=True))) for name, v in zip("abcd", values, strict=True)})


def test_means_over_search_spaces_and_designs(uneven):
    for values, mean in (
        (uneven.regret, uneven.average_regret("spaces")),
        (scipys_ranks(uneven.regret), uneven.average_rank("spaces")),
    ):
        np.testing.assert_allclose(mean, (values[:, 0] + values[:, 1:].mean(axis=1)) / 2, atol=1e-12)
    assert not np.allclose(uneven.average_rank("spaces"), uneven.average_rank("runs"))
    designs = [uneven.regret[:, 0], *(uneven.regret[:, i : i + 2].mean(axis=1) for i in (1, 3, 5))]
    np.testing.assert_allclose(uneven.by_task(uneven.regret), np.stack(designs, axis=1), atol=1e-12)


@pytest.fixture(scope="module")
def large():
    """Two methods on three spaces of 40, 15 and 30 tasks, each with one to three designs, on levels that differ."""
    rng = np.random.default_rng(0)
    runs = {"a": {}, "b": {}}
    for space, n_tasks in (("s", 40), ("t", 15), ("u", 30)):
        for task in range(n_tasks):
            level = 0.2 + 0.1 * n_tasks / 40 + 0.3 * rng.random()
            for seed in range(rng.integers(1, 4)):
                for name in runs:
                    runs[name][space, f"{task}", f"{seed}"] = [level + 0.2 * rng.random()]
    return compare({name: results(each) for name, each in runs.items()})


@pytest.mark.parametrize("over", ["runs", "spaces"])
@pytest.mark.parametrize("quantity", ["regret", "rank"])
def test_errors_against_the_bootstrap(large, over, quantity):
    """Tasks drawn with replacement, with all their runs: from all tasks, or within each search space."""
    rng = np.random.default_rng(1)
    values = large.regret[:, :, 0] if quantity == "regret" else large.ranks()[:, :, 0]
    strata = {}
    for i, run in enumerate(large.runs):
        strata.setdefault(run[0] if over == "spaces" else "all", {}).setdefault(run[:2], []).append(i)
    means = []
    for _ in range(2000):
        drawn = [rng.choice(np.array(list(tasks.values()), object), len(tasks)) for tasks in strata.values()]
        means.append(np.mean([values[:, np.concatenate(rows)].mean(axis=1) for rows in drawn], axis=0))
    result = large.standard_error(over) if quantity == "regret" else large.rank_error(over)
    np.testing.assert_allclose(result[:, 0], np.std(means, axis=0), rtol=0.1)


def test_one_search_space(uneven):
    result, one_task = uneven.of_space("t"), uneven.of_space("s")
    assert (result.spaces, len(result.runs)) == (("t",), 6)
    np.testing.assert_array_equal(result.regret, uneven.regret[:, 1:])
    assert np.isfinite(uneven.standard_error()).all()
    for error in (one_task.rank_error(), one_task.standard_error(), uneven.standard_error("spaces")):
        assert np.isnan(error).all()
    with pytest.raises(ConfigError, match="one of s, t, but got 'u'"):
        uneven.of_space("u")


def test_wins_ties_and_losses(uneven):
    for trial in (0, 4):
        result = uneven.win_tie_loss("b", trial)
        assert list(result) == ["a", "c", "d"]
        for name, counts in result.items():
            pairs = zip(uneven.regret[1, :, trial], uneven.regret["abcd".index(name), :, trial], strict=True)
            signs = [int(own > other) - int(own < other) for own, other in pairs]
            assert counts == (signs.count(-1), signs.count(0), signs.count(1))
    with pytest.raises(ConfigError, match="one of a, b, c, d, but got 'e'"):
        uneven.win_tie_loss("e", 0)


def test_nothing_to_compare():
    with pytest.raises(DataError, match="at least one method"):
        compare({})
    with pytest.raises(DataError, match="one, two have none"):
        compare({"one": results({("s", "a", "0"): [1.0]}), "two": results({("s", "a", "1"): [1.0]})})
    with pytest.raises(DataError, match="one have none"):
        compare({"one": Results()})
