"""Surrogates that ship."""

import importlib
import json
import sys
from dataclasses import replace

import numpy as np
import optuna
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import Lasso, LogisticRegressionCV, Ridge
from sklearn.metrics import accuracy_score, get_scorer, get_scorer_names, log_loss, make_scorer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from typer.testing import CliRunner

from dre_jax.cli import app
from dre_jax.errors import CheckpointError, ConfigError, DataWarning
from dre_jax.tuning import Float, Optimizer, Surrogate
from dre_jax.tuning.optuna import DRESampler
from dre_jax.tuning.pretrained import FAMILIES, pretrained_path
from dre_jax.tuning.pretrained.families import _HIGHER, find_metric, find_model, nearest_metric
from dre_jax.tuning.sklearn import DRESearchCV
from dre_jax.tuning.surrogates.pretrained import pretrained_search, pretrained_study, score_name

NEAREST = {("max_depth", 64), ("max_features", 0.5), ("max_samples", 1.0), ("l2_regularization", 1e-4)}
NEAREST |= {("reg_lambda", 1e-4), ("hidden_layer_sizes", 100)}
"""Defaults that no value of the space equals: None, texts, zero, a tuple."""
ALL = [(name, metric) for name, family in FAMILIES.items() for metric in family.metrics]


@pytest.mark.parametrize("name", FAMILIES)
def test_defaults_are_those_of_the_library(name):
    family = FAMILIES[name]
    assert family.space.check(family.default) == family.default
    for path in filter(None, (family.classifier, family.regressor)):
        module, _, kind = path.rpartition(".")
        estimator = getattr(pytest.importorskip(module.partition(".")[0]) and importlib.import_module(module), kind)()
        own = estimator.get_params()
        estimator.set_params(**family.default)
        if module.startswith("xgboost"):  # its defaults are None: the booster decides
            continue
        expected = {name: value for name, value in family.default.items() if (name, value) not in NEAREST}
        assert {name: own[name] for name in expected} == expected
        model = find_model(Pipeline([("scale", StandardScaler()), ("model", estimator)]))
        assert (model.family, model.prefix, model.is_classifier) == (family, "model__", path == family.classifier)


def test_files_are_small_and_complete():
    sizes = {one: pretrained_path(*one).stat().st_size for one in ALL}
    assert max(sizes.values()) <= 300_000
    assert sum(sizes.values()) <= 5_000_000
    assert len(list(pretrained_path("svc", "error").parent.glob("*.npz"))) == len(ALL)


@pytest.mark.parametrize(
    ("name", "metric"),
    [pytest.param(*one, marks=[pytest.mark.thorough] * (one[1] != FAMILIES[one[0]].metrics[0])) for one in ALL],
)
def test_every_surrogate_suggests_its_start(name, metric):
    surrogate = Surrogate.pretrained(name, metric)
    assert surrogate.space == FAMILIES[name].space
    assert surrogate.facts["origin"]["rows"] > 100
    assert "make_pretrained.py" in surrogate.facts["origin"]["command"]
    trial = Optimizer(surrogate=surrogate, direction=surrogate.direction).ask()
    assert surrogate.space.check(trial.params) == surrogate.start[0] == trial.params


@pytest.mark.thorough
def test_a_suggestion_after_the_start():
    surrogate = Surrogate.pretrained("ridge", "r2")
    optimizer = Optimizer(surrogate=surrogate, direction="maximize", seed=0)
    optimizer.optimize(lambda params: -((np.log10(params["alpha"]) - 1.0) ** 2), n_trials=4)
    assert len({trial.params["alpha"] for trial in optimizer.trials}) == 4


def test_optuna_starts_with_the_surrogate():
    surrogate = Surrogate.pretrained("ridge", "r2")
    trial = optuna.create_study(direction="maximize", sampler=DRESampler(surrogate, seed=0)).ask()
    assert trial.suggest_float("alpha", 1e-4, 1e5, log=True) == pytest.approx(surrogate.start[0]["alpha"])


