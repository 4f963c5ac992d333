"""The paper's figures from traces: the reports on made-up traces, their numbers on the published ones."""

import re

import pytest


@pytest.fixture(scope="module")
def script(part):
    return part("reproduce_published")


def test_reports_of_experiments_and_missing_traces(script, result_file, tmp_path, capsys, monkeypatch):
    names = sorted({file for experiment in script.EXPERIMENTS for file in experiment["files"].values()} - {"RGPE"})
    for i, name in enumerate(names):
        result_file(f"traces/{name}", seed=i)
    monkeypatch.setattr(script, "EXPERIMENTS", script.EXPERIMENTS[:1])
    assert script.main(["--traces", str(tmp_path / "traces"), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    page = (tmp_path / "out" / "transfer" / "report.html").read_text()
    assert "<h1>Figures 5a, 9a and 12:" in page
    assert page.count("<img ") == 5
    assert "GCP, DKLM and HEBO" in said
    assert "[cannot be told] Average rank of DRE" in said  # these traces end after six trials
    assert "traces: RGPE.json" in said
    assert "reference numbers not met: 0" in said


def test_a_number_that_is_not_met_ends_with_1(script, result_file, tmp_path, capsys, numbers_only):
    transfer = script.EXPERIMENTS[0]
    for i, name in enumerate(transfer["files"]):
        result_file(name, seed=i, n_trials=100)
    assert script.main(["--traces", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    numbers = [value for kind in ("ranks", "regrets") for by_trial in transfer[kind].values() for value in by_trial]
    said = capsys.readouterr().out
    assert f"not met: {len(numbers)}" in said
    assert said.count("left out: it takes two traces at least") == len(script.EXPERIMENTS) - 1


@pytest.mark.thorough
def test_the_published_traces(script, shared_data, tmp_path, capsys, numbers_only):
    assert script.main(["--traces", str(shared_data / "hpob-traces"), "--out", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert f"not in {shared_data}" not in output
    assert "6 experiments" in output
    assert len(re.findall(r"\[yes\] Average (rank|regret)", output)) == 13
