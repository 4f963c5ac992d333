"""The recipes of docs/how-to/extend.md, followed as they stand there, from the code to a result file."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from dre_jax import losses, methods, native
from dre_jax.data import load_space, read_results
from dre_jax.losses import RankedList
from dre_jax.methods import METHODS, registry
from dre_jax.search.acquisition import ACQUISITIONS, AcquisitionConfig

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "extend.md"


@pytest.fixture
def recipes():
    """The code of the method, the acquisition function and the loss."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(found) == 3
    return found


@pytest.fixture
def run(cli, evaluate, small_folder, tmp_path):
    """Evaluates a method on a small space; the rows' responses, scaled, and the incumbents of its one run."""

    def runs(method, *settings):
        folder, out = small_folder().parent, tmp_path / "out.json"
        status, _, error = cli(*evaluate(method, data=folder, space="s", trials=3, out=out), *settings, "--quiet")
        assert (status, error) == (0, "")
        results = read_results(out)
        return load_space(folder, "s"), next(results.runs())[-1], results.meta["configuration"]

    return runs


def test_a_method(recipes, run, tmp_path, monkeypatch):
    (tmp_path / "nearest.py").write_text(recipes[0])
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    for name, entry in registry.entries_of(["nearest"]).items():
        monkeypatch.setitem(METHODS, name, entry)
    space, trace, configuration = run("nearest", "--set", "power=2")
    assert configuration == {"power": 2.0}
    (task,) = space.test.values()
    x, y = task.X.astype(np.float64), (task.y - task.y.min()) / (task.y.max() - task.y.min())
    tried = list(space.designs[task.name]["test0"])
    expected = [y[tried].max()]
    while len(expected) < 4:
        best = max(tried, key=lambda row: y[row])
        left = [row for row in range(len(y)) if row not in tried]
        tried.append(min(left, key=lambda row: ((x[row] - x[best]) ** 2).sum()))
        expected.append(y[tried].max())
    np.testing.assert_allclose(trace, expected, rtol=1e-12)


def test_an_acquisition_function(recipes, run, monkeypatch):
    names = {"AcquisitionConfig": AcquisitionConfig, "Array": Array}
    exec(recipes[1], names)
    monkeypatch.setitem(ACQUISITIONS, "least_certain", names["least_certain"])
    *_, configuration = run("gp", "--acquisition", "least_certain", "--epochs", 2)
    assert configuration["acquisition"]["kind"] == "least_certain"


def test_a_loss(recipes, run, monkeypatch):
    names = {"Array": Array, "RankedList": RankedList, "jnp": jnp}
    exec(recipes[2], names)
    loss = names["absolute_error_ranked"]
    lists = RankedList(*map(jnp.array, ([0.9, 0.1, 7.0], [True, True, False], [1.0, 0.5, 0.0], [0, 1, 2], [0, 1, 2])))
    assert float(loss(jnp.array([0.5, 0.5, jnp.nan]), lists)) == pytest.approx(0.4 + 0.5 * 0.4)
    monkeypatch.setitem(losses.RANKED_LOSSES, "absolute_error", loss)
    monkeypatch.setattr(native, "available", lambda: False)
    little = ["--epochs", 2, "--set", "model.members=2", "--set", "model.hidden=4"]
    *_, configuration = run("dre-ri", "--set", "fine_tuning.loss.name=absolute_error", *little)
    assert configuration["fine_tuning"]["loss"]["name"] == "absolute_error"
