"""`dre-jax report`: what it prints, and one line for what is wrong."""

import json

import pytest


def test_tables(cli, result_file, tmp_path, numbers_only):
    a, b, c, out = result_file("a", seed=1), result_file("b", seed=2), result_file("c", seed=3), tmp_path / "out"
    command = ["report", "--results", a, b, f"the third={c}", "--out", out, "--at", "2,5", "--reference", "b"]
    status, printed, error = cli(*command)
    assert status == 0
    assert error == f"report: comparing, and drawing into {out}\n"
    result = json.loads((out / "summary.json").read_text())
    assert result["methods"] == ["a", "b", "the third"]
    lines = printed.splitlines()
    assert lines[0] == "3 methods on 12 runs (6 tasks, 2 search spaces)"
    assert lines[-1] == f"report: saved in {out}, page {out / 'report.html'}"
    # The third's rows: means of the runs, means over spaces, paired differences, wins.
    pooled, spaces, paired, wins = (
        [part.strip() for part in line.split("│")[2:-1]] for line in lines if "│ the third" in line
    )
    for cells, of in ((pooled, result), (spaces, result["over_spaces"])):
        regret, rank = of["regret_at"]["5"]["the third"], of["rank_at"]["5"]["the third"]
        errors = of["standard_error"]
        assert cells[1] == f"{regret:.4f} ± {errors['average_regret']['the third'][5]:.4f}"
        assert cells[3] == f"{rank:.2f} ± {errors['average_rank']['the third'][5]:.2f}"
    assert "Means over search spaces ± standard error over tasks within search spaces" in lines
    mean, standard_error = result["differences"]["runs"]["5"]["the third"]
    assert paired[1] == f"{mean:+.4f} ± {standard_error:.4f}"
    counts = result["win_tie_loss"]["at"]["5"]["the third"]
    assert wins[1] == f"{counts['wins']} / {counts['ties']} / {counts['losses']}"
    tests = [line for line in lines if "tasks (6)" in line or "runs (12)" in line]
    assert len(tests) == 4
    assert f"{result['significance']['runs']['5']['friedman_p']:.2g}" in tests[3]
    # The same, said in another way.
    again = ["report", "--results", a, "--results", b, f"the third={c}", "--out", out, "--at", "2, 5"]
    assert cli(*again, "--reference", "b", "--quiet") == (0, printed, "")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--out", "out"], "--results FILE.json"),
        (["a.json"], "--out"),
        (["a.json", "--out", "out", "--at", "7"], "between 0 and 6"),
        (["a.json", "--out", "out", "--at", "2.5"], "--at must be whole numbers"),
        (["a.json", "--out", "a.json"], "a.json cannot be made a folder"),
        (["a.json", "--out", "full"], "summary.json must be a regular file"),
    ],
)
def test_refusals(refused, result_file, tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    path = result_file("a")
    before = path.read_bytes()
    (tmp_path / "full" / "summary.json").mkdir(parents=True)
    assert named in refused("report", *arguments, "--quiet")
    assert path.read_bytes() == before
    assert not (tmp_path / "out").exists()
