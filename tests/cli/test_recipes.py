"""The recipes of docs/how-to/extend.md, followed as they stand, from files in an empty folder to a result file."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import native
from dre_jax.data import bundled, load_space, read_results
from dre_jax.losses import LOSSES, RankedList
from dre_jax.methods import find
from dre_jax.methods.dre.backends import BACKENDS
from dre_jax.suggest.weighting import values_are_logarithms
from dre_jax.tuning import Float, Space, Surrogate, write_space

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "extend.md"
LITTLE = ("--epochs", 2, "--set", "model.members=2", "--set", "model.hidden=4")
FILES = ("nearest.py", "first.py", "test_nearest.py", "margin.py", "absolute.py", "lines.py", "four.py")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, registries):
    """The current folder: files with the code of the page, and nothing else."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for name, source in zip(FILES, code, strict=True):
        (tmp_path / name).write_text(source)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(cli, evaluate):
    """Evaluates a method on a task of the bundled data; a run's incumbents, and the configuration in the file."""

    def runs(method, *settings, trials=3):
        out = "out.json"
        arguments = [*evaluate(method, trials=trials, out=out), "--seeds", "test0", *settings, "--quiet"]
        status, _, error = cli(*arguments)
        assert (status, error) == (0, "")
        results = read_results(Path(out))
        _, dataset, _, trace = next(results.runs())
        assert results.meta["method"] == method
        return dataset, trace, results.meta

    return runs


def expected_trace(dataset, choose, trials=3):
    """The incumbents of a run in which `choose` says which of the rows that are left comes next."""
    space = load_space(bundled.path(), "svm")
    task = space.test[dataset]
    y = (task.y.astype(np.float64) - task.y.min()) / (task.y.max() - task.y.min())
    rows = list(space.designs[dataset]["test0"])
    incumbents = [y[rows].max()]
    while len(incumbents) <= trials:
        rows.append(choose(task.X.astype(np.float64), y, rows, [row for row in range(len(y)) if row not in rows]))
        incumbents.append(y[rows].max())
    return incumbents


def test_a_compiled_method(run):
    def nearest(x, y, rows, left):
        best = max(rows, key=lambda row: y[row])
        return min(left, key=lambda row: ((x[row] - x[best]) ** 2).sum())

    dataset, trace, meta = run("nearest.py:Nearest", "--set", "power=2")
    assert meta["configuration"] == {"power": 2.0}
    np.testing.assert_allclose(trace, expected_trace(dataset, nearest), rtol=1e-6)


def test_a_method_is_checked(monkeypatch):
    monkeypatch.syspath_prepend(".")
    for name in ("nearest", "test_nearest"):  # in the folder of another test
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = import_module("test_nearest")
    module.test_nearest()
    monkeypatch.setattr(module.Nearest, "acquire", lambda *_: jnp.full(21, jnp.nan))
    with pytest.raises(AssertionError, match="Nearest"):
        module.test_nearest()


def test_a_host_method(run):
    dataset, trace, _ = run("first.py:First", "--workers", 1)
    np.testing.assert_allclose(trace, expected_trace(dataset, lambda x, y, rows, left: left[0]), rtol=1e-6)


def test_an_acquisition_function(run):
    *_, meta = run("margin.py:METHOD", "--epochs", 2, "--set", "acquisition.margin=0.2", trials=1)
    assert meta["configuration"]["acquisition"] == {"kind": "margin", "beta": 1.0, "margin": 0.2}
    assert values_are_logarithms(find("margin.py:METHOD").make(), sample=False)


@pytest.mark.slow
def test_a_loss(run, monkeypatch):
    monkeypatch.setattr(native, "available", lambda: False)
    *_, meta = run("absolute.py:ENTRY", *LITTLE, trials=1)
    assert meta["configuration"]["fine_tuning"]["loss"]["name"] == "absolute_error"
    lists = RankedList(*map(jnp.array, ([0.9, 0.1, 7.0], [True, True, False], [1.0, 0.5, 0.0], [0, 1, 2], [0, 1, 2])))
    loss = LOSSES["absolute_error"].fn(jnp.array([0.5, 0.5, jnp.nan]), lists)
    assert float(loss) == pytest.approx(0.4 + 0.5 * 0.4)


def test_a_reader(cli):
    space = Space({"C": Float(0.0, 1.0)})
    write_space("space.json", space)
    trials = [{"task": task, "params": {"C": c / 9}, "loss": (c / 9 - 0.3) ** 2} for task in "ab" for c in range(10)]
    Path("past.jsonl").write_text("\n".join(map(json.dumps, trials)))
    command = ["meta-train", "--from", "lines.py:read_lines=past.jsonl", "--space-file", "space.json", "--out", "out"]
    more = ["--method", "gcp", "--set", "prior.steps=5", "--quiet"]
    status, _, error = cli(*command, *more, "--direction", "minimize")
    assert (status, error) == (0, "")
    surrogate = Surrogate.load("out")
    assert surrogate.facts["tasks"] == ["a", "b"]
    assert surrogate.start[0]["C"] == pytest.approx(3 / 9)
    for wrong, reason in (([], "takes --direction"), (["--direction", "minimize", "--task", "t"], "--task needs")):
        status, _, error = cli(*command, *more, *wrong)
        assert status == 2
        assert reason in error


@pytest.mark.slow
def test_a_backend(run):
    BACKENDS.clear()
    *_, trace, meta = run("dre-ri", *LITTLE, trials=2)
    assert meta["backends"][0]["steps"] == "xla"
    Path("out.json").unlink()
    jax.clear_caches()  # another process would have no program either
    find("four.py:ENTRY")
    calls, ours = [], BACKENDS[0]
    BACKENDS[0] = ours._replace(take_steps=lambda request: calls.append(request) or ours.take_steps(request))
    *_, same, meta = run("four.py:ENTRY", *LITTLE, trials=2)
    assert calls
    np.testing.assert_allclose(same, trace)
    assert meta["backends"][0]["steps"] == "four steps an iteration"
