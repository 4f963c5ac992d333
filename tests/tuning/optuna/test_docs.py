"""The examples of docs/how-to/tuning-optuna.md, as they stand there.

scripts/docs runs them too, and does not look at what they print.
"""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "tuning-optuna.md"


@pytest.mark.thorough
@pytest.mark.usefixtures("sobol_points")
def test_examples_run(capsys):
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    best, past, found = capsys.readouterr().out.splitlines()
    assert float(best) < 5.0
    assert past == "3"
    assert float(found.split()[-1]) > 0.9
    assert len(names["study"].trials) == 3
