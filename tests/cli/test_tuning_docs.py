"""The examples of the command line in docs/how-to, as they stand there."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from dre_jax.tuning import Optimizer, read_space

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
TRAIN = """
import argparse
parser = argparse.ArgumentParser()
for name, kind in {"lr": float, "optimiser": str, "momentum": float, "dropout": float}.items():
    parser.add_argument(f"--{name}", type=kind)
given = parser.parse_args()
assert (given.momentum is None) == (given.optimiser == "adam")
print("loss:", given.lr)
"""


def blocks_of(page):
    """Blocks by language."""
    result = {}
    for language, block in re.findall(r"```(\w+)\n(.*?)```", (PAGES / page).read_text(), re.DOTALL):
        result.setdefault(language, []).append(block)
    return result


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Blocks by language, in a folder that has the files that they speak of."""
    result = blocks_of("tuning-cli.md")
    (tmp_path / "space.json").write_text(result["json"][0])
    (tmp_path / "history.csv").write_text(result["csv"][0])
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    return result


def words(block):
    first, *arguments = shlex.split(block.replace("\\\n", " "))
    assert first == "dre-jax"
    return [sys.executable if word == "python" else word for word in arguments]


def test_tune(page, cli):
    arguments = words(page["sh"][0])
    arguments[arguments.index("--trials") + 1] = "4"
    status, out, error = cli(*arguments)
    assert status == 0, error
    assert out.startswith("best of 4 trials: ")
    assert "failed" not in error


@pytest.mark.usefixtures("even_points")
def test_costs_and_standard_errors(page, cli, tmp_path):
    (block,) = (block for block in page["sh"] if "--cost seconds" in block)
    (tmp_path / "train.py").write_text(TRAIN + 'print("seconds: 12.5")\nprint("error: 0.01")\n')
    arguments = words(block)
    arguments[arguments.index("--trials") + 1] = "3"
    status, _, error = cli(*arguments)
    assert status == 0, error
    assert [(trial.cost, trial.stderr) for trial in Optimizer.load("study.json").trials] == [(12.5, 0.01)] * 3


@pytest.mark.usefixtures("even_points")
def test_another_space(page, cli, tmp_path):
    first, (block,) = words(page["sh"][0]), (block for block in page["sh"] if "--change-space" in block)
    dropout = re.search(r'`("dropout":\s+{.*?})`', (PAGES / "tuning-cli.md").read_text(), re.DOTALL)
    wider = json.loads(page["json"][0]) | json.loads(f"{{{dropout[1]}}}")
    (tmp_path / "wider.json").write_text(json.dumps(wider))
    first[first.index("--trials") + 1] = "3"
    assert cli(*first)[0] == 0
    arguments = words(block)
    arguments[arguments.index("--trials") + 1] = "4"
    status, _, error = cli(*arguments)
    assert status == 0, error
    assert [trial["dropout"] for trial in Optimizer.load("study.json").trials[:3]] == [0.0] * 3


@pytest.mark.usefixtures("even_points")
def test_trainings_that_pause(cli, tmp_path, monkeypatch):
    """The program continues from its checkpoint: the loss of n epochs is that of a training of n epochs at once."""
    blocks = blocks_of("fidelity.md")
    (tmp_path / "space.json").write_text(blocks["json"][0])
    (tmp_path / "train.py").write_text(blocks["py"][0])
    monkeypatch.chdir(tmp_path)
    arguments = words(blocks["sh"][0])
    arguments[arguments.index("--total-budget") + 1] = "12"
    status, out, error = cli(*arguments)
    assert status == 0, error
    assert out.startswith("best so far of ")
    trials = Optimizer.load("study.json").trials
    assert any(trial.resumes is not None for trial in trials)
    for trial in trials:
        assert trial.value == pytest.approx((1.0 - trial["lr"]) ** (2 * trial.budget))


@pytest.mark.usefixtures("even_points")
def test_suggest(page, cli):
    (block,) = (block for block in page["sh"] if block.startswith("dre-jax suggest"))
    status, out, error = cli(*words(block))
    assert status == 0, error
    space = read_space("space.json")
    assert [space.check(json.loads(line)) for line in out.splitlines()] == list(map(json.loads, out.splitlines()))
    assert len(out.splitlines()) == 2
