"""The examples, commands and links of the README and of the pages for users."""

import ast
import re
import shlex
import tomllib
from functools import partial
from pathlib import Path

import pytest
import typer

from dre_jax.cli import app
from dre_jax.tuning import Surrogate
from dre_jax.tuning.sklearn import DRESearchCV
from tests.known_methods import SIMPLE

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
PAGES = {
    path: path.read_text()
    for path in (*REPOSITORY.glob("*.md"), *(REPOSITORY / "examples").glob("*.md"), *DOCS.rglob("*.md"))
    if path.parent.name != "gallery"  # made by the site
}

GENERATED = (DOCS / "gallery" / "index.md", DOCS / "reference" / "files.rst")
"""Pages that the site makes."""


def run(page):
    """Runs the examples of a page one after the other; the names that they leave."""
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (REPOSITORY / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)
    return names


SMALL = {"training.steps": 100, "prior.trend": (8,), "prior.layers": (8,), "prior.members": 1} | SIMPLE


def test_the_readme_tunes_a_model(monkeypatch, capsys):
    monkeypatch.setattr(Surrogate, "fit", partial(Surrogate.fit, settings=SMALL))  # takes seconds
    monkeypatch.setitem(DRESearchCV.__init__.__kwdefaults__, "n_iter", 2)  # takes a second
    names = run("README.md")
    assert capsys.readouterr().out.startswith("best {'lr': ")
    assert names["optimizer"].best.value < min(names["train"](**params, data=0.3) for params in names["tried"])


@pytest.mark.thorough
def test_the_example_of_the_recommended_method():
    names = run("docs/why/recommended.md")
    assert float(names["share"][~names["without_trend"]].sum()) < 0.5, "reversed, the last of the two"


def test_every_example_is_run():
    """Pages with Python are executed by scripts/docs, or by the tests named here."""
    executed = re.search(r"executed_pages = \[([^]]*)\]", (DOCS / "conf.py").read_text())
    by_site = set(re.findall(r'"([^"]+)"', executed[1]))
    by_tests = {
        "how-to/extend": "tests/cli/test_recipes.py",
        "how-to/hydra": "tests/tuning/hydra/test_sweep.py",
        "how-to/slurm": "tests/integrations/test_slurm.py",
        "how-to/tuning-spaces": "tests/space/test_hpob.py",
        "why/recommended": "here",
    }
    pages = {path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text() for path in DOCS.rglob("*.md")}
    assert {page for page, text in pages.items() if "```python\n" in text} == by_site | set(by_tests)


def test_a_test_shows_each_feature_of_an_interface():
    table = tomllib.loads((DOCS / "reference" / "interfaces.toml").read_text())
    tests = {text.partition("::")[::2] for cells in table.values() for text in cells.values() if "::" in text}
    for file, name in tests:
        names = {node.name for node in ast.walk(ast.parse((REPOSITORY / file).read_text())) if hasattr(node, "name")}
        assert name in names, f"{file} has no {name}"


def test_commands_have_the_options_of_the_pages():
    commands = typer.main.get_command(app).commands
    blocks = [block for text in PAGES.values() for block in re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL)]
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    calls = [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?dre-jax \w", line)]
    assert len(calls) > 20
    for call in calls:
        _, name, *arguments = shlex.split(call, comments=True)
        command = commands[name]
        command.make_parser(command.context_class(command)).parse_args(arguments)  # raises for one that it has not


def test_links_lead_to_files_and_headings():
    headings = {
        path: {
            re.sub(r"[^\w\- ]", "", line).strip().lower().replace(" ", "-")
            for line in re.findall(r"^#+ (.*)", text, re.M)
        }
        for path, text in PAGES.items()
    }
    for path, text in PAGES.items():
        for target in re.findall(r"(?:\]\(|src=\"|srcset=\")([^)\"]+)[)\"]", re.sub(r"`[^`]*`", "", text)):
            if "://" not in target and not target.startswith("mailto:"):
                name, _, heading = target.partition("#")
                file = (path.parent / name).resolve() if name else path
                assert file in GENERATED or file.exists(), f"{path.name}: {target}"
                assert not heading or heading in headings[file], f"{path.name}: {target}"


def test_the_front_pages_have_the_numbers_of_the_tables():
    def cell(page, row, column):
        line = next(line for line in (DOCS / "results" / page).read_text().splitlines() if line.startswith(row))
        return float(re.match(r"[\d.]+", line.split(" | ")[column])[0])

    expected = [
        f"{cell('tables.md', '| `hedged-prior`', 2):.3f}",
        f"{cell('tables.md', '| `gp`', 4):.3f}",
        f"{cell('tables.md', '| `random`', 5):.3f}",
        *(f"{cell('live.md', row, 3):.2f}" for row in ("| random 3x20", "| none | `gp-mixture`", "| none | `tpe`")),
        f"{cell('speed.md', '| trial-30-published', 4):.0f}",
    ]
    for page in (REPOSITORY / "README.md", DOCS / "index.md"):
        sentences = re.search(r"With past tasks, 5 trials.*times as fast", page.read_text(), re.DOTALL)[0]
        assert re.findall(r"0\.\d+", sentences) + re.findall(r"(\d+) times as fast", sentences) == expected


def test_paths_in_backticks_exist():
    """Paths of the repository, from its root, the package, `tests` or `docs`."""
    folders = (REPOSITORY, REPOSITORY / "dre_jax", REPOSITORY / "tests", DOCS)
    tops = {path.name for folder in folders for path in folder.iterdir() if path.is_dir()}
    for page, text in PAGES.items():
        if page.name in ("earlier.md", "CHANGELOG.md"):  # they name files of earlier commits
            continue
        for path in re.findall(r"`([\w.-]+/[\w./-]*)`", text):
            if path.partition("/")[0] in tops and not path.endswith(".html"):  # a report of the user
                assert any((folder / path).exists() for folder in folders), f"{page.name}: {path}"
