"""`DRESearchCV`, where `GridSearchCV` was."""

import pickle
from itertools import permutations

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import Categorical, Float, Forbidden, Int, Permutation, Space, Surrogate
from dre_jax.tuning.sklearn import DRESearchCV

pytestmark = pytest.mark.usefixtures("even_points")
SPACE = {"C": Float(1e-2, 1e2, log=True), "kernel": Categorical(["rbf", "linear"])}


@pytest.fixture(scope="module")
def data():
    return make_classification(60, 5, random_state=0)


class Picky(ClassifierMixin, BaseEstimator):
    """Scores its parameter, and cannot be fitted with some."""

    fits = 0

    def __init__(self, x=0.5, above=0.6):
        self.x = x
        self.above = above

    def fit(self, X, y):
        Picky.fits += 1
        if self.x > self.above:
            raise RuntimeError("too much")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), int)

    def score(self, X, y):
        return self.x


class Tired(Picky):
    """Cannot be fitted a fifth and a sixth time."""

    def fit(self, X, y):
        self.above = 0.0 if Picky.fits in (4, 5) else 1.0
        return super().fit(X, y)


def picky(n_iter=8, **options):
    return DRESearchCV(Picky(**options), {"x": Float(0.0, 1.0)}, n_iter=n_iter, cv=2, random_state=0)


def test_one_line_changes_and_seeds_repeat(data):
    X, y = data
    search = DRESearchCV(SVC(), SPACE, n_iter=6, cv=3, scoring="balanced_accuracy", random_state=0).fit(X, y)
    assert len(search.cv_results_["params"]) == 6
    assert search.best_params_ == search.cv_results_["params"][int(np.argmax(search.cv_results_["mean_test_score"]))]
    assert search.best_estimator_.get_params()["C"] == search.best_params_["C"]
    again = cross_val_score(SVC(**search.best_params_), X, y, cv=3, scoring="balanced_accuracy").mean()
    assert search.best_score_ == pytest.approx(again)
    assert search.score(X, y) > 0.5
    assert search.predict(X).shape == y.shape
    searches = [DRESearchCV(SVC(), SPACE, n_iter=3, cv=2, random_state=seed).fit(*data) for seed in (0, 0, 1)]
    first, same, other = (search.cv_results_["params"] for search in searches)
    assert first == same != other


def test_groups_are_routed_to_the_splitter(data):
    X, y = data
    groups = np.arange(len(y)) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        search = DRESearchCV(SVC(), SPACE, n_iter=2, cv=GroupKFold(3), random_state=0).fit(X, y, groups=groups)
    scores = [search.cv_results_[f"split{i}_test_score"][search.best_index_] for i in range(3)]
    again = cross_val_score(SVC(**search.best_params_), X, y, groups=groups, cv=GroupKFold(3))
    np.testing.assert_allclose(scores, again)


def test_clone_and_pickle(data):
    search = DRESearchCV(SVC(), Space(SPACE), n_iter=3, cv=2, random_state=0)
    twin = clone(search)
    assert twin.get_params()["space"] == search.space
    assert twin.get_params()["estimator__C"] == 1.0
    fitted = pickle.loads(pickle.dumps(twin.set_params(n_iter=2).fit(*data)))
    assert len(fitted.cv_results_["params"]) == 2
    np.testing.assert_array_equal(fitted.predict(data[0]), twin.predict(data[0]))


# Processes take seconds to start.
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.thorough)])
def test_names_of_a_pipeline_and_several_jobs(data, backend):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    space = {"logisticregression__C": Float(1e-3, 1e3, log=True)}
    search = DRESearchCV(pipeline, space, n_iter=4, batch=2, cv=2, n_jobs=2)
    with parallel_config(backend=backend):
        assert set(search.fit(*data).best_params_) == {"logisticregression__C"}


