"""Suggestions in engines that run trials: Ray Tune and Dask, where they are installed."""

import joblib
import pytest
from sklearn.datasets import load_wine
from sklearn.svm import SVC

from dre_jax.tuning import Float, Space
from dre_jax.tuning.optuna import DRESampler, to_optuna
from dre_jax.tuning.sklearn import DRESearchCV

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("default")]


def test_ray_tune_runs_a_sampler(tmp_path):
    ray = pytest.importorskip("ray")
    tune = pytest.importorskip("ray.tune")
    search = pytest.importorskip("ray.tune.search.optuna").OptunaSearch
    space = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        tuner = tune.Tuner(
            lambda config: {"loss": (config["x"] - 0.25) ** 2 + (config["y"] - 0.5) ** 2},
            tune_config=tune.TuneConfig(
                search_alg=tune.search.ConcurrencyLimiter(
                    search(to_optuna(space), sampler=DRESampler(space, seed=0), metric="loss", mode="min"), 2
                ),
                num_samples=12,
                metric="loss",
                mode="min",
            ),
            run_config=tune.RunConfig(verbose=0, storage_path=str(tmp_path)),
        )
        results = tuner.fit()
    finally:
        ray.shutdown()
    assert len(results) == 12
    assert results.get_best_result().metrics["loss"] < 0.05


def test_dask_evaluates_a_search():
    distributed = pytest.importorskip("distributed")
    data, options = load_wine(return_X_y=True), {"n_iter": 6, "batch": 2, "cv": 2, "random_state": 0}
    space = {"C": Float(1e-2, 1e2, log=True)}
    alone = DRESearchCV(SVC(), space, **options).fit(*data)
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster), joblib.parallel_config("dask"):
        search = DRESearchCV(SVC(), space, **options).fit(*data)
    assert search.cv_results_["params"] == alone.cv_results_["params"]
