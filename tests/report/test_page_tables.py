"""The page's tables, cell by cell against plain loops."""

import numpy as np

from dre_jax.report import page_tables, significance
from dre_jax.report.critical_difference import probability


def test_averages_pooled(make_comparison):
    regret = np.zeros((2, 4, 3))
    regret[0] = [[0.5, 0.25, 0.25], [0.5, 0.25, 0.0], [0.5, 0.5, 0.5], [0.5, 0.0, 0.0]]
    regret[1] = [[0.5, 0.25, 0.1], [0.5, 0.5, 0.5], [0.5, 0.25, 0.25], [0.5, 0.0, 0.0]]
    table = page_tables.averages(make_comparison(2, 4, 2, regret=regret), [1, 2], "runs")
    assert table.columns == ("Method", "Regret at 1", "Regret at 2", "Rank at 1", "Rank at 2")
    # Tasks are pairs of runs. After two trials the first method has 0.125 and 0.25, the second 0.3 and 0.125: the
    # standard error of two numbers is half of their difference.
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["method 0", "0.2500 ± 0.0000", "0.1875 ± 0.0625", "1.500", "1.625"],
        ["method 1", "0.2500 ± 0.1250", "0.2125 ± 0.0875", "1.500", "1.375"],
    ]
    assert [[cell.strong for cell in row] for row in table.rows] == [
        [False, True, True, True, False],
        [False, True, False, True, True],
    ]


def test_pairs_and_friedman(make_comparison):
    comparison = make_comparison(4, 40)
    result = significance(comparison, 10)
    table = page_tables.pairs(comparison, result)
    order = np.argsort(result.average_rank)
    assert [row[0].text for row in table.rows] == [result.methods[i] for i in order] == list(table.columns[2:])
    for i, row in zip(order, table.rows, strict=True):
        for j, cell in zip(order, row[2:], strict=True):
            if i != j:
                assert cell.text == probability(result.wilcoxon_p[i, j])
                assert cell.strong == (result.wilcoxon_p[i, j] < 0.05)
    assert f"over {result.n} tasks" in table.caption
    cells = page_tables.friedman({10: result}).rows[0]
    numbers = f"{result.friedman_statistic:.1f}", probability(result.friedman_p)
    assert [cell.text for cell in cells] == ["After 10 trials", "20", *numbers]
