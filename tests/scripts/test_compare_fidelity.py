"""Searches that pause or stop trainings, on a file of curves."""

import json

import numpy as np
import pytest

pytest.importorskip("optuna")


@pytest.fixture
def curves(tmp_path):
    """Twenty trainings of ten epochs, of which one diverged; the best one has the largest x."""
    trainings = [
        {"config": {"x": i / 19}, "curve": [[t, i / 19 - 1 / t] for t in range(1, 11)], "diverged": i == 0}
        for i in range(20)
    ]
    path = tmp_path / "curves.json"
    path.write_text(json.dumps(trainings))
    return path


def test_searches_are_kept_and_compared(part, curves, tmp_path, capsys):
    out, compare = tmp_path / "out.jsonl", part("compare_fidelity")
    arguments = ["--out", str(out), "--curves", str(curves), "--methods", "random", "optuna-asha", "--trainings", "2"]
    compare.main(arguments)
    first = capsys.readouterr().out
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row[:4] for row in rows] == [[method, "curves", "curves", 0] for method in ("random", "optuna-asha")]
    for *_, at_any_step, at_the_end, losses in rows:
        assert losses[0] > 1
        assert len(at_any_step) == len(at_the_end) == 54
        assert np.all(np.diff(at_any_step) <= 0)
        assert np.all(np.array(at_any_step) <= at_the_end)
    assert rows[0][5][:26] == [1.0] * 26  # the first training has not ended
    assert "| random | curves | 1 |" in first
    compare.main(arguments)
    assert capsys.readouterr().out == first
    assert len(out.read_text().splitlines()) == 2


def test_losses_of_a_search(part, curves):
    """The best configuration that was started is lost if it has not come to the last step."""
    methods = part("rivals.budget_methods")
    [task] = part("rivals.recorded_tasks").recorded_tasks(curves, 300)
    values = sorted(float(task.curve(row)[-1]) for row in task.rows)
    by_value = sorted(task.rows, key=lambda row: float(task.curve(row)[-1]))
    meter = methods.Meter(task, 100)
    meter.train(by_value[-1], 0, 3)
    meter.train(by_value[10], 0, methods.STEPS)
    expected = (values[-1] - values[10]) / (values[-1] - float(np.median(values)))
    assert meter.losses()[:2] == (2, 1.0)
    np.testing.assert_allclose(meter.losses().regret, expected, rtol=1e-6)
    meter.train(by_value[-1], 3, methods.STEPS)
    assert meter.losses() == (2, 0.0, 0.0)
