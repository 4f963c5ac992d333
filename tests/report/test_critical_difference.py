"""Critical-difference diagrams: the layout as data, and no overlap on the drawn figure."""

import itertools
import math

import numpy as np
import pytest

from dre_jax.report.critical_difference import diagram_data
from dre_jax.report.statistics import Significance


def made_up(ranks, cliques=(), *, names=None, unit="tasks", friedman_p=0.001):
    names = tuple(names or "abcdefghijklmnopqrstuvwxyz"[: len(ranks)])
    p = np.ones((len(ranks), len(ranks)))
    return Significance(unit, 86, 25, names, np.array(ranks), 12.34, friedman_p, p, 0.05, tuple(map(tuple, cliques)))


def test_leaders():
    """A leader's position, which decides its look, is that of the comparison and not of the tests."""
    data = diagram_data(made_up([2.6, 1.5, 3.2, 4.4, 3.3], names="cbaed"), "abcde", "Title")
    assert (data.low, data.high) == (1, 5)
    found = [(leader.method, leader.position, leader.left, leader.row) for leader in data.leaders]
    left, right = [("b", 1, True, 0), ("c", 2, True, 1), ("a", 0, True, 2)], [("d", 3, False, 1), ("e", 4, False, 0)]
    assert found == left + right
    assert [leader.rank for leader in data.leaders] == [1.5, 2.6, 3.2, 3.3, 4.4]


def test_bars_share_a_row_only_where_they_do_not_touch():
    ranks = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    data = diagram_data(made_up(ranks, ["ab", "bcd", "cde", "ef", "f"]), "abcdef", "Title")  # one has no bar
    assert [(bar.low, bar.high) for bar in data.bars] == [(1, 2), (2, 4), (3, 5), (5, 6)]
    assert [bar.row for bar in data.bars] == [0, 1, 0, 1]
    for one, other in itertools.combinations(data.bars, 2):
        assert one.row != other.row or one.high < other.low or other.high < one.low


@pytest.mark.parametrize("ranks", [[1.0], [1.5, 1.5], [2.0, 2.0, 2.0]])
def test_equal_ranks(ranks):
    data = diagram_data(made_up(ranks, friedman_p=math.nan), "abc"[: len(ranks)], "Title")
    assert data.low <= ranks[0] <= data.high
    assert data.high - data.low >= 1


@pytest.mark.parametrize(
    ("unit", "friedman_p", "said"),
    [
        ("runs", 0.001, "each run's regret; 1 is best. Friedman's test over 86 runs: χ² = 12.3, p = 0.001."),
        ("tasks", math.nan, "Friedman's test needs three methods or more."),
    ],
)
def test_the_note_states_tests_and_n(unit, friedman_p, said):
    note = diagram_data(made_up([1.0, 2.0], unit=unit, friedman_p=friedman_p), "ab", "Title").note
    assert said in note.replace("\u00a0", " ")
    assert note.replace("\u00a0", " ").endswith(f"over 86 {unit}, p-values after Holm, α = 0.05.")
