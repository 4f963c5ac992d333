"""``dre-jax compare``: the table against the report's own numbers, what is kept, and what is refused."""

import json

import pytest

from dre_jax.data import read_results
from dre_jax.hpob import Times, timing


@pytest.fixture
def compared(cli, tmp_path, monkeypatch, jobs_in_this_process):
    times = lambda name, *_, **__: Times(2.0 if name == "gp" else None, 1.0, 0.0123)  # noqa: E731
    monkeypatch.setattr(timing, "suggestion_times", times)
    fixed = ["--data", "bundled", "--space", "svm", "--seeds", "test0", "--trials", "3", "--out", tmp_path, "--quiet"]
    return lambda *arguments: cli("compare", *fixed, "--methods", *arguments)


@pytest.mark.slow
def test_methods_run_once_and_are_printed(compared, tmp_path):
    status, out, error = compared("random", "gp", "--at", "1,3")
    assert (status, error) == (0, "")
    summary = json.loads((tmp_path / "report" / "summary.json").read_text())
    for name, fit in (("random", "-"), ("gp", "2.0")):
        cells = [cell.strip() for cell in next(row for row in out.splitlines() if f" {name} " in row).split("│")[1:-1]]
        spaces = summary["over_spaces"]
        regret = [f"{spaces['regret_at'][at][name]:.4f}" for at in ("1", "3")]
        rank = [f"{spaces['rank_at'][at][name]:.2f}" for at in ("1", "3")]
        assert [cell.split(" ± ")[0] for cell in cells] == [name, *regret, *rank, fit, "12.3"]
        assert {space for space, *_ in read_results(tmp_path / "results" / f"{name}.json").runs()} == {"bundled/svm"}
    selected = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("*.json")}
    assert compared("random", "gp", "--at", "1,3")[1] == out
    assert {path: path.stat().st_mtime_ns for path in selected} == selected


def test_a_failed_method_is_omitted_and_the_status_is_2(compared, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("class Broken:\n    def observe_and_suggest(self, *_):\n        raise ValueError('no idea')\n")
    status, out, error = compared("random", f"{broken}:Broken")
    assert status == 2
    assert "runs failed, the first: space 'svm'" in error
    assert "1 of 2 jobs failed; rerun the command to try them again" in error
    assert "random" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--methods", "gp", "--at", "9", "--trials", "3"], "--at must be at most --trials 3, but got 9"),
        (["--methods", "gp", "--split", "train"], "--split must be test or validation, but got 'train'"),
        (["--methods", "gp", "--space", "trees"], "search spaces must be among"),
        ([], "a comparison needs --methods"),
    ],
)
def test_invalid_options(refused, tmp_path, arguments, said):
    assert said in refused("compare", "--data", "bundled", "--out", tmp_path, *arguments)
