"""`dre-jax report`: what it prints, and one line for what is wrong."""

import json

import numpy as np
import pytest


@pytest.fixture
def write(tmp_path):
    """Writes a result file of made-up runs; its path."""

    def file(name, *, seed=0, n_trials=6, spaces=("s", "t"), designs=("test0", "test1")):
        rng = np.random.default_rng(seed)
        content = {
            space: {
                task: {d: np.maximum.accumulate(rng.integers(0, 5, n_trials + 1) / 4).tolist() for d in designs}
                for task in "xyz"
            }
            for space in spaces
        }
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        return path

    return file


@pytest.fixture
def numbers_only(monkeypatch):
    """Leaves out what takes seconds and is tested elsewhere."""
    monkeypatch.setattr("dre_jax.report.drawings.draw_all", lambda *_: {})
    monkeypatch.setattr("dre_jax.report.page.write_page", lambda *_: None)


def test_tables(cli, write, tmp_path, numbers_only):
    a, b, c, out = write("a", seed=1), write("b", seed=2), write("c", seed=3), tmp_path / "out"
    command = ["report", "--results", a, b, f"the third={c}", "--out", out, "--at", "2,5", "--reference", "b"]
    status, printed, error = cli(*command)
    assert status == 0
    assert error == f"report: comparing, and drawing into {out}\n"
    found = json.loads((out / "summary.json").read_text())
    assert found["methods"] == ["a", "b", "the third"]
    lines = printed.splitlines()
    assert lines[0] == "3 methods on 12 runs (6 tasks, 2 search spaces)"
    assert lines[-1] == f"report: saved in {out}, page {out / 'report.html'}"
    # The third's rows: means of the runs, means over spaces, wins.
    pooled, spaces, wins = ([part.strip() for part in line.split("│")[2:-1]] for line in lines if "│ the third" in line)
    for cells, of in ((pooled, found), (spaces, found["over_spaces"])):
        regret, rank = of["regret_at"]["5"]["the third"], of["rank_at"]["5"]["the third"]
        errors = of["standard_error"]
        assert cells[1] == f"{regret:.4f} ± {errors['average_regret']['the third'][5]:.4f}"
        assert cells[3] == f"{rank:.2f} ± {errors['average_rank']['the third'][5]:.2f}"
    assert "Means over search spaces ± standard error over tasks within search spaces" in lines
    counts = found["win_tie_loss"]["at"]["5"]["the third"]
    assert wins[1] == f"{counts['wins']} / {counts['ties']} / {counts['losses']}"
    tests = [line for line in lines if "tasks (6)" in line or "runs (12)" in line]
    assert len(tests) == 4
    assert f"{found['significance']['runs']['5']['friedman_p']:.2g}" in tests[3]
    # The same, said in another way.
    again = ["report", "--results", a, "--results", b, f"the third={c}", "--out", out, "--at", "2, 5"]
    assert cli(*again, "--reference", "b", "--quiet") == (0, printed, "")


def test_two_methods_have_no_friedman(cli, write, tmp_path, numbers_only):
    _, printed, _ = cli("report", write("a"), write("b", spaces=("s",), seed=1), "--out", tmp_path, "--quiet")
    assert "Means over search spaces" not in printed
    (line,) = [line for line in printed.splitlines() if "tasks (3)" in line]
    assert [part.strip() for part in line.split("│")[1:-1]] == ["tasks (3)", "6", "-", "a and b"]


def test_what_is_left_out_is_told(cli, write, tmp_path, numbers_only):
    files = [write("a", n_trials=9), write("b", designs=("test0",))]
    status, _, error = cli("report", *files, "--out", tmp_path, "--quiet")
    assert status == 0
    assert error.splitlines() == [
        "dre-jax: warning: 6 of 12 runs left out, as not every method has them: b lacks 6",
        "dre-jax: warning: all runs cut to 6 trials, the shortest: a has 9",
    ]


def test_many_pairs_are_counted(cli, write, tmp_path, numbers_only):
    same = write("a")
    _, printed, _ = cli("report", *(f"m{i}={same}" for i in range(7)), "--out", tmp_path, "--quiet")
    assert "m0 and m1, m0 and m2" in printed
    assert ", and 9 more" in " ".join(printed.replace("│", " ").split())  # 21 pairs, 12 of them named


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "empty"),
        ("[]", "but got list"),
        ("{}", "at least one run"),
        ('{"s": [1]}', "space 's'"),
        ('{"s": {"x": {"test0": []}}}', "seed 'test0'"),
        ('{"s": {"x": {"test0": [0.5, NaN]}}}', "incumbents must be finite, but entry 1 is nan"),
        ('{"s": {"x": {"test0": [0.5, 0.6, 0.4]}}}', "must not decrease"),
        ('{"s": {"x": {"test0": [0.5, 1.6]}}}', "in [0, 1]"),
        ('{"s": {"x": {"test0": [NaN, NaN]}}}', "at least one run"),
        ('{"s"', "not valid JSON"),
        ("\udc89", "not UTF-8"),
    ],
)
def test_a_file_of_something_else(refused, write, tmp_path, content, named):
    path = tmp_path / "wrong.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    line = refused("report", "--results", write("a"), path, "--out", tmp_path / "out", "--quiet")
    assert str(path) in line
    assert named in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--reference", "z"], "the reference must be one of a, b, but got 'z'"),
        (["--at", "7"], "between 0 and 6"),
        (["--at", "many"], "--at must be whole numbers"),
        (["--at", "-1"], "--at must be whole numbers"),
        (["--at", "2.5"], "--at must be whole numbers"),
        (["--at", ","], "--at must name"),
        (["--at", "2,2"], "--at must name different things"),
        (["--order", "/nowhere/at/all.json"], "/nowhere/at/all.json"),
        (["--orders", "3"], "--orders"),
        (["c=/nowhere/at/all.json"], "/nowhere/at/all.json"),
        (["/dev"], "/dev cannot be read"),
        (["=a.json"], "NAME=FILE"),
    ],
)
def test_refusals(refused, write, tmp_path, arguments, named):
    out = tmp_path / "out"
    line = refused("report", write("a"), write("b", seed=1), "--out", out, "--quiet", *arguments)
    assert named in line
    assert not out.exists()


def test_other_refusals(refused, write, tmp_path):
    a, out = write("a"), tmp_path / "out"
    assert "--results FILE.json" in refused("report", "--out", out)
    assert "--out" in refused("report", a)
    assert "different names" in refused("report", a, a, "--out", out, "--quiet")
    assert "a, b have none" in refused("report", a, write("b", spaces=("u",)), "--out", out, "--quiet")
    order = tmp_path / "order.json"
    order.write_text('{"u": ["x"]}')
    assert "on the tasks of the order" in refused("report", a, "--out", out, "--order", order, "--quiet")
    assert not out.exists()


def test_nowhere_to_write(refused, write, tmp_path):
    path = write("a")
    before = path.read_bytes()
    for out in (path, path / "out", "/proc/none", "/dev/null"):
        assert f"{out} cannot be made a folder" in refused("report", path, "--out", out, "--quiet")
    assert path.read_bytes() == before
    (tmp_path / "out" / "summary.json").mkdir(parents=True)
    assert "summary.json cannot be written" in refused("report", path, "--out", tmp_path / "out", "--quiet")
