"""The benchmark of many searches, on few."""

import pytest

from benchmarks import many


@pytest.mark.thorough
def test_rows_of_few_searches(capsys):
    many.main(["--branin", "2", "--cold"])
    n, *_, regret, _ = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    assert n == "2"
    assert 0.0 < float(regret) < 1.0


def test_contestants_have_the_function_of_the_package():
    assert many.value([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]) == pytest.approx(-3.32237, abs=1e-4)
