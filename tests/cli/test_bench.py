"""``dre-jax bench``: result files of searches of test functions."""

import numpy as np
import pytest

from dre_jax.data import read_results
from dre_jax.functions.bench import BenchConfig, draw_past, incumbents
from dre_jax.functions.families import FAMILIES
from dre_jax.functions.optimize import FunctionSearches


@pytest.mark.thorough
def test_result_files_are_those_that_report_compares(cli, tmp_path):
    arguments = ["--families", "branin", "--methods", "random,gp", "--tasks", 2, "--seeds", 2, "--trials", 6]
    status, printed, _ = cli("bench", *arguments, "--out", tmp_path)
    assert status == 0
    assert [line.split(":")[0] for line in printed.splitlines()] == ["random", "gp"]
    results = read_results(tmp_path / "random.json")
    runs = {run[:3]: run[3] for run in results.runs()}
    assert len(runs) == 4
    assert {len(trace) for trace in runs.values()} == {7}
    assert 0.0 < min(trace[-1] for trace in runs.values()) < max(trace[-1] for trace in runs.values()) <= 1.0
    files = [str(tmp_path / name) for name in ("random.json", "gp.json")]
    status, printed, _ = cli("report", *files, "--out", tmp_path / "report", "--at", "6")
    assert status == 0
    assert "gp" in printed


def test_refusals(refused, tmp_path):
    line = refused("bench", "--families", "parabola", "--methods", "gp", "--out", tmp_path)
    assert "a family must be one of branin" in line


def test_incumbents_are_of_the_best_value_and_do_not_fall():
    """By hand: noise makes the second of three trials look best, which it is not."""
    family = FAMILIES["bowl-3"]
    task = family.draw(np.random.default_rng(0))
    points = np.random.default_rng(1).random((3, 3))
    regrets = family.regret(task, family.losses(task, points))
    values = np.array([2.0, 1.0, 3.0])
    searches = FunctionSearches(points[None, None], values[None, None], np.minimum.accumulate(values)[None, None])
    shares = np.clip(1.0 - regrets, 0.0, 1.0)
    expected = [0.0, shares[0], max(shares[0], shares[1]), max(shares[0], shares[1])]
    np.testing.assert_allclose(incumbents(family, [task], searches)[0, 0], expected)


def test_past_studies_are_of_other_tasks():
    past = draw_past(FAMILIES["mixed-5"], BenchConfig(n_past_studies=2, n_past_trials=15))
    first, second = past.tasks.values()
    assert first.n_rows == second.n_rows == 15
    assert not np.array_equal(first.y, second.y)
