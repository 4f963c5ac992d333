"""The shapes of HPO-B's search spaces against the files that are at hand."""

from benchmarks.suite.hpob_shapes import DESIGNS, SPACES
from dre_jax.data.files import read_json


def test_counts():
    assert len(SPACES) == 16
    assert sum(space.test_tasks for space in SPACES) == 86
    assert DESIGNS * 86 == 430
    assert all(space.rows_per_task > 105 for space in SPACES), "a run of 100 trials would see the whole table"


def test_against_the_files(shared_data):
    folder = shared_data / "hpob-traces"
    columns, tasks = (
        read_json(folder / f"meta-{name}.json") for name in ("dataset-descriptors", "test-tasks-per-space")
    )
    for space in SPACES:
        assert space.columns == len(columns[space.name]["variables_order"])
        assert space.test_tasks == len(tasks[space.name])
