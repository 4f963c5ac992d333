"""The paper's figures from traces: the page's structure on made-up traces, its numbers on the published ones."""

import re

import pytest


@pytest.fixture(scope="module")
def script(part):
    return part("reproduce_published")


def test_a_section_an_experiment_and_what_is_missing_is_said(script, result_file, tmp_path, capsys, monkeypatch):
    names = sorted({file for experiment in script.EXPERIMENTS for file in experiment["files"].values()} - {"RGPE"})
    for i, name in enumerate(names):
        result_file(f"traces/{name}", seed=i)
    monkeypatch.setattr(script, "EXPERIMENTS", script.EXPERIMENTS[:2])
    assert script.main(["--traces", str(tmp_path / "traces"), "--out", str(tmp_path / "out")]) == 0
    page, said = (tmp_path / "out" / "report.html").read_text(), capsys.readouterr().out
    titles = re.findall(r'<h2 id="s\d">Figures (.*?):.*?</h2>', page)
    assert titles == ["5a, 9a and 12", "5b, 9b and 13"]
    assert page.count("<img ") == 8
    assert "GCP, DKLM and HEBO" in page
    assert "cannot be told" in page  # the reference numbers: these traces end after six trials
    assert "Missing in the folder, and so not drawn: RGPE.json" in page
    assert "reference numbers not met: 0" in said


@pytest.mark.parametrize(("folder", "said"), [("nowhere", "must be a folder"), (".", "holds the traces of no")])
def test_a_wrong_folder(script, tmp_path, capsys, folder, said):
    with pytest.raises(SystemExit, match="2"):
        script.main(["--traces", str(tmp_path / folder), "--out", str(tmp_path / "out")])
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_number_that_is_not_met_ends_with_1(script, result_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(script, "draw_all", lambda *_: {})
    transfer = script.EXPERIMENTS[0]
    for i, name in enumerate(transfer["files"]):
        result_file(name, seed=i, n_trials=100)
    assert script.main(["--traces", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    numbers = [value for kind in ("ranks", "regrets") for by_trial in transfer[kind].values() for value in by_trial]
    said = capsys.readouterr().out
    assert f"not met: {len(numbers)}" in said
    assert said.count("left out: it takes two traces at least") == len(script.EXPERIMENTS) - 1


def test_the_published_traces(script, shared_data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(script, "draw_all", lambda *_: {})
    assert script.main(["--traces", str(shared_data / "hpob-traces"), "--out", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "not in" not in output
    assert "6 experiments" in output
    assert len(re.findall(r"\[yes\] Average (rank|regret)", output)) == 13
