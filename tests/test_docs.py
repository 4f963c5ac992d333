"""The examples of the README and of the pages for users, run as they stand there."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent


PAGES = [
    ("README.md", 12),
    ("docs/how-to/tuning.md", 0),
    pytest.param("docs/results/recommended.md", 0, marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("page", "lines"), PAGES)
def test_examples_run(page, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (REPOSITORY / page).read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)
    said = capsys.readouterr().out.splitlines()[:lines]
    assert len(said) == lines
    if said:  # the best of a study, regrets of runs, a suggestion
        assert said.pop(0).startswith("best {'lr': ")
        assert said.pop().startswith("evaluate row ")
        found = [re.search(r": ([\d.]+) at the start, ([\d.]+) after", line) for line in said]
        assert all(match and float(match[1]) <= float(match[2]) <= 1 for match in found)