def test_names_of_scores_have_scikit_learns_direction():
    for name in set(_HIGHER) - {"auc"}:
        get_scorer(name)  # all scores of scikit-learn are maximised
        assert find_metric(name).direction == "maximize"
    assert find_metric("rmse") == ("r2", "minimize")


def test_unknown_models_and_metrics():
    with pytest.raises(ConfigError, match=r"one of svc, svr, .*, but got 'perceptron'"):
        Surrogate.pretrained("perceptron")
    with pytest.raises(ConfigError, match=r"svc know the metrics error, log_loss, auc, but got 'r2'"):
        Surrogate.pretrained("svc", "r2")
    with pytest.raises(ConfigError, match="but got 'perceptron'"):
        pretrained_study("perceptron", None, None)
    with pytest.warns(DataWarning, match="'perceptron'.*without past tasks"):
        assert pretrained_study("perceptron", None, FAMILIES["svc"].space) == (FAMILIES["svc"].space, None)
    assert find_model(GaussianProcessClassifier()) is None
    assert find_model(type("SVC", (), {"__module__": "mine"})()) is None
    with pytest.raises(ConfigError, match=r"GaussianProcessClassifier: pass a space"):
        DRESearchCV(GaussianProcessClassifier()).fit(*load_iris(return_X_y=True))
    with pytest.warns(DataWarning, match=r"ridge .*alpha=3\.0"):
        DRESearchCV(Ridge(alpha=3.0), n_iter=1).fit(*load_iris(return_X_y=True))
    with pytest.raises(ConfigError, match=r"linear-svc .*no pretrained surrogate"):
        Surrogate.pretrained("linear-svc")
    with pytest.warns(DataWarning, match=r"but got 'f1': the search starts without past tasks"):
        assert pretrained_search(ExtraTreesClassifier(), None, "f1")[1] is None


def test_names_of_all_scores_of_scikit_learn():
    """Scores of clusters, of likelihoods and of several labels are no scores of the models that ship."""
    names = [name for name in get_scorer_names() if find_metric(name) is None and nearest_metric(name) is None]
    clusters = ("rand", "mutual_info", "completeness", "homogeneity", "v_measure", "fowlkes", "likelihood_ratio")
    assert [name for name in names if not any(one in name for one in clusters)] == []
    for name in get_scorer_names():  # the sign is what scikit-learn negates
        scorer = get_scorer(name)
        metric = find_metric(score_name(scorer)) or nearest_metric(score_name(scorer))
        if name not in names and metric is not None:
            assert (metric.direction == "maximize") == (scorer._sign > 0), name


@pytest.mark.parametrize(
    ("scoring", "metric", "line"),
    [
        ("f1_macro", "error", "no surrogate of svc knows f1_macro: that of error, the nearest metric, is used\n"),
        (make_scorer(accuracy_score), "error", ""),
        (make_scorer(log_loss, greater_is_better=False, response_method="predict_proba"), "log_loss", ""),
        (lambda model, X, y: model.score(X, y), "error", "no surrogate of svc knows <lambda>: that of error is used\n"),
    ],
)
def test_the_nearest_metric_is_used_and_said(capsys, scoring, metric, line):
    _, surrogate = pretrained_search(SVC(), None, scoring)
    expected = replace(Surrogate.pretrained("svc", metric), direction="maximize", metric=surrogate.metric)
    assert surrogate.fingerprint == expected.fingerprint
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", line and f"dre_jax: {line}")


class _MySVC(SVC):
    def __init__(self, name, C=1.0, kernel="rbf", gamma="scale", degree=3, coef0=0.0):
        super().__init__(C=C, kernel=kernel, gamma=gamma, degree=degree, coef0=coef0)
        self.name = name


class _FixedKernel(SVC):
    def __init__(self, C=1.0):
        super().__init__(C=C)


