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
    for *_, at_any_step, at_the_end in rows:
        assert len(at_any_step) == len(at_the_end) == 54
        assert np.all(np.diff(at_any_step) <= 0)
        assert np.all(np.array(at_any_step) <= at_the_end)
    assert rows[0][5][:26] == [1.0] * 26  # the first training has not ended
    assert "| random | curves | 1 |" in first
    compare.main(arguments)
    assert capsys.readouterr().out == first
    assert len(out.read_text().splitlines()) == 2
