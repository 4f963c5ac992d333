"""The comparison of methods."""

import numpy as np
import pytest

from dre_jax.data import read_results, write_dataset
from dre_jax.errors import MissingExtraError
from dre_jax.hpob.timing import Times
from dre_jax.methods.baselines import tpe


@pytest.mark.slow
@pytest.mark.thorough
def test_the_script_from_end_to_end(part, tmp_path, monkeypatch, make_space, capsys, jobs_in_this_process):
    """Means over search spaces by hand; a second run computes nothing; a method without its package is left out."""

    def missing(*names):
        raise MissingExtraError("optuna", "optuna")

    monkeypatch.setattr(tpe, "import_extra", missing)
    script, out = part("compare_methods"), tmp_path / "out"
    monkeypatch.setattr(script, "suggestion_times", lambda *_: Times(None, 1.0, 0.0123))
    write_dataset(tmp_path / "toy", [make_space(name, test=tasks) for name, tasks in (("p", "xy"), ("q", "x"))])
    options = ["--methods", "gp", "random", "tpe", "--data", tmp_path / "toy", "--designs", "test0,test1"]
    monkeypatch.setattr("sys.argv", ["compare_methods.py", *map(str, [*options, "--trials", "12", "--out", out])])
    script.main()
    text, (printed, error) = (out / "methods.md").read_text(), capsys.readouterr()
    assert text in printed
    assert "tpe is left out: this needs the package 'optuna'" in error
    assert "6 runs a method of 12 trials, 3 test tasks of 2 search spaces (toy/p, toy/q)" in " ".join(text.split())
    for name in ("gp", "random"):
        runs = list(read_results(out / "results" / f"{name}.json").runs())
        at_10 = np.mean([np.mean([1.0 - run[-1][10] for run in runs if run[0] == f"toy/{space}"]) for space in "pq"])
        (cells,) = [line.split(" | ") for line in text.split("## ")[0].splitlines() if f"| `{name}` |" in line]
        assert (cells[1], cells[-1], cells[5][:6]) == ("no", "12 |", f"{at_10:.4f}")
    written = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.json")}
    script.main()
    assert (out / "methods.md").read_text() == text
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert (out / "report" / "report.html").exists()
