"""What a suggestion takes."""

import json
import time
from pathlib import Path

from benchmarks import ask


def test_a_process_tells_when_it_suggested(capsys):
    begun = time.time()
    assert ask.main(["--child", str(Path()), "0"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert begun <= told["at"] <= time.time()
    assert told["later"] == []


def test_the_table(capsys):
    ask.print_table([ask.Row("none", 0, 4.0, 1.25, None, None), ask.Row("none", 30, 4.0, 1.25, 0.02, 0.0314)])
    last = capsys.readouterr().out.splitlines()[-2:]
    assert last == ["| none | 0 | 4.0 | 1.2 | - | - |", "| none | 30 | 4.0 | 1.2 | 20 | 31 |"]


def test_past_tasks_differ():
    here, there = ask.evaluations(8, 0), ask.evaluations(8, 1)
    assert len(here) == 8
    assert [params for params, _ in here] != [params for params, _ in there]
    assert all(ask.loss(params, 0) == value for params, value in here)
