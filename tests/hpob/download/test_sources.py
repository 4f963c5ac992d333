"""What a folder of HPO-B's data must hold."""

import json

import pytest

from dre_jax.data import write_dataset
from dre_jax.errors import DataError, DataWarning
from dre_jax.hpob.download import sources
from dre_jax.hpob.download.sources import check_surrogates, check_tables
from tests.error_messages import raises_line


@pytest.fixture
def small(monkeypatch):
    """Requires two search spaces and three test tasks."""
    monkeypatch.setattr(sources, "N_SPACES", 2)
    monkeypatch.setattr(sources, "N_TEST_TASKS", 3)


@pytest.fixture
def folder(tmp_path, make_space):
    small = {"n_rows": 8, "train": ("t0", "t1"), "validation": ("v0",), "designs": (5, 5)}
    spaces = make_space("one", 3, test=("e0",), **small), make_space("two", test=("e0", "e1"), **small)
    write_dataset(tmp_path, spaces)
    return tmp_path


def test_counts_of_hpo_b(folder, surrogates):
    with pytest.raises(DataError, match=r"16 .* 86 .* 2 and 3"):
        check_tables(folder)
    with pytest.raises(DataError, match=r"86 .* 16 .* 3 in 2"):
        check_surrogates(surrogates)


@pytest.mark.parametrize(
    ("stem", "edit", "message"),
    [
        ("meta-test-dataset", lambda c: c["one"].update(e9=c["one"]["e0"]), "2 search spaces and 3 test tasks, but"),
        ("meta-test-dataset", lambda c: c["two"].pop("e1"), "but there are 2 and 2"),
        ("meta-validation-dataset", lambda c: c["one"]["v0"].update(X=[[1.0]] * 8), "validation split must have"),
        ("meta-train-dataset", lambda c: c.pop("one"), "the train split must have the search spaces"),
        ("bo-initializations", lambda c: c["one"]["e0"].pop("test3"), "5 initial designs, but has 4"),
    ],
)
@pytest.mark.usefixtures("small")
def test_wrong_content(folder, stem, edit, message):
    path = folder / f"{stem}.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        check_tables(folder)


@pytest.fixture
def surrogates(tmp_path):
    names = ["surrogate-4796-3", "surrogate-4796-17", "surrogate-5527-3"]
    statistics = {name: {"y_min": 0.0, "y_max": 0.5} for name in names}
    (tmp_path / "summary-stats.json").write_text(json.dumps(statistics))
    for name in names:
        (tmp_path / f"{name}.json").write_text('{"learner": {}, "version": [1, 4, 2]}')
    return tmp_path


@pytest.mark.usefixtures("small")
def test_surrogates(surrogates, monkeypatch):
    path = surrogates / "summary-stats.json"
    content = path.read_text()
    for wrong, message in (
        ("[]", "must hold {surrogate"),
        ('{"surrogate-1-../../x": {"y_min": 0, "y_max": 1}}', "a name must be surrogate-"),
    ):
        path.write_text(wrong)
        with raises_line(DataError, message):
            check_surrogates(surrogates)
    path.write_text(content)
    assert check_surrogates(surrogates) == "surrogates of 3 tasks in 2 search spaces"
    (surrogates / "surrogate-4796-17.json").unlink()
    monkeypatch.setattr(sources, "N_TEST_TASKS", 2)
    with pytest.warns(DataWarning, match="1 surrogates .*surrogate-4796-17"):
        check_surrogates(surrogates)
