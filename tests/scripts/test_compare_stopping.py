"""`scripts/compare_stopping.py`: its tables, from studies made up."""

import math

import pytest


@pytest.fixture(scope="module")
def script(part):
    return part("compare_stopping")


def test_tables(script, monkeypatch):
    further = script.FURTHER

    def record(expected, best, warned=None):
        return script.Record([math.inf, *expected], [1.0, *best], warned)

    early = record([0.5, 0.004, 0.004] + [0.0] * further, [0.9, 0.9, 0.9] + [0.2] * further, 12)
    late = record([0.5, 0.004, 0.004] + [0.0] * further, [0.9, 0.9, 0.9] + [0.895] * further)
    never = record([0.5] * (further + 3), [0.9] * (further + 3))
    assert [script.stop(early, 0.01, patience) for patience in (1, 2, 3)] == [3, 4, None]
    assert script.stop(never, 0.01, 1) is None
    monkeypatch.setattr(script, "PATIENCE", (2, 3))
    rows = script.stopping_table([early, late, never]).splitlines()
    assert "| 0.01 | 2 | 2 of 3 | 4 | 0.50 | 0.35 |" in rows
    assert "| 0.01 | 3 | 0 of 3 | - | - | - |" in rows
    names = [script.Study("recommended", "branin", "reversed 5x20", 0, i) for i in range(3)]
    table = script.warning_table(dict(zip(names, (early, late, never), strict=True)))
    assert table.splitlines()[-1] == "| reversed 5x20 | 3 | 1 | 12 |"
    # Of 25 trials that were expected to gain 0.5, the first of each study gained 0.1, the others nothing.
    assert "| 0.1 to inf | 25 | 0.5 | 0.012 ± 0.007 |" in script.calibration_table([early, late, never]).splitlines()


def test_a_study(script, tmp_path, capsys, monkeypatch):
    arguments = ["compare_stopping.py", "--tuners", "gp", "--families", "branin", "--replicates", "1", "--tasks", "1"]
    monkeypatch.setattr("sys.argv", [*arguments, "--trials", "6", "--out", str(tmp_path / "out.jsonl")])
    script.main()
    first = capsys.readouterr().out
    script.main()  # from the file
    assert capsys.readouterr().out == first
