"""The example of the README and those of the pages for users, run as they stand there."""

import ast
import re
import tomllib
from functools import partial
from pathlib import Path

import pytest

from dre_jax.tuning import Surrogate
from dre_jax.tuning.sklearn import DRESearchCV

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"


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
    monkeypatch.setitem(DRESearchCV.__init__.__kwdefaults__, "n_iter", 2)  # takes a second
    names = run("README.md")
    assert capsys.readouterr().out.startswith("best {'lr': ")
    assert names["optimizer"].best.value < min(names["train"](**params, data=0.3) for params in names["tried"])


@pytest.mark.thorough
def test_the_example_of_the_recommended_method():
    names = run("docs/results/recommended.md")
    assert float(names["share"][~names["without_trend"]].sum()) < 0.5, "reversed, the last of the two"


def test_every_example_is_run():
    """Pages with Python are executed by scripts/docs, or by the tests named here."""
    executed = re.search(r"executed_pages = \[([^]]*)\]", (DOCS / "conf.py").read_text())
    by_site = set(re.findall(r'"([^"]+)"', executed[1]))
    by_tests = {
        "how-to/extend": "tests/cli/test_recipes.py",
        "how-to/tuning-spaces": "tests/tuning/space/test_hpob.py",
        "results/recommended": "here",
    }
    pages = {path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
    assert {page for page, text in pages.items() if "```python\n" in text} == by_site | set(by_tests)


def test_a_test_shows_each_feature_of_an_interface():
    table = tomllib.loads((DOCS / "reference" / "interfaces.toml").read_text())
    tests = {text.partition("::")[::2] for cells in table.values() for text in cells.values() if "::" in text}
    for file, name in tests:
        names = {node.name for node in ast.walk(ast.parse((REPOSITORY / file).read_text())) if hasattr(node, "name")}
        assert name in names, f"{file} has no {name}"
