"""What is said of the package beside it: the version in one place, and the oldest Python."""

import re
import tomllib
from pathlib import Path

import dre_jax

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_version_is_in_one_place():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert "version" in project["dynamic"]
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    released = re.search(r"^## \[?(\d\S*?)\]? - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)
    assert released is not None
    assert released[1] == dre_jax.__version__
    assert "version:" not in (REPOSITORY / "CITATION.cff").read_text().replace("cff-version:", "")


def test_the_minimum_of_python_is_the_lowest_classifier():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    minors = [int(one) for text in project["classifiers"] for one in re.findall(r":: 3\.(\d+)$", text)]
    assert project["requires-python"] == f">=3.{min(minors)}"
    assert minors == sorted(minors)
