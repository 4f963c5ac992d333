"""``dre-jax suggest``."""

import json

import pytest

from dre_jax import Categorical, Evaluated, Float, Int, Optimizer, Space, Surrogate, past_of, write_space
from tests.known_methods import TaskMeans

SPACE = Space(
    {"x": Float(0.0, 1.0), "kernel": Categorical(["rbf", "poly"]), "degree": Int(2, 5, when={"kernel": "poly"})}
)


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("x,kernel,degree,value,state\n0.5,rbf,,2.0,\n0.25,poly,3,,running\n0.75,rbf,,,failed\n")
    return path


def lines(out):
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.usefixtures("even_points")
def test_lines_equal_suggestions_of_an_optimizer(cli, space, history):
    status, out, error = cli("suggest", "--space", space, "--history", history, "-n", 5, "--seed", 3)
    assert (status, error) == (0, "")
    optimizer = Optimizer(SPACE, seed=3)
    optimizer.add({"x": 0.5, "kernel": "rbf"}, 2.0)
    optimizer.add_running({"x": 0.25, "kernel": "poly", "degree": 3})
    optimizer.add({"x": 0.75, "kernel": "rbf"}, None)
    assert lines(out) == [trial.params for trial in optimizer.ask(5)]


def test_from_a_checkpoint(cli, refused, space, tmp_path, registries):
    trials = lambda t: [Evaluated({"x": x / 9, "kernel": "rbf"}, abs(x / 9 - t / 3)) for x in range(10)]  # noqa: E731
    past = past_of(SPACE, {str(t): trials(t) for t in range(3)}, direction="minimize")
    surrogate = Surrogate.fit(past, method=TaskMeans())
    surrogate.save(tmp_path / "surrogate")
    status, out, error = cli("suggest", "--space", space, "--checkpoint", tmp_path / "surrogate", "-n", 2)
    assert (status, error) == (0, "")
    assert lines(out) == list(surrogate.start[:2])
    write_space(space, Space({"y": Float(0.0, 1.0)}))
    assert "y (only here)" in refused("suggest", "--space", space, "--checkpoint", tmp_path / "surrogate")


def test_refused(refused, space, history):
    history.write_text("x,kernel,value\n2,rbf,1\n")
    assert "history.csv, line 2: x must be a number in" in refused("suggest", "--space", space, "--history", history)
    assert "greater than or equal to 1" in refused("suggest", "--space", space, "-n", 0)
