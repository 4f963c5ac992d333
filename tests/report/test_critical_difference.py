"""Critical-difference diagrams: bars that do not touch, and the note on the tests."""

import itertools
import math

import numpy as np
import pytest

from dre_jax.report.critical_difference import bars, describe_tests
from dre_jax.report.statistics import Significance


def made_up(ranks, cliques=(), *, unit="tasks", friedman_p=0.001):
    names = tuple("abcdefghijklmnopqrstuvwxyz"[: len(ranks)])
    p = np.ones((len(ranks), len(ranks)))
    return Significance(unit, 86, 25, names, np.array(ranks), 12.34, friedman_p, p, 0.05, tuple(map(tuple, cliques)))


def test_bars_share_a_row_only_where_they_do_not_touch():
    drawn = bars(made_up([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ["ab", "bcd", "cde", "ef"]))
    assert [(bar.low, bar.high) for bar in drawn] == [(1, 2), (2, 4), (3, 5), (5, 6)]
    assert [bar.row for bar in drawn] == [0, 1, 0, 1]
    for one, other in itertools.combinations(drawn, 2):
        assert one.row != other.row or one.high < other.low or other.high < one.low


@pytest.mark.parametrize(
    ("unit", "friedman_p", "said"),
    [
        ("runs", 0.001, "each run's regret; 1 is best. Friedman's test over 86 runs: χ² = 12.3, p = 0.001."),
        ("tasks", math.nan, "Friedman's test needs three methods or more."),
    ],
)
def test_the_note_states_tests_and_n(unit, friedman_p, said):
    note = describe_tests(made_up([1.0, 2.0], unit=unit, friedman_p=friedman_p)).replace("\u00a0", " ")
    assert said in note
    assert note.endswith(f"over 86 {unit}, p-values after Holm, α = 0.05.")
