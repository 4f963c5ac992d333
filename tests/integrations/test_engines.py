"""Suggestions in tools that run trials: Ray Tune, Dask, Syne Tune and CARP-S, where they are installed."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import joblib
import pytest
from sklearn.datasets import load_wine
from sklearn.svm import SVC

from dre_jax.tuning import Float, Space
from dre_jax.tuning.optuna import DRESampler, to_optuna
from dre_jax.tuning.sklearn import DRESearchCV

FOLDER = Path(__file__).resolve().parents[2] / "integrations"
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


@pytest.mark.parametrize("sign", [1, -1])
def test_syne_tune_asks_a_searcher(sign, monkeypatch):
    cs = pytest.importorskip("syne_tune.config_space")
    module = "syne_tune.optimizer.schedulers.single_objective_scheduler"
    monkeypatch.syspath_prepend(FOLDER / "syne_tune")
    from dre_searcher import DRESearcher

    space = {"lr": cs.loguniform(1e-4, 1), "n": cs.randint(1, 9), "k": cs.choice(["a", "b"])}
    space |= {"size": cs.ordinal([1, 2, 4]), "rate": cs.finrange(0.1, 0.5, 5), "epochs": 7}
    searcher = DRESearcher(space, random_seed=0)
    scheduler = pytest.importorskip(module).SingleObjectiveScheduler(
        space, metric="loss", do_minimize=sign > 0, searcher=searcher
    )
    for number in range(12):
        config = scheduler.suggest().config
        assert config["epochs"] == 7
        trial = SimpleNamespace(trial_id=number, config=config)
        loss = (math.log10(config["lr"]) + 2) ** 2 + (config["k"] == "a") + config["rate"]
        scheduler.on_trial_complete(trial, {"loss": sign * loss}) if number else scheduler.on_trial_error(trial)
    assert searcher.optimizer.trials[0].state == "failed"
    assert searcher.optimizer.best.value < 0.6


def test_carps_runs_an_optimizer(tmp_path):
    pytest.importorskip("carps")
    options = ["+optimizer/dre_jax=config", "+task/DUMMY=config", "seed=1", "task.optimization_resources.n_trials=8"]
    command = [sys.executable, "-m", "carps.run", "--config-dir", str(FOLDER / "carps" / "configs"), *options]
    path = os.pathsep.join([str(FOLDER / "carps"), *sys.path])
    subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, check=True, capture_output=True)
    (log,) = tmp_path.rglob("trial_logs.jsonl")
    assert len([json.loads(line) for line in log.read_text().splitlines()]) == 8
