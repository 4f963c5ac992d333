"""The paper's figures from traces: the page's structure on made-up traces, its numbers on the published ones."""

import re

import pytest


@pytest.fixture(scope="module")
def script(part):
    return part("reproduce_published")


@pytest.fixture
def traces(script, result_file, tmp_path):
    """A trace of six trials for every file that an experiment names."""
    for i, name in enumerate(sorted({file for e in script.EXPERIMENTS for file in e["files"].values()})):
        result_file(f"traces/{name}", seed=i)
    return tmp_path / "traces"


@pytest.fixture
def quick(script, monkeypatch):
    """Leaves the drawing out; one test below has it."""
    monkeypatch.setattr(script, "draw_all", lambda *_: {})


def test_structure(script, traces, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(script, "EXPERIMENTS", script.EXPERIMENTS[:1])
    assert script.main(["--traces", str(traces), "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("<img ") == 4
    assert "GCP, DKLM and HEBO" in page
    assert "reference numbers not met: 0" in capsys.readouterr().out


def test_one_section_an_experiment(script, traces, tmp_path, quick):
    assert script.run(traces, tmp_path) == 0
    page = (tmp_path / "report.html").read_text()
    titles = re.findall(r'<h2 id="s\d">Figures (.*?):.*?</h2>', page)
    assert titles == ["5a, 9a and 12", "5b, 9b and 13", "6a and 11a", "6b and 11b", "6c and 10b", "7 and 10a"]
    assert "cannot be told" in page  # the reference numbers: these traces end after six trials


def test_a_missing_trace_is_said(script, result_file, tmp_path, capsys, quick):
    for name in ("DRE", "FSBO", "scorer-16x2"):
        result_file(f"some/{name}")
    script.run(tmp_path / "some", tmp_path)
    output = capsys.readouterr().out
    assert "RGPE.json, TST.json, TAF.json, Random.json" in output
    assert output.count("left out: it takes two traces at least") == 5
    assert "1 experiments in" in output
    page = (tmp_path / "report.html").read_text()
    assert "Missing in the folder, and so not drawn: RGPE.json" in page


@pytest.mark.parametrize(("folder", "said"), [("nowhere", "must be a folder"), (".", "holds the traces of no")])
def test_a_wrong_folder(script, tmp_path, capsys, folder, said):
    with pytest.raises(SystemExit, match="2"):
        script.main(["--traces", str(tmp_path / folder), "--out", str(tmp_path / "out")])
    assert said in capsys.readouterr().err


def test_a_number_that_is_not_met_ends_with_1(script, result_file, tmp_path, capsys, quick, monkeypatch):
    transfer = script.EXPERIMENTS[0]
    monkeypatch.setattr(script, "EXPERIMENTS", (transfer,))
    for i, name in enumerate(transfer["files"]):
        result_file(name, seed=i, n_trials=100)
    assert script.main(["--traces", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    numbers = [value for kind in ("ranks", "regrets") for by_trial in transfer[kind].values() for value in by_trial]
    assert f"not met: {len(numbers)}" in capsys.readouterr().out


def test_the_published_traces(script, shared_data, tmp_path, capsys, quick):
    assert script.main(["--traces", str(shared_data / "hpob-traces"), "--out", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "not in" not in output
    assert "6 experiments" in output
    assert len(re.findall(r"\[yes\] Average (rank|regret)", output)) == 13
