"""The benchmark on an accelerator: limits of time, the comparison with float64, and all rows in miniature."""

import os

import jax
import numpy as np
import pytest

from benchmarks import accelerator
from benchmarks.suite import accelerator_rows, float64
from benchmarks.suite.accelerator_rows import SMALL, catalogue
from benchmarks.suite.ours import default_model
from benchmarks.suite.rows import Row
from benchmarks.suite.worker import LimitedWorker
from dre_jax.data.files import read_json
from tests.processes import alive_in, wait_until, work


@pytest.mark.multiprocess
def test_a_limit_ends_work_and_the_next_gets_another_process():
    with LimitedWorker(work) as worker:
        first, _ = worker.call("work", seconds=60)
        with pytest.raises(RuntimeError, match=r"^ValueError: no memory$"):
            worker.call("raise", seconds=60)
        assert worker.call("work", seconds=60) == (first, None), "an error does not end the process"
        with pytest.raises(RuntimeError, match="it took longer than 1 s"):
            worker.call("hang", seconds=1)
        wait_until(lambda: not alive_in(first))
        second, _ = worker.call("work", seconds=60)
        assert second != first
        assert worker.call("work", seconds=60, variables={"DRE_JAX_CUDA": "0"})[1] == "0"
        assert "DRE_JAX_CUDA" not in os.environ
        with pytest.raises(RuntimeError, match="its process ended"):
            worker.call("die", seconds=60)
        last, _ = worker.call("work", seconds=60)
    wait_until(lambda: not alive_in(last))


class NoProcess:
    """Measures nothing, in no time; the second row fails."""

    fails = False

    def __init__(self, function):
        self.limits = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def call(self, what, name=None, *_, seconds, variables):
        assert variables["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
        if what == "environment":
            if self.fails:
                raise RuntimeError("it took longer than 60 s")
            rates = {"matrix_flops_per_s": 1e11, "copy_bytes_per_s": 1e10}
            return {"devices": 1, "cores": 2, "load_before": 0.0, **rates}
        if name == "suggest":
            raise RuntimeError("it took longer than 40 s")
        return Row(name=name, unit="nothing")


def test_the_file_says_which_rows_had_no_time(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(accelerator, "LimitedWorker", NoProcess)
    out = tmp_path / "rows.json"
    names = ["float64", "suggest"]
    assert accelerator.main(["--small", "--only", *names, "--out", str(out)]) == 1
    errors = [row.get("error") for row in read_json(out)["rows"]]
    assert errors == [None, "RuntimeError: it took longer than 40 s"]
    monkeypatch.setattr(accelerator, "SECONDS", 1)
    assert accelerator.main(["--small", "--only", *names, "--out", str(out)]) == 1
    assert [row["error"] for row in read_json(out)["rows"]] == ["RuntimeError: no time was left for it"] * 2
    with pytest.raises(SystemExit):
        accelerator.main(["--only", "nothing"])
    assert "--only must name rows of float64, epoch-430" in capsys.readouterr().err


def test_rows_are_measured_where_the_environment_is_not(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(accelerator, "LimitedWorker", NoProcess)
    monkeypatch.setattr(NoProcess, "fails", True)
    out = tmp_path / "rows.json"
    assert accelerator.main(["--small", "--only", "float64", "launch-10", "--out", str(out)]) == 1
    result = read_json(out)
    assert result["environment"]["error"] == "RuntimeError: it took longer than 60 s"
    assert [row.get("error") for row in result["rows"]] == [None, None]
    assert "environment failed" in capsys.readouterr().err


def test_each_epoch_has_its_launch_and_the_protocol_is_last():
    rows = list(catalogue(SMALL, full=False, peers=True))
    assert rows[-1] == "hpob-programs"
    epochs = [name for name in rows if name.startswith("epoch-") and not name.endswith("-scan")]
    assert len(epochs) == 5
    assert all(rows[rows.index(name) + 1] == name.replace("epoch", "launch") for name in epochs)


@pytest.mark.parametrize("name", ["launch-1"])
@pytest.mark.slow
def test_a_launch_is_measured_alone(name):
    """Without rates there is no floor. A time is a difference between runs: a busy machine may turn its sign."""
    row = accelerator_rows.measure(name, SMALL, {"full": False, "peers": False}, None)
    assert row.floor_s is None
    assert row.unit == "epoch of all runs"
    assert np.isfinite(row.ours.median)


@pytest.mark.multiprocess
@pytest.mark.thorough
def test_fine_tuning_beside_float64():
    model, epochs = default_model(2), 3
    problem = float64.make_problem(model, 12)
    exact = float64.solve_in_float64(2, problem, epochs)
    assert all(leaf.dtype == np.float64 for leaf in jax.tree.leaves(exact))
    right = float64.errors(float64.solve(model, problem, epochs), exact)
    assert 0 < right.params < 1e-4
    # One epoch less, and a learning rate of 0.001: all parameters that have a gradient move by about that.
    wrong = float64.errors(float64.solve(model, problem, epochs - 1), exact)
    assert wrong.params > 3e-4
    assert wrong.scores > 10 * right.scores


@pytest.mark.multiprocess
@pytest.mark.slow
@pytest.mark.thorough
def test_all_rows_in_miniature(tmp_path):
    out = tmp_path / "rows.json"
    assert accelerator.main(["--small", "--full", "--out", str(out)]) == 0
    result = {row["name"]: row for row in read_json(out)["rows"]}
    assert list(result) == list(catalogue(SMALL, full=True, peers=False))
    assert result["float64"]["params"] < 1e-3
    # In miniature, the difference of two calls may be nothing.
    timed = {name: row for name, row in result.items() if name != "float64" and not name.startswith("launch-")}
    assert all(row["ours_s"] > 0 and row["floor_s"] > 0 for row in timed.values())
    # The padding of parameters, and the runs.
    assert result["hpob-programs"]["programs"] == 2
    assert 0 < result["run-tasks-10"]["host_s"] < result["run-tasks-10"]["ours_s"]
