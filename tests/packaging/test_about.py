"""What is said of the package beside it: its version, and the oldest Python."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import dre_jax

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_version_is_the_tags_and_else_the_last_release():
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert "version" in settings["project"]["dynamic"]
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    released = re.search(r"^## \[?(\d\S*?)\]? - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)
    assert released is not None
    assert settings["tool"]["hatch"]["version"] == {"source": "vcs", "fallback-version": released[1]}
    assert dre_jax.__version__ == metadata.version("dre_jax")
    assert "version:" not in (REPOSITORY / "CITATION.cff").read_text().replace("cff-version:", "")


def test_the_minimum_of_python_is_the_lowest_classifier():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    minors = [int(one) for text in project["classifiers"] for one in re.findall(r":: 3\.(\d+)$", text)]
    assert project["requires-python"] == f">=3.{min(minors)}"
    assert minors == sorted(minors)