def test_a_batch_is_suggested_at_once(data, engine_calls):
    DRESearchCV(SVC(), SPACE, n_iter=5, batch=2, cv=2, random_state=0).fit(*data)
    pending = [(len(call["observed"]), len(call["running"])) for call in engine_calls]
    assert pending == [(0, 0), (0, 1), (2, 0), (2, 1), (4, 0)]


class StepsInOrder(ClassifierMixin, BaseEstimator):
    """An estimator whose score is the place of a step."""

    def __init__(self, steps=("cut", "wash", "dry")):
        self.steps = steps

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        return float(self.steps.index("cut"))


def test_an_order_of_steps(data):
    search = DRESearchCV(StepsInOrder(), {"steps": Permutation(["cut", "wash", "dry"])}, n_iter=6, cv=2, refit=False)
    search.fit(*data)
    assert search.best_params_["steps"][2] == "cut"
    assert {params["steps"] for params in search.cv_results_["params"]} == set(permutations(["cut", "wash", "dry"]))


@pytest.mark.parametrize("batch", [1, 3])
def test_a_search_ends_with_the_last_configuration(data, batch):
    space = {"kernel": Categorical(["rbf", "poly"]), "degree": Int(2, 3, when={"kernel": "poly"})}
    search = DRESearchCV(SVC(), Space(space), n_iter=7, batch=batch, cv=2, random_state=0)
    with pytest.warns(UserWarning, match="the space has 3 configurations, fewer than n_iter=7"):
        search.fit(*data)
    assert sorted(params.get("degree", 0) for params in search.cv_results_["params"]) == [0, 2, 3]


def test_conditional_parameters_and_rules(data):
    space = SPACE | {"kernel": Categorical(["rbf", "poly"]), "degree": Int(2, 3, when={"kernel": "poly"})}
    space = Space(space, rules=[Forbidden({"kernel": "poly", "degree": 3})])
    search = DRESearchCV(SVC(), space, n_iter=6, cv=2, random_state=0).fit(*data)
    kernels = [(params["kernel"], params.get("degree")) for params in search.cv_results_["params"]]
    assert set(kernels) == {("rbf", None), ("poly", 2)}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores")
def test_fits_that_fail(data, monkeypatch, engine_calls):
    """Each of which scikit-learn would refuse alone."""
    monkeypatch.setattr(Picky, "fits", 0)
    results = picky().fit(*data).cv_results_
    assert Picky.fits == 2 * 8 + 1  # each once, and the best for all data
    x = np.array([params["x"] for params in results["params"]])
    assert len(x) == 8
    np.testing.assert_array_equal(np.isnan(results["mean_test_score"]), x > 0.6)
    assert (x > 0.6).any()
    assert results["rank_test_score"].argmin() == np.argmax(np.where(x > 0.6, -1, x))
    failed = [params["x"] for params in engine_calls[-1]["failed"]]
    assert sorted(failed) == sorted(x[:-1][x[:-1] > 0.6])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_all_fits_fail(data):
    with pytest.raises(ValueError, match="All the"):
        picky(above=-1.0, n_iter=3).fit(*data)
    with pytest.raises(RuntimeError, match="too much"):
        picky(above=-1.0).set_params(error_score="raise").fit(*data)


@pytest.mark.filterwarnings("ignore:One or more of the t")
@pytest.mark.parametrize("scoring", [None, ["accuracy", "f1"]])
def test_the_last_fits_fail(data, scoring, monkeypatch):
    """They have rows too, after those that are scored."""
    monkeypatch.setattr(Picky, "fits", 0)
    search = picky(n_iter=3).set_params(refit=False if scoring is None else "f1", scoring=scoring)
    search.set_params(estimator=Tired(), return_train_score=True)
    with pytest.warns(FitFailedWarning, match="All the 2 fits failed"):
        results = search.fit(*data).cv_results_
    assert len(results["params"]) == 3
    for name in ("test_score", "train_score") if scoring is None else ("test_f1", "train_accuracy"):
        assert np.isnan(results[f"mean_{name}"]).tolist() == [False, False, True]
    assert results["rank_test_f1" if scoring else "rank_test_score"][2] == 3


