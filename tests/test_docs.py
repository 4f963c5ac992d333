"""The example of the README and those of the pages for users, run as they stand there."""

import re
from functools import partial
from pathlib import Path

import pytest

from dre_jax.tuning import Surrogate

REPOSITORY = Path(__file__).parent.parent


def run(page):
    """Runs the examples of a page one after the other; the names that they leave."""
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (REPOSITORY / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)
    return names


def test_the_readme_tunes_a_model(monkeypatch, capsys):
    monkeypatch.setattr(Surrogate, "fit", partial(Surrogate.fit, settings={"training.steps": 200}))  # takes seconds
    names = run("README.md")
    assert capsys.readouterr().out.startswith("best {'lr': ")
    assert names["optimizer"].best.value < min(names["train"](**params, data=0.3) for params in names["tried"])


@pytest.mark.parametrize(
    "page", ["docs/how-to/tuning.md", pytest.param("docs/results/recommended.md", marks=pytest.mark.thorough)]
)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page)
