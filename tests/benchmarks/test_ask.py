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


def test_past_tasks_differ():
    here, there = ask.evaluations(8, 0), ask.evaluations(8, 1)
    assert len(here) == 8
    assert [params for params, _ in here] != [params for params, _ in there]
    assert all(ask.loss(params, 0) == value for params, value in here)
