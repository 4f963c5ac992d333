"""The whole report on small made-up files, its numbers those of the comparison."""

import csv
import json

import numpy as np
import pytest
from scipy.stats import sem

from dre_jax.data import read_results
from dre_jax.errors import DataWarning
from dre_jax.report import compare, write_report

META = {"method": "dre", "protocol": {"mode": "v3"}, "seed": 3, "odd": float("nan")}


@pytest.fixture
def files(result_file):
    return [result_file("a", seed=1, meta=META), result_file("b", seed=2), result_file("c", seed=3)]


def test_numbers(files, tmp_path, numbers_only):
    result = write_report(files, tmp_path / "out", at=[5, 2], reference="b", title="Mine")
    assert result == json.loads((tmp_path / "out" / "summary.json").read_text())
    facts = {"title": "Mine", "methods": ["dre", "b", "c"], "runs": 12, "tasks": 6, "trials": 6, "at": [2, 5]}
    assert {key: result[key] for key in facts} == facts
    names = result["methods"]
    comparison = compare({name: read_results(path) for name, path in zip(names, files, strict=True)})
    for over, of in (("runs", result), ("spaces", result["over_spaces"])):
        expected = {
            "rank": (comparison.average_rank(over), comparison.rank_error(over)),
            "regret": (comparison.average_regret(over), comparison.standard_error(over)),
        }
        for what, (average, error) in expected.items():
            np.testing.assert_array_equal([of[f"average_{what}"][name] for name in names], average)
            np.testing.assert_array_equal([of["standard_error"][f"average_{what}"][name] for name in names], error)
            at = {str(trial): dict(zip(names, average[:, trial], strict=True)) for trial in (2, 5)}
            assert of[f"{what}_at"] == at
    assert result["files"]["dre"] == {"file": "a.json", "runs": 12, "trials": 6, "meta": META | {"odd": None}}
    assert set(result["versions"]) == {"dre_jax", "numpy", "scipy", "matplotlib"}
    assert {unit: by["5"]["n"] for unit, by in result["significance"].items()} == {"tasks": 6, "runs": 12}
    by_task = comparison.by_task(comparison.regret)[:, :, 5]  # equally many runs a task
    paired = by_task[names.index("dre")] - by_task[names.index("b")]
    expected = [paired.mean(), sem(paired)]
    np.testing.assert_allclose(result["differences"]["runs"]["5"]["dre"], expected, rtol=1e-12)
    assert result["differences"]["spaces"]["5"]["b"] == [0.0, 0.0]
    wins = comparison.win_tie_loss("b", 5)
    counted = {name: counts._asdict() for name, counts in wins.items()}
    assert result["win_tie_loss"]["reference"] == "b"
    assert result["win_tie_loss"]["at"]["5"] == counted


def test_tables(files, tmp_path, numbers_only):
    named = {'a, "b"': files[0], "b": files[1]}
    result = write_report(named, tmp_path)
    for name, key in (("ranks.csv", "average_rank"), ("regret.csv", "average_regret")):
        with (tmp_path / name).open(newline="") as file:
            head, *rows = csv.reader(file)
        assert head == ["trial", *named]
        assert np.array(rows, float).T.tolist() == [list(range(7)), *result[key].values()]


def test_a_run_that_one_method_lacks_is_left_out(result_file, tmp_path, numbers_only):
    files = [result_file("a", lacks=[("s", "x", "test0")]), result_file("b", seed=1)]
    with pytest.warns(DataWarning) as output:
        result = write_report(files, tmp_path / "out")
    assert len(output) == 1
    assert (result["runs"], result["dropped"], result["missing"]) == (11, 1, {"a": 1, "b": 0})
    assert {name: space["runs"] for name, space in result["spaces"].items()} == {"s": 5, "t": 6}


@pytest.mark.parametrize(("n_trials", "at"), [(3, [3]), (25, [25]), (60, [25, 50]), (101, [25, 50, 100])])
def test_trials_looked_at(result_file, tmp_path, numbers_only, n_trials, at):
    assert write_report([result_file("a", n_trials=n_trials)], tmp_path)["at"] == at


def test_one_run_of_one_method(result_file, tmp_path):
    """Nothing to test or to average, and still every file."""
    path = result_file("a", spaces=("s",), tasks=("x",), lacks=[("s", "x", "test1")], n_trials=2)
    result = write_report([path], tmp_path / "out")
    assert result["title"] == "1 method on 1 run (1 task, 1 search space)"
    assert result["standard_error"]["average_regret"] == {"a": [None, None, None]}
    assert result["significance"]["tasks"]["2"]["friedman_p"] is None
    assert result["win_tie_loss"]["at"] == {"2": {}}
    figures = {f"{name}.{kind}" for name in ("rank", "regret", "cd-2") for kind in ("png", "svg")}
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written >= figures | {"summary.json", "ranks.csv", "regret.csv", "report.html"}
    assert (tmp_path / "out" / "report.html").stat().st_size > 1000
