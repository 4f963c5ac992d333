"""`HPOBHandler` against the contract that HPO-B publishes, stated once more."""

import gzip
import json

import numpy as np
import pytest

from dre_jax import RandomSearch, Suggester
from dre_jax.data import bundled, load_space
from dre_jax.errors import ConfigError, DataError
from dre_jax.hpob.handler import HPOBHandler


def stated(tables, designs, method, space, dataset, seed, n_trials):
    """HPO-B's `evaluate`: incumbents, entry 0 the design's; ended at the optimum, which then fills the rest."""
    x = np.array(tables[space][dataset]["X"])
    y = np.array(tables[space][dataset]["y"]).reshape(-1, 1)  # HPO-B's files have lists of one number
    y = (y - np.min(y)) / (np.max(y) - np.min(y))
    current = list(designs[space][dataset][seed])
    pending = [row for row in range(len(x)) if row not in current]
    history = [np.max(y[current])]
    for _ in range(n_trials):
        index = method.observe_and_suggest(x[current], y[current], x[pending])
        current.append(pending.pop(index))
        history.append(np.max(y[current]))
        if np.max(y) in history:
            break
    return history + [np.max(y)] * (n_trials + 1 - len(history))


class Random:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

    def observe_and_suggest(self, X_obs, y_obs, X_pen=None):
        return self.rng.integers(len(X_pen))


class Stateful:
    """Remembers what it was told, weights by it to the last bit, and returns an array of no dimension."""

    def __init__(self):
        self.seen = []

    def observe_and_suggest(self, X_obs, y_obs, X_pen):
        assert y_obs.shape == (len(X_obs), 1)
        self.seen.append((X_obs[-1], y_obs[-1, 0]))
        weights = np.array([y for _, y in self.seen])
        distance = np.stack([np.abs(X_pen - x).sum(axis=1) for x, _ in self.seen])
        return np.array(np.argmax(weights @ np.exp(-distance)))


METHODS = {"random": Random, "stateful": Stateful, "ours": lambda: Suggester(RandomSearch(), seed=3)}


BUNDLED = bundled.path()


def raw(folder, name):
    path = folder / f"{name}.json"
    return json.loads(path.read_text() if path.exists() else gzip.decompress((folder / f"{name}.json.gz").read_bytes()))


@pytest.fixture(params=["bundled", pytest.param("open-b", marks=pytest.mark.thorough)])
def files(request):
    """Folder, initial designs, and number of trials."""
    if request.param == "bundled":
        return BUNDLED, ["test0", "test4"], 20
    return request.getfixturevalue("shared_data") / "open-b", ["test0", "test1"], 30


@pytest.mark.slow
def test_incumbents(files):
    folder, seeds, n_trials = files
    tables, designs = raw(folder, "meta-test-dataset"), raw(folder, "bo-initializations")
    handler = HPOBHandler(root_dir=f"{folder}/", mode="v3")
    for space, dataset in [(name, each) for name in tables for each in list(tables[name])[:2]]:
        for name, make in METHODS.items():
            # One object for all runs, as a peer's script may have it: also what it remembers has to agree.
            ours, theirs = make(), make()
            for seed in seeds:
                expected = stated(tables, designs, theirs, space, dataset, seed, n_trials)
                result = handler.evaluate(ours, space, dataset, seed, n_trials)
                assert isinstance(result, list)
                assert result == expected, (name, dataset, seed)


def test_attributes_for_peers():
    handler = HPOBHandler(root_dir=BUNDLED, mode="v3")
    assert handler.mode == "v3"
    assert handler.get_seeds() == ["test0", "test1", "test2", "test3", "test4"]
    assert handler.get_search_spaces() == list(raw(BUNDLED, "meta-test-dataset"))
    assert handler.meta_test_data["svm"] is handler.meta_test_data["svm"]
    for attribute, name in (
        ("meta_train_data", "meta-train-dataset"),
        ("meta_validation_data", "meta-validation-dataset"),
        ("meta_test_data", "meta-test-dataset"),
        ("bo_initializations", "bo-initializations"),
    ):
        view, expected = getattr(handler, attribute), raw(BUNDLED, name)
        assert view == expected
        assert list(view.keys()) == list(expected)
        assert ("svm" in view, "other" in view, type(view["svm"])) == (True, False, dict)
        with pytest.raises(KeyError):
            view["other"]
    assert handler.get_datasets("svm") == list(raw(BUNDLED, "meta-test-dataset")["svm"])
    assert handler.get_search_space_dim("svm") == handler.search_space_dims["svm"] == 14
    assert handler.normalize(np.array([[2.0], [4.0], [3.0]])).tolist() == [[0.0], [1.0], [0.5]]
    assert handler.normalize(np.array([3.0]), y_min=1.0, y_max=5.0).tolist() == [0.5]


def test_modes():
    only_test = HPOBHandler(root_dir=BUNDLED)
    assert not hasattr(only_test, "meta_train_data")
    with pytest.raises(AttributeError, match=r"v3-test has no meta_train_data; mode='v3' has"):
        only_test.meta_train_data  # noqa: B018
    merged = HPOBHandler(root_dir=BUNDLED, mode="v2")
    assert merged.meta_train_data is merged.meta_validation_data is None
    assert merged.get_datasets("svm") == list(load_space(BUNDLED, "svm", "v2").test)
    dataset = merged.get_datasets("svm")[-1]
    assert merged.bo_initializations["svm"][dataset]
    assert len(merged.evaluate(Random(), "svm", dataset, "test1", 3)) == 4
    with pytest.raises(ConfigError, match="v3-train-augmented, but got 'v5'"):
        HPOBHandler(root_dir=BUNDLED, mode="v5")
    with pytest.raises(DataError, match="meta-train-dataset-augmented"):
        HPOBHandler(root_dir=BUNDLED, mode="v1")


def test_ids_that_are_not_there():
    handler = HPOBHandler(root_dir=BUNDLED)
    dataset = handler.get_datasets("svm")[0]
    for arguments, message in (
        (("other", dataset, "test0"), "the search space must be one of svm"),
        (("svm", "other", "test0"), "the dataset must be one of"),
        (("svm", dataset, "test9"), "the seed must be one of test0, test1"),
        ((None, None, None), "the search space must be one of svm"),
    ):
        with pytest.raises(DataError, match=message):
            handler.evaluate(Random(), *arguments)
    for method in (None, object()):
        with pytest.raises(ConfigError, match="observe_and_suggest"):
            handler.evaluate(method, "svm", dataset, "test0")
