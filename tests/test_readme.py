"""The examples of the README, run as they stand there."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_examples_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 * 5 + 1
    assert lines[-1].startswith("evaluate row ")
    found = [re.search(r": ([\d.]+) at the start, ([\d.]+) after", line) for line in lines[:-1]]
    assert all(match and float(match[1]) <= float(match[2]) <= 1 for match in found)
