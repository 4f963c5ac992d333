"""What a suggestion takes."""

import json
import time
from pathlib import Path

from benchmarks import ask


def test_a_process_tells_when_it_suggested(capsys):
    start = time.time()
    assert ask.main(["--child", str(Path()), "0"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert start <= facts["at"] <= time.time()
    assert facts["later"] == []


def test_past_tasks_differ():
    here, there = ask.evaluations(8, 0), ask.evaluations(8, 1)
    assert len(here) == 8
    assert [params for params, _ in here] != [params for params, _ in there]
    assert all(ask.loss(params, 0) == value for params, value in here)