@pytest.mark.parametrize(
    ("estimator", "name", "prefix"),
    [
        (TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge())), "ridge", "regressor__ridge__"),
        (OneVsRestClassifier(SVC()), "svc", "estimator__"),
        (make_pipeline(StandardScaler(), OneVsRestClassifier(LinearSVC())), "linear-svc", "onevsrestclassifier__"),
        (_MySVC("mine"), "svc", ""),
        (_FixedKernel(), None, ""),
        (Lasso(), None, ""),
        (LogisticRegressionCV(), None, ""),
        (TransformedTargetRegressor(), None, ""),
    ],
)
def test_models_in_other_estimators_and_subclasses(estimator, name, prefix):
    model = find_model(estimator)
    assert (model and model.family.name) == name
    if model:
        assert model.prefix.startswith(prefix)
        space, surrogate = pretrained_search(estimator, None, None)
        assert set(space) <= set(estimator.get_params())
        assert (surrogate is None) == (name == "linear-svc")


def test_a_linear_machine_has_a_space(capsys):
    search = DRESearchCV(LinearSVC(random_state=0), n_iter=1, random_state=0).fit(*load_iris(return_X_y=True))
    assert set(search.best_params_) == {"C", "max_iter", "class_weight"}
    assert (
        capsys.readouterr().err == "dre_jax: no past tasks of linear-svc ship: the search starts without past tasks\n"
    )


def test_a_search_needs_no_space():
    X, y = load_iris(return_X_y=True)
    search = DRESearchCV(make_pipeline(StandardScaler(), SVC()), n_iter=2, random_state=0).fit(X, y)
    assert search.surrogate_.direction == "maximize"
    start = [{f"svc__{k}": v for k, v in one.items()} for one in Surrogate.pretrained("svc").start]
    assert search.cv_results_["params"] == start
    assert search.best_score_ > 0.95
    plain = DRESearchCV(SVC(), surrogate=None, n_iter=1, random_state=0).fit(X, y)
    assert plain.surrogate_ is None
    assert set(plain.best_params_) <= set(FAMILIES["svc"].space)


@pytest.mark.parametrize(("high", "has_surrogate"), [(1e3, True), (1e9, False)])
def test_a_narrower_space_has_the_surrogate(high, has_surrogate):
    space = {"alpha": Float(0.1, high, log=True), "fit_intercept": FAMILIES["ridge"].space["fit_intercept"]}
    search = DRESearchCV(Ridge(), space, n_iter=1, random_state=0).fit(*load_iris(return_X_y=True))
    assert (search.surrogate_ is not None) == has_surrogate


def test_the_budget_bounds_the_cost():
    space = FAMILIES["random-forest"].space_within(50)
    assert (space["n_estimators"].low, space["n_estimators"].high) == (10, 50)
    assert not Surrogate.pretrained("random-forest").space.mismatches(space)
    with pytest.raises(ConfigError, match=r"n_estimators .*10, .*budget=5"):
        FAMILIES["random-forest"].space_within(5)
    assert DRESearchCV(RandomForestRegressor(), space).space is space


def test_one_file_holds_a_surrogate(tmp_path):
    surrogate = Surrogate.pretrained("ridge", "mae")
    surrogate.save(tmp_path / "ridge.npz")
    again = Surrogate.load(tmp_path / "ridge.npz")
    assert (again.fingerprint, again.start, again.facts) == (surrogate.fingerprint, surrogate.start, surrogate.facts)
    content = bytearray((tmp_path / "ridge.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "damaged.npz").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"damaged\.npz"):
        Surrogate.load(tmp_path / "damaged.npz")
    with pytest.raises(CheckpointError, match=r"missing\.npz"):
        Surrogate.load(tmp_path / "missing.npz")


def test_commands(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments], catch_exceptions=False)

    program = sys.executable, "-c", "import sys; print('r2:', -abs(float(sys.argv[1]) - 1.0))"
    program += ("{alpha}", "{fit_intercept}")
    options = ("--trials", 2, "--direction", "maximize", "--study", tmp_path / "s.json", "--quiet")
    assert run("tune", "--pretrained", "ridge", "--metric", "r2", *options, "--", *program).exit_code == 0
    trials = json.loads((tmp_path / "s.json").read_text())["trials"]
    assert [trial["params"] for trial in trials] == list(Surrogate.pretrained("ridge", "r2").start)
    described = run("info", "ridge.mae").output
    assert "make_pretrained.py" in described
    assert "minimize mae" in described
    assert "svc" in run("info", "pretrained").output
