"""Configurations that pause at budgets of an estimator, and go on."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from dre_jax.errors import ConfigError
from dre_jax.tuning import Categorical, Fidelity, Float, Int
from dre_jax.tuning.sklearn import DRESearchCV
from dre_jax.tuning.sklearn.budgets import can_continue, continue_training
from dre_jax.tuning.sklearn.folds import PartialFolds, row_order
from dre_jax.tuning.sklearn.resumable import Resumable

pytestmark = pytest.mark.usefixtures("even_points")
X, Y = make_classification(90, 6, n_informative=4, n_classes=3, random_state=0)
FEATURES = {"max_features": Float(0.2, 1.0)}
TREES = Fidelity("n_estimators", 2, 8)


def search(estimator, space, fidelity, **options):
    options = {"n_iter": 4, "cv": 2, "random_state": 0} | options
    return DRESearchCV(estimator, space, surrogate=None, fidelity=fidelity, **options).fit(X, Y)


def check_rows(fitted, budgets):
    """Rows go on from the budget before, and the best one is of the highest budget."""
    results = fitted.cv_results_
    n, resumes = results["n_resources"], results["resumes"]
    assert set(n) == set(budgets)
    for row, resumed in enumerate(resumes):
        if resumed < 0:
            assert n[row] == budgets[0]
        else:
            assert resumed < row
            assert budgets.index(n[resumed]) < budgets.index(n[row])
    highest = n == budgets[-1]
    assert results["rank_test_score"][highest].max() <= results["rank_test_score"][~highest].min()
    assert n[fitted.best_index_] == budgets[-1]
    assert fitted.best_score_ == results["mean_test_score"][highest].max()


# Processes take seconds to start.
@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.thorough)])
def test_forests_have_the_scores_of_one_training(n_jobs, monkeypatch):
    calls = []
    go_on = continue_training
    monkeypatch.setattr(
        "dre_jax.tuning.sklearn.resumable.continue_training", lambda *args: (calls.append(args[3]), go_on(*args))
    )
    forest = RandomForestClassifier(random_state=0)
    fitted = search(forest, FEATURES, TREES, n_jobs=n_jobs, batch=n_jobs or 1)
    check_rows(fitted, [2, 4, 8])
    results = fitted.cv_results_
    n_resumed = (results["resumes"] >= 0).sum()
    assert n_resumed > 0
    if n_jobs is None:
        assert len(calls) == 2 * n_resumed  # one a fold
    for row, params in enumerate(results["params"]):
        assert params["n_estimators"] == results["n_resources"][row]
        expected = cross_val_score(clone(forest).set_params(**params), X, Y, cv=2)
        np.testing.assert_array_equal([results[f"split{i}_test_score"][row] for i in range(2)], expected)
    best = fitted.best_estimator_
    assert type(best) is RandomForestClassifier
    assert (best.n_estimators, best.warm_start, len(best.estimators_)) == (8, False, 8)
    np.testing.assert_array_equal(best.predict(X), clone(best).fit(X, Y).predict(X))
    assert fitted.estimator is forest


def test_a_search_spends_what_its_configurations_would():
    fitted = search(RandomForestClassifier(random_state=0), FEATURES, TREES, n_iter=6)
    n, resumes = fitted.cv_results_["n_resources"], fitted.cv_results_["resumes"]
    spent = sum(n[row] - (n[resumed] if resumed >= 0 else 0) for row, resumed in enumerate(resumes))
    assert 6 * 8 <= spent < 7 * 8
    few = search(RandomForestClassifier(random_state=0), FEATURES, Fidelity("n_estimators", 1, 64), n_iter=1)
    assert few.cv_results_["n_resources"][few.best_index_] == 64
    assert few.cv_results_["resumes"][few.best_index_] >= 0


def test_a_step_of_a_pipeline_by_name():
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", ExtraTreesClassifier(8, random_state=0))])
    space = {"clf__max_features": Float(0.2, 1.0), "scale__with_mean": Categorical([True, False])}
    fitted = search(pipeline, space, "clf__n_estimators", scoring=["accuracy", "f1_macro"], refit="accuracy")
    results = fitted.cv_results_
    assert set(results["n_resources"]) == {1, 2, 4, 8}
    assert fitted.best_estimator_.named_steps["clf"].n_estimators == 8
    row = int(np.argmax(results["resumes"] >= 0))
    expected = cross_val_score(clone(pipeline).set_params(**results["params"][row]), X, Y, cv=2)
    assert results["mean_test_accuracy"][row] == expected.mean()


@pytest.mark.parametrize("estimator", [SVC(), DecisionTreeClassifier(random_state=0)])
def test_rows_are_a_stratified_part_of_each_training_fold(estimator):
    space = {"C": Float(0.1, 10.0, log=True)} if isinstance(estimator, SVC) else {"max_depth": Int(1, 9)}
    calls = []

    def score(estimator, X, y):
        calls.append(estimator)
        return accuracy_score(y, estimator.predict(X))

    fitted = search(estimator, space, Fidelity("n_samples", 15, 45), cv=StratifiedKFold(2), scoring=score)
    check_rows(fitted, [15, 22, 45])
    results = fitted.cv_results_
    for row, params in enumerate(results["params"]):
        n = int(results["n_resources"][row])
        for fold, (train, test) in enumerate(StratifiedKFold(2).split(X, Y)):
            trained = calls[2 * row + fold]
            if isinstance(trained, SVC):  # as many rows as it says, of all classes
                assert trained.shape_fit_[0] == n
            else:
                assert trained.tree_.n_node_samples[0] == n
            if n == 45:
                expected = clone(estimator).set_params(**params).fit(X[train], Y[train]).score(X[test], Y[test])
                assert results[f"split{fold}_test_score"][row] == expected


def test_parts_of_folds_are_nested_and_stratified():
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))

    class Given:
        def split(self, X):
            yield from folds

    parts = {n: list(PartialFolds(Given(), n, 0, Y).split(X)) for n in (6, 12, 60)}
    for fold, (train, test) in enumerate(folds):
        small, large, all_rows = (parts[n][fold] for n in (6, 12, 60))
        assert (len(small[0]), len(large[0])) == (6, 12)
        assert set(small[0]) < set(large[0]) < set(train)
        np.testing.assert_array_equal(all_rows[0], train)
        np.testing.assert_array_equal(small[1], test)
        shares = np.bincount(Y[train], minlength=3) / len(train)
        assert (np.abs(np.bincount(Y[large[0]], minlength=3) - 12 * shares) <= 1.5).all()
    assert not np.array_equal(parts[6][0][0], next(PartialFolds(Given(), 6, 1, Y).split(X))[0])
    assert sorted(row_order(9, None, np.random.default_rng(0))) == list(range(9))
    rare = np.array([0] * 50 + [1])
    assert 1 in rare[row_order(51, rare, np.random.default_rng(0))[:2]]


@pytest.mark.parametrize(
    ("estimator", "name", "is_exact"),
    [
        (RandomForestClassifier(random_state=0), "n_estimators", True),
        (BaggingClassifier(random_state=0), "n_estimators", True),
        (GradientBoostingRegressor(random_state=0), "n_estimators", True),
        (HistGradientBoostingClassifier(random_state=0, min_samples_leaf=3, max_leaf_nodes=3), "max_iter", True),
        (
            make_pipeline(StandardScaler(), MLPClassifier(solver="sgd", random_state=0)),
            "mlpclassifier__max_iter",
            False,
        ),
        (LogisticRegression(), "max_iter", False),
    ],
)
def test_a_training_goes_on(estimator, name, is_exact, tmp_path):
    """It is that of one call where scikit-learn says so, and has as many iterations otherwise."""
    assert can_continue(estimator, name)
    y = Y if is_classifier(estimator) else X[:, 0] + X[:, 1] ** 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for budget in (3, 5):
            resumed = Resumable(clone(estimator), name, tmp_path).set_params(**{name: budget}).fit(X, y)
        whole = clone(estimator).set_params(**{name: 5}).fit(X, y)
    model = resumed.model
    assert model.get_params()[name] == 5
    assert not any(value for key, value in model.get_params().items() if key.endswith("warm_start"))
    assert len(list(Path(tmp_path).iterdir())) == 1
    if is_exact:
        np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    elif isinstance(model, LogisticRegression):
        assert model.n_iter_[0] == 2  # of the second call
    else:
        assert len(model[-1].loss_curve_) == 5


@pytest.mark.parametrize(
    ("estimator", "name"),
    [
        (SVC(), "max_iter"),
        (SGDClassifier(), "max_iter"),
        (LogisticRegression(solver="liblinear"), "max_iter"),
        (RandomForestClassifier(oob_score=True), "n_estimators"),
        (RandomForestClassifier(), "max_depth"),
        (make_pipeline(RandomForestClassifier(), StandardScaler()), "randomforestclassifier__n_estimators"),
    ],
)
def test_trainings_that_begin_anew(estimator, name):
    assert not can_continue(estimator, name)


def test_a_training_begins_anew_without_its_model_or_with_other_data(tmp_path):
    forest = Resumable(RandomForestClassifier(2, random_state=0), "n_estimators", tmp_path).fit(X, Y)
    larger = clone(forest).set_params(n_estimators=4)
    expected = RandomForestClassifier(4, random_state=0).fit(X[:60], Y[:60]).predict(X)
    np.testing.assert_array_equal(larger.fit(X[:60], Y[:60]).predict(X), expected)
    assert len(list(tmp_path.iterdir())) == 2
    for file in tmp_path.iterdir():
        file.unlink()
    expected = RandomForestClassifier(4, random_state=0).fit(X, Y).predict(X)
    np.testing.assert_array_equal(larger.fit(X, Y).predict(X), expected)


def test_an_integer_parameter_without_warm_start():
    fitted = search(DecisionTreeClassifier(random_state=0), FEATURES, Fidelity("max_depth", 1, 4))
    check_rows(fitted, [1, 2, 4])
    assert fitted.best_estimator_.max_depth == 4
    # All of it counts, as nothing is kept: 4 times the depth 4.
    assert 16 <= fitted.cv_results_["n_resources"].sum() < 20


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores")
def test_fits_that_fail_are_not_resumed():
    space = {"max_features": Categorical([0.5, "wrong", 0.8, "worse"])}
    with pytest.warns(UserWarning, match="no configuration of the space is left"):
        fitted = search(RandomForestClassifier(random_state=0), space, TREES)
    check_rows(fitted, [2, 4, 8])
    failed = np.isnan(fitted.cv_results_["mean_test_score"])
    assert failed.any()
    assert not set(fitted.cv_results_["resumes"]) & set(np.flatnonzero(failed))


def test_a_small_space_is_trained_to_the_end():
    space = {"criterion": Categorical(["gini", "entropy"])}
    with pytest.warns(UserWarning, match="no configuration of the space is left to train to n_estimators=8"):
        fitted = search(RandomForestClassifier(random_state=0), space, TREES)
    results = fitted.cv_results_
    assert {results["params"][row]["criterion"] for row in np.flatnonzero(results["n_resources"] == 8)} == {
        "gini",
        "entropy",
    }


@pytest.mark.parametrize(
    ("fidelity", "text"),
    [
        ("max_depth", "must not be searched"),
        ("max_iter", "must be a parameter of the estimator or 'n_samples', but got 'max_iter'"),
        ("max_leaf_nodes", "'max_leaf_nodes' must be a whole number above 1"),
        (Fidelity("n_estimators", 0.5, 8.0), "whole numbers"),
        (Fidelity("n_samples", 10, 46), "at most the 45 rows"),
    ],
)
def test_errors(fidelity, text):
    with pytest.raises(ConfigError, match=text):
        search(RandomForestClassifier(), {"max_depth": Int(1, 5)}, fidelity)


def test_a_fidelity_does_not_race():
    with pytest.raises(ConfigError, match="racing=False"):
        search(SVC(), {"C": Float(0.1, 10.0)}, "n_samples", racing=True)


def test_models_that_cannot_be_kept(tmp_path):
    """Of an estimator that cannot be pickled, or without a folder."""
    forest = RandomForestClassifier(random_state=0)
    unpicklable = Pipeline([("f", FunctionTransformer(lambda X: X)), ("clf", forest)])
    for folder, estimator in ((tmp_path, unpicklable), (tmp_path / "none", Pipeline([("clf", forest)]))):
        for budget in (2, 4):
            model = Resumable(estimator, "clf__n_estimators", folder).set_params(clf__n_estimators=budget).fit(X, Y)
            assert len(model.model[-1].estimators_) == budget
    assert not list(tmp_path.iterdir())


def test_names_have_budgets_from_an_eighth():
    fitted = search(SVC(), {"C": Float(0.1, 10.0)}, "n_samples")
    assert set(fitted.cv_results_["n_resources"]) == {6, 11, 22, 45}
