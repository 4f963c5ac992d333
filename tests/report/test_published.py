"""Published traces beside a user's own results."""

import json

import numpy as np
import pytest

from dre_jax.data import read_results
from dre_jax.errors import DataError, DataWarning
from dre_jax.report import compare, write_report
from dre_jax.report.result_files import published_files, read_published

# Regret after 25, 50 and 100 trials over all 430 runs, and over the 115 runs of NAP's paper.
PUBLISHED = {
    "DRE": (0.0278, 0.0209, 0.0152),
    "FSBO2": (0.0286, 0.0182, 0.0105),
}
PUBLISHED_BY_NAP = {"NAP": (0.0381, 0.0164, 0.0048), "DRE": (0.0263, 0.0159, 0.0078)}


@pytest.fixture
def write(result_file):
    """Writes results of some datasets as a method's file into the folder of traces."""
    return lambda name, datasets, meta=None: result_file(f"traces/{name}", spaces=["svm"], tasks=datasets, meta=meta)


def test_traces_with_the_same_runs_join_a_report(tmp_path, write):
    for name, datasets in [("DRE", "abc"), ("GP", "ab"), ("NAP", "a"), ("GP-C", "abc")]:
        write(name, datasets)
    own = write("mine", "ab")
    with pytest.warns(DataWarning, match="without all 4 runs are left out: NAP lacks 2"):
        summary = write_report([own], tmp_path / "out", published=tmp_path / "traces", at=(3,))
    assert summary["methods"] == ["mine", "DRE", "GP"]
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["methods"] == summary["methods"]


def test_a_continuous_search_is_compared_with_traces_of_that_protocol(tmp_path, write):
    own = read_results(write("mine", "a", {"protocol": {"benchmark": "HPO-B v3, continuous"}}))
    write("DRE", "a")
    write("GP-C", "a")
    assert list(published_files(tmp_path / "traces", {"mine": own})) == ["GP-C"]


def test_a_folder_without_comparable_traces_is_refused(tmp_path, write):
    own = read_results(write("mine", "ab"))
    with pytest.raises(DataError, match="must hold published traces"):
        published_files(tmp_path / "traces", {"mine": own})
    write("DRE", "a")
    with pytest.raises(DataError, match="DRE lacks 2"):
        published_files(tmp_path / "traces", {"mine": own})


@pytest.mark.filterwarnings("ignore:.*better before the first trial")
def test_published_traces_have_the_regret_of_their_papers(shared_data):
    folder = shared_data / "hpob-traces"
    discrete = read_published(folder, "discrete")
    whole = {name: results for name, results in discrete.items() if "NAP" not in name}
    for figures, results in [(PUBLISHED, whole), (PUBLISHED_BY_NAP, discrete)]:
        comparison = compare(results)
        for name, regrets in figures.items():
            result = comparison.average_regret()[comparison.methods.index(name), [25, 50, 100]]
            np.testing.assert_allclose(result, regrets, atol=6e-5)
