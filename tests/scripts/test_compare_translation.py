"""The comparison on tables of several metrics: what a search counts, on generated tables."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("optuna", reason="optuna is not installed; it comes with the extra `optuna`")
LITTLE = {"training.steps": 20, "common.rows": 0, "processes.steps": 0}


@pytest.fixture(scope="module")
def script(part):
    return part("compare_translation")


def test_scores_of_rows(script):
    rows = [{"width": float(i + 1)} for i in range(4)]
    table = script.Table(
        rows, np.array([4.0, 3.0, 2.0, 1.0]), np.array([4.0, 1.0, 2.0, 9.0]), np.array([np.nan, 3, 1, 1])
    )
    front, limit = (script.Problem({"a": table}, "a", goal) for goal in ("front", "limit"))
    # The worst are 1 and 9: the front is (4, 4) and (3, 1), whose volume is 3 * 5 + 2 * 3.
    assert front.score([2]) == pytest.approx(1 * 7 / 21)
    assert front.score([1, 0]) == 1.0
    # The median of the known memory is 1, so the two last are feasible; the first is unknown.
    assert [limit.score(found) for found in ([0, 1], [3], [3, 2])] == [1.0, 1.0, 0.0]


@pytest.mark.thorough
@pytest.mark.parametrize(("goal", "heading"), [("front", "hypervolume at 10 |"), ("limit", "regret at 10 |")])
def test_tables_of_generated_tasks(script, capsys, monkeypatch, goal, heading):
    monkeypatch.setattr(script.Surrogate, "fit", partial(script.Surrogate.fit, settings=LITTLE))
    script.main(["--seeds", "1", "--trials", "12", "--tasks", "b", "--goals", goal])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(" | ")[1] == heading
    assert len(lines) == 2 + len(script.TUNERS)
