"""Configurations that get no further fold."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold

from dre_jax.tuning import EngineConfig, Float, Optimizer
from dre_jax.tuning.sklearn import DRESearchCV
from dre_jax.tuning.sklearn.racing import FoldRace

pytestmark = pytest.mark.usefixtures("even_points")
X = np.arange(100.0)[:, None]
Y = np.arange(100) % 2
NOISE = np.random.default_rng(0).normal(size=(10, 10)) * 0.01


class Scored(ClassifierMixin, BaseEstimator):
    """Has the score of its parameter, minus the difficulty of the fold and some noise of both."""

    def __init__(self, x=0.5, fail_above=2.0):
        self.x = x
        self.fail_above = fail_above

    def fit(self, X, y):
        if self.x > self.fail_above:
            raise RuntimeError("too much")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X), int)

    def score(self, X, y):
        fold = int(X[0, 0]) // 10
        return self.x - 0.1 * fold + NOISE[fold, int(self.x * 1000) % 10]


def search(n_folds=5, **options):
    options = {"n_iter": 10, "racing": True, "random_state": 0} | options
    estimator = options.pop("estimator", Scored())
    cv = KFold(10) if n_folds == 10 else [fold for i, fold in enumerate(KFold(10).split(X)) if i < n_folds]
    return DRESearchCV(estimator, {"x": Float(0.0, 1.0)}, surrogate=None, cv=cv, **options).fit(X, Y)


def split_scores(fitted):
    results = fitted.cv_results_
    return np.array([results[f"split{i}_test_score"] for i in range(fitted.n_splits_)]).T


@pytest.mark.parametrize("n_folds", [5, 10])
def test_results_of_folds_that_did_not_run(n_folds):
    fitted = search(n_folds, return_train_score=True)
    results, scores = fitted.cv_results_, split_scores(fitted)
    has_run = np.isfinite(scores)
    n_run = has_run.sum(1)
    assert fitted.n_splits_ == n_folds
    assert fitted.n_folds_saved_ == (~has_run).sum() > 0
    assert set(n_run) <= {2, 4, 8, n_folds}
    assert has_run[:3].all()
    np.testing.assert_allclose(results["mean_test_score"], np.nanmean(scores, axis=1))
    np.testing.assert_allclose(results["std_test_score"], np.nanstd(scores, axis=1))
    np.testing.assert_array_equal(np.isnan(results["split3_train_score"]), np.isnan(scores[:, 3]))
    finished = n_run == n_folds
    ranks = results["rank_test_score"]
    assert ranks[finished].max() < ranks[~finished].min()
    assert fitted.best_index_ == np.flatnonzero(finished)[results["mean_test_score"][finished].argmax()]
    assert fitted.best_params_["x"] == max(params["x"] for params in results["params"])


def test_without_racing_all_folds_run():
    fitted = search(racing=False)
    assert fitted.n_folds_saved_ == 0
    assert np.isfinite(split_scores(fitted)).all()
    with pytest.warns(UserWarning, match="maximises the first"):
        fitted = search(scoring=["accuracy", "f1"], refit=lambda results: int(np.argmax(results["mean_test_f1"])))
    assert fitted.n_folds_saved_ == 0


@pytest.mark.parametrize("batch", [1, 3])
def test_a_seed_decides_also_in_parallel(batch):
    first = search(batch=batch)
    with parallel_config(backend="threading"):
        second = search(batch=batch, n_jobs=4)
    assert first.cv_results_["params"] == second.cv_results_["params"]
    np.testing.assert_array_equal(split_scores(first), split_scores(second))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test scores")
def test_a_configuration_that_fails_gets_no_further_fold():
    fitted = search(estimator=Scored(fail_above=0.6), n_iter=12)
    x = np.array([params["x"] for params in fitted.cv_results_["params"]])
    failed = x > 0.6
    assert failed[3:].any()
    np.testing.assert_array_equal(np.isnan(fitted.cv_results_["mean_test_score"]), failed)
    assert fitted.cv_results_["rank_test_score"][failed].min() == (~failed).sum() + 1
    assert fitted.n_folds_saved_ == 3 * failed[3:].sum() + np.isnan(split_scores(fitted)[~failed]).sum()


def told_trials(monkeypatch, **options):
    told = []
    tell = Optimizer.tell

    def record(self, trial, value, *, stderr=None):
        trial = tell(self, trial, value, stderr=stderr)
        told.append((trial.value, trial.stderr))
        return trial

    monkeypatch.setattr(Optimizer, "tell", record)
    return search(**options), told


def test_the_search_learns_estimates_of_the_mean_over_all_folds(monkeypatch):
    fitted, told = told_trials(monkeypatch)
    x = np.array([params["x"] for params in fitted.cv_results_["params"]])
    has_run = np.isfinite(split_scores(fitted)).all(1)
    assert [stderr is None for _, stderr in told] == has_run.tolist()
    # The first folds are easier by 0.15 than the mean of five.
    np.testing.assert_allclose([value for value, _ in told], x - 0.2, atol=0.03)
    means = [one - 0.2 + NOISE[:5, int(one * 1000) % 10].mean() for one in x]
    errors = np.array([value for value, _ in told]) - means
    deviations = np.array([stderr for _, stderr in told if stderr is not None])
    assert (np.abs(errors[~has_run]) < 4 * deviations).all()


def test_a_method_without_standard_errors_gets_the_estimates_alone(monkeypatch):
    _, told = told_trials(monkeypatch, config=EngineConfig(method="random"))
    assert {stderr for _, stderr in told} == {None}


def slow_bound(scores, finished, n_folds):
    """The moderated, corrected t statistic, by loops."""
    best = max(finished, key=lambda one: sum(one) / len(one))
    squares, freedom = 0.0, 0
    for other in finished:
        if other is best:
            continue
        d = [a - b for a, b in zip(other, best, strict=True)]
        squares += sum((one - sum(d) / len(d)) ** 2 for one in d)
        freedom += len(d) - 1
    d = [a - b for a, b in zip(scores, best, strict=False)]
    mean = sum(d) / len(d)
    variance = (4 * squares / freedom + sum((one - mean) ** 2 for one in d)) / (4 + len(d) - 1)
    return mean / (variance * (1 / len(d) + (1 / n_folds) / (1 - 1 / n_folds))) ** 0.5


@pytest.mark.parametrize("n", [2, 4])
def test_the_statistic(n):
    rng = np.random.default_rng(n)
    finished = [0.8 + rng.normal(size=5) * 0.03 for _ in range(4)]
    race = FoldRace(5)
    for scores in finished:
        race.add(scores)
    quantile = {2: 2.01505, 4: 1.89458}[n]  # of Student's t at 95 %, with 5 and 7 degrees of freedom, by a table
    behind = []
    for shift in np.linspace(0, 0.2, 21):
        scores = 0.8 + rng.normal(size=n) * 0.03 - shift
        behind.append(race.is_behind(scores))
        assert behind[-1] == (slow_bound(scores.tolist(), [one.tolist() for one in finished], 5) < -quantile)
    assert {True, False} == set(behind)


def test_a_race_without_differences_goes_on():
    race = FoldRace(5)
    for _ in range(4):
        race.add(np.full(5, 0.5))
    assert not race.is_behind(np.full(2, 0.4))
    assert race.is_behind(np.array([0.4, np.nan]))


def test_a_race_rarely_loses_the_best():
    """Of configurations that differ by as much as the noise of a fold, in a random order."""
    rng = np.random.default_rng(0)
    n_lost = 0
    for _ in range(100):
        scores = rng.normal(size=(20, 1)) * 0.02 + rng.normal(size=(20, 5)) * 0.02 + rng.normal(size=(1, 5)) * 0.1
        race = FoldRace(5)
        for one in scores:
            race.add(one[:2] if race.is_behind(one[:2]) else one)
        n_lost += race._best.mean() < scores.mean(1).max()
    assert n_lost <= 5
