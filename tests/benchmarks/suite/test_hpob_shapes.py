"""The shapes of HPO-B's search spaces against the files that are at hand."""

import json

from benchmarks.suite.hpob_shapes import SPACES, n_runs


def test_counts():
    assert len(SPACES) == 16
    assert sum(space.test_tasks for space in SPACES) == 86
    assert n_runs() == 430
    assert all(space.rows_per_task > 105 for space in SPACES), "a run of 100 trials would see the whole table"


def test_against_the_files(shared_data):
    folder = shared_data / "hpob-traces"
    columns = json.loads((folder / "meta-dataset-descriptors.json").read_text())
    tasks = json.loads((folder / "meta-test-tasks-per-space.json").read_text())
    for space in SPACES:
        assert space.columns == len(columns[space.name]["variables_order"])
        assert space.test_tasks == len(tasks[space.name])
