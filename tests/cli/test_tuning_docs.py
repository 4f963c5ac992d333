"""The examples of docs/how-to/tuning-cli.md, as they stand there."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from dre_jax.tuning import read_space

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "tuning-cli.md"
TRAIN = """
import argparse
parser = argparse.ArgumentParser()
for name, kind in {"lr": float, "optimiser": str, "momentum": float}.items():
    parser.add_argument(f"--{name}", type=kind)
given = parser.parse_args()
assert (given.momentum is None) == (given.optimiser == "adam")
print("loss:", given.lr)
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Blocks by language, in a folder that has the files that they speak of."""
    result = {}
    for language, block in re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        result.setdefault(language, []).append(block)
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
def test_suggest(page, cli):
    (block,) = (block for block in page["sh"] if block.startswith("dre-jax suggest"))
    status, out, error = cli(*words(block))
    assert status == 0, error
    space = read_space("space.json")
    assert [space.check(json.loads(line)) for line in out.splitlines()] == list(map(json.loads, out.splitlines()))
    assert len(out.splitlines()) == 2
