"""The script makes what ships: the same rows and designs, and of some rows the same responses."""

import pytest

from dre_jax.data import bundled
from dre_jax.data.files import read_json


@pytest.fixture(scope="module")
def results(part):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed; it comes with the extra `test`")
    return part("bundled.spaces")


def test_rows_and_designs(results):
    names = "meta-test-dataset", "bo-initializations"
    tables, designs = (read_json(bundled.path() / f"{name}.json.gz") for name in names)
    for space in bundled.spaces():
        task, table = next(iter(tables[space].items()))
        assert results.task_rows(space, task) == table["X"]
        assert results.designs(space, task, len(table["X"])) == designs[space][task]


@pytest.mark.parametrize(
    "space", [pytest.param(name, marks=[pytest.mark.thorough] * (name != "svm")) for name in bundled.spaces()]
)
def test_responses(results, part, space):
    decode, response = part("bundled.spaces").decode, part("bundled.scoring").response
    stored = read_json(bundled.path() / "meta-test-dataset.json.gz")[space]
    for problem in part("bundled.tasks").problems()["test"][:4]:
        x, y = stored[problem.name].values()
        result = response(space, decode(space, x[7]), problem)
        assert result == pytest.approx(y[7][0], abs=1e-5)
