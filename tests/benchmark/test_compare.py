"""Average ranks and regrets against numbers worked out by hand, and against loops over SciPy."""

import numpy as np
import pytest
from scipy import stats

from dre_jax.benchmark import compare, table
from dre_jax.data import Results
from dre_jax.errors import DataError


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


def test_by_hand():
    one = results({("s", "a", "0"): [0.0, 0.5, 1.0], ("s", "b", "0"): [0.5, 0.5, 0.5]})
    two = results({("s", "a", "0"): [0.0, 0.25, 1.0], ("s", "b", "0"): [0.5, 0.75, 1.0]})
    three = results({("s", "a", "0"): [0.0, 0.5, 0.5], ("s", "b", "0"): [0.25, 0.25, 0.25]})
    found = compare({"one": one, "two": two, "three": three})
    assert found.methods == ("one", "two", "three")
    assert found.tasks == (("s", "a"), ("s", "b"))
    assert (found.n_trials, found.dropped) == (2, 0)
    np.testing.assert_array_equal(found.average_regret(), [[0.75, 0.5, 0.25], [0.75, 0.5, 0.0], [0.875, 0.625, 0.625]])
    # Run a: ranks (2, 2, 2), (1.5, 3, 1.5), (1.5, 1.5, 3); run b: (1.5, 1.5, 3), (2, 1, 3), (2, 1, 3).
    np.testing.assert_array_equal(found.average_rank(), [[1.75, 1.75, 1.75], [1.75, 2.0, 1.25], [2.5, 2.25, 3.0]])
    # Two tasks: half the distance between them.
    np.testing.assert_allclose(found.standard_error()[0], [0.25, 0.0, 0.25], atol=1e-12)


def test_against_loops():
    runs = {name: draw(seed) for seed, name in enumerate(("a", "b", "c", "d"))}
    found = compare({name: results(each) for name, each in runs.items()})
    ranks = np.zeros((4, 7))
    regret = np.zeros((4, 7))
    keys = sorted(runs["a"])
    for key in keys:
        here = np.array([1.0 - runs[name][key] for name in runs])
        regret += here / len(keys)
        for trial in range(7):
            ranks[:, trial] += stats.rankdata(here[:, trial]) / len(keys)
    np.testing.assert_allclose(found.average_regret(), regret, atol=1e-12)
    np.testing.assert_allclose(found.average_rank(), ranks, atol=1e-12)
    np.testing.assert_allclose(found.average_rank().sum(axis=0), 1 + 2 + 3 + 4)
    for m, name in enumerate(runs):
        by_task = {}
        for (space, dataset, _), trace in runs[name].items():
            by_task.setdefault((space, dataset), []).append(1.0 - trace)
        means = [np.mean(traces, axis=0) for traces in by_task.values()]
        np.testing.assert_allclose(found.standard_error()[m], stats.sem(means), atol=1e-12)


@pytest.mark.parametrize(("gap", "tied"), [(1e-10, True), (1e-6, False)])
def test_ranks_round_to_eight_decimals(gap, tied):
    one = results({("s", "a", "0"): [0.5, 0.7]})
    two = results({("s", "a", "0"): [0.5, 0.7 + gap]})
    found = compare({"one": one, "two": two})
    expected = [1.5, 1.5] if tied else [2.0, 1.0]
    np.testing.assert_array_equal(found.average_rank()[:, 1], expected)
    assert found.average_regret()[0, 1] > found.average_regret()[1, 1]  # the regret itself is not rounded


def test_only_common_runs_count():
    one, two = draw(0), draw(1)
    alone = ("t", "only here", "test0")
    missing = sorted(two)[:3]
    found = compare(
        {"one": results(one | {alone: [0.0] * 7}), "two": results({k: v for k, v in two.items() if k not in missing})}
    )
    assert found.dropped == 4
    kept = sorted(set(one) - set(missing))
    assert found.regret.shape == (2, len(kept), 7)
    assert found.tasks == tuple(key[:2] for key in kept)
    np.testing.assert_array_equal(found.regret[1], 1.0 - np.array([two[key] for key in kept]))


def test_cut_to_the_shortest():
    long, short = draw(0, n_trials=9), draw(1, n_trials=4)
    found = compare({"long": results(long), "short": results(short)})
    assert found.n_trials == 4
    np.testing.assert_array_equal(found.regret[0], 1.0 - np.array([long[key][:5] for key in sorted(long)]))


def test_the_order_of_runs_does_not_matter():
    runs = {name: draw(seed) for seed, name in enumerate("ab")}
    turned = {name: dict(reversed(each.items())) for name, each in runs.items()}
    one, two = (compare({name: results(each) for name, each in given.items()}) for given in (runs, turned))
    np.testing.assert_array_equal(one.regret, two.regret)
    assert one.tasks == two.tasks


def test_one_task_has_no_standard_error():
    found = compare({"one": results({("s", "a", "0"): [0.0, 0.5], ("s", "a", "1"): [0.0, 1.0]})})
    assert np.isnan(found.standard_error()).all()
    assert found.standard_error().shape == (1, 2)


def test_table():
    runs = {name: draw(seed) for seed, name in enumerate("ab")}
    found = compare({name: results(each) for name, each in runs.items()})
    rows = table(found, [0, 5])
    assert [row.method for row in rows] == ["a", "b"]
    for i, row in enumerate(rows):
        assert row.regret == [found.average_regret()[i, t] for t in (0, 5)]
        assert row.error == [found.standard_error()[i, t] for t in (0, 5)]
        assert row.rank == [found.average_rank()[i, t] for t in (0, 5)]


def test_nothing_to_compare():
    with pytest.raises(DataError, match="at least one method"):
        compare({})
    with pytest.raises(DataError, match="one, two have none"):
        compare({"one": results({("s", "a", "0"): [1.0]}), "two": results({("s", "a", "1"): [1.0]})})
    with pytest.raises(DataError, match="one have none"):
        compare({"one": Results()})
