"""What a folder holds, without its tables; and one split at a time."""

import json

import pytest

from dre_jax.data import bundled, list_spaces, load_space, write_dataset
from dre_jax.data.hpob import outline
from dre_jax.errors import ConfigError, DataError


@pytest.mark.parametrize(("split", "mode"), [("test", "v3"), ("validation", "v3"), ("test", "v2")])
def test_agrees_with_what_is_loaded(split, mode):
    found = outline(bundled.path(), split, mode)
    assert list(found) == list_spaces(bundled.path(), mode)
    for name, space in found.items():
        loaded = load_space(bundled.path(), name, mode)
        assert (space.name, space.n_columns) == (name, loaded.n_columns)
        assert list(space.datasets) == list(loaded.split(split))
        assert space.seeds == {dataset: tuple(loaded.designs.get(dataset, ())) for dataset in loaded.split(split)}


def test_merged_modes_have_no_validation_split():
    assert outline(bundled.path(), "validation", "v2") == {}


def test_one_split_needs_no_other_file(tmp_path):
    space = bundled.load("svm")
    write_dataset(tmp_path, [space])
    (tmp_path / "meta-train-dataset.json").write_text("{ this is no JSON")
    (tmp_path / "meta-validation-dataset.json").unlink()
    found = load_space(tmp_path, "svm", splits=["test"])
    assert list(found.test) == list(space.test)
    assert found.train == found.validation == {}
    assert set(found.designs) == set(space.test)
    assert outline(tmp_path, "test")["svm"].datasets == tuple(space.test)
    with pytest.raises(DataError, match="meta-train-dataset"):
        load_space(tmp_path, "svm", splits=["test", "train"])


def test_what_is_wrong_is_said(tmp_path):
    write_dataset(tmp_path, [bundled.load("svm")])
    with pytest.raises(ConfigError, match="must be one of test in mode v3-test, but got 'validation'"):
        outline(tmp_path, "validation", "v3-test")
    with pytest.raises(ConfigError, match="'all'"):
        load_space(tmp_path, "svm", splits=["all"])
    path = tmp_path / "bo-initializations.json"
    for content in ([], {"svm": []}, {"svm": {"d": [1]}}):
        path.write_text(json.dumps(content))
        with pytest.raises(DataError, match="initial designs must be"):
            outline(tmp_path, "test")
    test = tmp_path / "meta-test-dataset.json"
    test.write_bytes(test.read_bytes()[:-60])
    with pytest.raises(DataError, match="ends inside"):
        outline(tmp_path, "test")