def test_scores_are_of_the_same_folds(data):
    """Also if the splitter shuffles, or is a generator of folds."""
    folds = [(np.arange(0, 60, 2), np.arange(1, 60, 2))]
    for cv in (KFold(3, shuffle=True), (fold for fold in folds)):
        calls = []

        def scorer(estimator, X, y, calls=calls):
            calls.append(X[:, 0].sum())
            return 0.0

        DRESearchCV(SVC(), SPACE, n_iter=4, cv=cv, scoring=scorer, refit=False, random_state=0).fit(*data)
        assert calls == calls[: len(calls) // 4] * 4


def test_several_metrics(data):
    search = DRESearchCV(SVC(), SPACE, n_iter=3, cv=2, scoring=["accuracy", "f1"], refit="f1", random_state=0)
    assert search.fit(*data).best_score_ == max(search.cv_results_["mean_test_f1"])
    for refit in (False, lambda results: int(np.argmin(results["mean_test_f1"]))):
        with pytest.warns(UserWarning, match="accuracy, f1 .*accuracy"):
            search.set_params(refit=refit).fit(*data)
        assert len(search.cv_results_["mean_test_f1"]) == 3
    assert search.best_index_ == np.argmin(search.cv_results_["mean_test_f1"])
    for scoring in (["accuracy", "f1"], lambda estimator, X, y: {"accuracy": 0.0, "f1": 0.0}):
        with pytest.raises(ValueError, match="refit must be set to a scorer key"):
            search.set_params(scoring=scoring, refit=True).fit(*data)


def test_invalid_arguments(data):
    for argument in ({"n_iter": 0}, {"n_iter": 2.5}, {"batch": 0}):
        with pytest.raises(ConfigError, match=next(iter(argument))):
            DRESearchCV(SVC(), SPACE, **argument).fit(*data)
    with pytest.raises(ConfigError, match="space"):
        DRESearchCV(SVC(), {}).fit(*data)


def test_a_surrogate_comes_first(data):
    space = Space(SPACE)
    start = ({"C": 10.0 / 3, "kernel": "linear"}, {"C": 0.7, "kernel": "rbf"})
    with_start = Surrogate(space, "none", None, None, start)
    search = DRESearchCV(SVC(), space, surrogate=with_start, n_iter=2, cv=2, random_state=0).fit(*data)
    assert search.cv_results_["params"] == list(start)
    with pytest.raises(DataError, match="gamma"):
        DRESearchCV(SVC(), SPACE | {"gamma": Float(0.0, 1.0)}, surrogate=with_start).fit(*data)


def test_lists_and_distributions_of_scikit_learn(data):
    alternatives = [
        {"scaler": [StandardScaler(), "passthrough"], "model": [SVC()], "model__C": stats.loguniform(1e-2, 1e2)},
        {"model": [LogisticRegression()], "model__C": [0.5, 1.0]},
    ]
    pipeline = Pipeline([("scaler", "passthrough"), ("model", SVC())])
    search = DRESearchCV(pipeline, alternatives, n_iter=8, cv=2, random_state=0).fit(*data)
    candidates = search.cv_results_["params"]
    assert {type(one["model"]) for one in candidates} == {SVC, LogisticRegression}
    for one in candidates:
        is_svc = isinstance(one["model"], SVC)
        assert set(one) == ({"scaler", "model", "model__C"} if is_svc else {"model", "model__C"})
        assert 1e-2 <= one["model__C"] <= 1e2 if is_svc else one["model__C"] in (0.5, 1.0)
    best = search.best_estimator_.named_steps["model"]
    assert (type(best), best.C) == (type(search.best_params_["model"]), search.best_params_["model__C"])
