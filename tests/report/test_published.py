"""The published traces of HPO-B and DRE in a report; tests/scripts/test_reproduce_published.py has their averages."""

import json

import pytest

from dre_jax.data import read_results
from dre_jax.report import compare, write_report
from dre_jax.report.result_files import read_order

METHODS = ("DRE", "FSBO", "RGPE", "TST", "TAF", "Random")


@pytest.fixture(scope="module")
def summary(shared_data, tmp_path_factory):
    """`summary.json` of the six methods' report, without its figures, which take their time."""
    folder = shared_data / "hpob-traces"
    out = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dre_jax.report.drawings.draw_all", lambda *_: {})
        patch.setattr("dre_jax.report.page.write_page", lambda *_: None)
        order = folder / "meta-test-tasks-per-space.json"
        write_report([folder / f"{name}.json" for name in METHODS], out, order=order)
    return json.loads((out / "summary.json").read_text())


def test_all_runs_count(summary, shared_data):
    assert (summary["methods"], summary["runs"], summary["tasks"], summary["trials"]) == (list(METHODS), 430, 86, 100)
    assert (summary["dropped"], summary["outside"], summary["at"]) == (0, 0, [25, 50, 100])
    order = read_order(shared_data / "hpob-traces" / "meta-test-tasks-per-space.json")
    assert {name: space["tasks"] for name, space in summary["spaces"].items()} == {
        name: len(datasets) for name, datasets in order.items()
    }
    assert list(summary["spaces"]) == list(order)


def test_the_way_of_averaging_decides_between_fsbo_and_rgpe_at_25(shared_data):
    files = {name: shared_data / "hpob-traces" / f"{name}.json" for name in ("FSBO", "RGPE")}
    found = compare({name: read_results(path) for name, path in files.items()})
    pooled, spaces = (found.average_rank(over)[:, 25] for over in ("runs", "spaces"))
    assert pooled[0] < pooled[1]
    assert spaces[0] > spaces[1]


def test_significance_is_over_tasks_and_over_runs(summary):
    for unit, n in (("tasks", 86), ("runs", 430)):
        for trial in ("25", "50", "100"):
            found = summary["significance"][unit][trial]
            assert found["n"] == n
            assert found["friedman_p"] < 1e-20
            assert found["wilcoxon_p"]["DRE"]["Random"] < 1e-6
    # Pooled, the ranks of the test are those of the table.
    assert summary["significance"]["runs"]["50"]["average_rank"] == pytest.approx(summary["rank_at"]["50"])
