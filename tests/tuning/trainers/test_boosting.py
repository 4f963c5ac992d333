"""Callbacks of XGBoost and LightGBM, against their own records."""

import lightgbm
import numpy as np
import optuna
import pytest
import xgboost
from sklearn.datasets import load_breast_cancer

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import Float, Optimizer, trainers
from dre_jax.tuning.trainers import LightGBMReport, XGBoostReport
from tests.error_messages import raises_line

X, Y = load_breast_cancer(return_X_y=True)
ROUNDS = 8


def train_xgboost(callback, model=None):
    """Returns a model of at most 8 more rounds, and its losses."""
    data, validation = xgboost.DMatrix(X[::2], Y[::2]), xgboost.DMatrix(X[1::2], Y[1::2])
    params, losses = {"objective": "binary:logistic", "nthread": 1}, {}
    options = {"evals": [(data, "train"), (validation, "valid")], "evals_result": losses, "verbose_eval": False}
    model = xgboost.train(params, data, ROUNDS, xgb_model=model, callbacks=[callback] if callback else [], **options)
    return model, losses["valid"]["logloss"]


def train_lightgbm(callback, model=None):
    """The same of LightGBM."""
    params, losses = {"objective": "binary", "verbose": -1, "num_threads": 1, "deterministic": True}, {}
    data = lightgbm.Dataset(X[::2], Y[::2], params=params)
    options = {"valid_sets": [data, data.create_valid(X[1::2], Y[1::2])], "valid_names": ["train", "valid"]}
    callbacks = [lightgbm.record_evaluation(losses), *([callback] if callback else [])]
    model = lightgbm.train(params, data, ROUNDS, init_model=model, callbacks=callbacks, **options)
    return model, losses["valid"]["binary_logloss"]


XGBOOST = pytest.param(train_xgboost, XGBoostReport, "valid-logloss", xgboost.DMatrix, id="xgboost")
LIGHTGBM = pytest.param(train_lightgbm, LightGBMReport, "valid-binary_logloss", np.asarray, id="lightgbm")
both = pytest.mark.parametrize(("train", "report", "metric", "matrix"), [XGBOOST, LIGHTGBM])


@both
def test_rounds_are_reported_until_the_trial_stops(train, report, metric, matrix, trial, reports_of):
    _, losses = train(None)
    assert len(losses) == ROUNDS
    model, _ = train(report(trial, metric))
    assert reports_of(trial) == pytest.approx(dict(enumerate(losses[:3], start=1)))
    assert len(model.get_dump() if train is train_xgboost else model.dump_model()["tree_info"]) == 3


@both
def test_a_training_goes_on_from_its_model(train, report, metric, matrix, budgeted, reports_of, tmp_path):
    whole, losses = train(None)
    first, second = budgeted(2), budgeted(8)
    file = tmp_path / "model.json"
    train(report(first, metric))[0].save_model(file)
    model, _ = train(report(second, metric), str(file))
    assert list(reports_of(first)) == [1, 2]
    assert reports_of(second) == pytest.approx(dict(enumerate(losses[2:], start=3)), rel=1e-4)
    np.testing.assert_allclose(model.predict(matrix(X)), whole.predict(matrix(X)), atol=1e-4)


@both
def test_an_unknown_metric_is_named(train, report, metric, matrix, trial):
    with raises_line(ConfigError, metric, "valid-auc"):
        train(report(trial, "valid-auc"))


def test_all_callbacks_have_documentation():
    """The site imports them without their trainers."""
    assert all(getattr(trainers, name).__doc__ for name in trainers.__all__)


def test_trials_of_optuna_are_refused():
    with raises_line(ConfigError, "optuna-integration"):
        XGBoostReport(optuna.create_study().ask(), "valid-logloss")


def test_cross_validation_reports_means(budgeted, reports_of):
    trial = budgeted(3)
    means = xgboost.cv(
        {"objective": "binary:logistic"},
        xgboost.DMatrix(X, Y),
        ROUNDS,
        callbacks=[XGBoostReport(trial, "test-logloss")],
    )
    assert reports_of(trial) == pytest.approx(dict(zip([1, 2, 3], means["test-logloss-mean"], strict=True)))
    trial = budgeted(3)
    params = {"objective": "binary", "verbose": -1}
    callbacks = [LightGBMReport(trial, "valid-binary_logloss")]
    means = lightgbm.cv(params, lightgbm.Dataset(X, Y), ROUNDS, callbacks=callbacks)
    assert reports_of(trial) == pytest.approx(dict(enumerate(means["valid binary_logloss-mean"], start=1)))


def test_estimators_take_callbacks(trial, budgeted, reports_of):
    report = XGBoostReport(trial, "validation_0-logloss")
    xgboost.XGBClassifier(n_estimators=ROUNDS, callbacks=[report]).fit(X, Y, eval_set=[(X, Y)], verbose=False)
    assert list(reports_of(trial)) == [1, 2, 3]
    other = budgeted(3)
    report = LightGBMReport(other, "valid_0-binary_logloss")
    model = lightgbm.LGBMClassifier(n_estimators=ROUNDS, verbose=-1)
    model.fit(X, Y, eval_X=(X,), eval_y=(Y,), callbacks=[report])
    assert list(reports_of(other)) == [1, 2, 3]


def test_a_trial_of_several_objectives_has_no_curve():
    trial = Optimizer({"lr": Float(0.0, 1.0)}, directions={"a": "minimize", "b": "minimize"}).ask()
    with raises_line(DataError, "one objective"):
        train_xgboost(XGBoostReport(trial, "valid-logloss"))
