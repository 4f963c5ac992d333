"""MLflow, with a store in SQLite."""

import pytest

from dre_jax.tuning import Optimizer
from dre_jax.tuning.trackers import MLflowTracker

mlflow = pytest.importorskip("mlflow")
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.thorough]


@pytest.fixture
def address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # artifacts are beside
    return f"sqlite:///{tmp_path}/mlflow.db"


def runs_of(address):
    """The runs of the studies, and those of the trials."""
    client = mlflow.MlflowClient(address)
    runs = client.search_runs([client.get_experiment_by_name("wine").experiment_id])
    return [[run for run in runs if ("mlflow.parentRunId" in run.data.tags) == child] for child in (False, True)]


def trials_of(address, runs):
    """What the runs have of trials, as `check_trials` takes it."""
    client = mlflow.MlflowClient(address)
    for run in runs:
        curve = {one.step: one.value for one in client.get_metric_history(run.info.run_id, "report")}
        params = {name.replace("_0_", "[0]"): value for name, value in run.data.params.items()}
        failed = run.info.status == "FAILED"
        yield int(run.data.tags["trial"]), params, run.data.metrics.get("value"), failed, curve


def test_a_resumed_study_continues_in_its_run(optimizer, run_trials, resumed, check_trials, address):
    run_trials(optimizer, 4, MLflowTracker("wine", address))  # killed: it does not finish
    optimizer = resumed(optimizer)
    with MLflowTracker("wine", address) as tracker:
        run_trials(optimizer, 3, tracker)
    (study,), trials = runs_of(address)
    check_trials(optimizer, list(trials_of(address, trials)))
    assert study.info.status == "FINISHED"
    assert {run.data.tags["mlflow.parentRunId"] for run in trials} == {study.info.run_id}
    figures = mlflow.MlflowClient(address).list_artifacts(study.info.run_id, "figures")
    assert [figure.path for figure in figures] == ["figures/History.png"]
    other = Optimizer(optimizer.space, seed=0)
    run_trials(other, 4, MLflowTracker("wine", address))
    assert [len(runs) for runs in runs_of(address)] == [2, 11], "another study of the same seed has runs of its own"


def test_a_kill_while_a_trial_is_written(optimizer, run_trials, resumed, check_trials, address, monkeypatch):
    tracker = MLflowTracker("wine", address)
    run_trials(optimizer, 3, tracker)
    killed = KeyboardInterrupt()
    monkeypatch.setattr(tracker._client, "set_terminated", lambda *_: (_ for _ in ()).throw(killed))
    with pytest.raises(KeyboardInterrupt):
        run_trials(optimizer, 1, tracker)
    assert len(runs_of(address)[1]) == 4
    optimizer = resumed(optimizer)
    run_trials(optimizer, 1, MLflowTracker("wine", address))
    check_trials(optimizer, list(trials_of(address, runs_of(address)[1])))


def test_long_and_many_parameters(even_points, address):
    from dre_jax.tuning import Categorical, Float

    space = {f"x{i}": Float(0.0, 1.0) for i in range(120)} | {"text": Categorical(["a" * 9000, "b" * 9000])}
    optimizer = Optimizer(space)
    optimizer.optimize(lambda trial: trial["x0"], 2, callbacks=MLflowTracker("wine", address))
    _, trials = runs_of(address)
    assert [len(run.data.params) for run in trials] == [121, 121]


def test_the_example_of_the_page(run_example, address):
    optimizer = run_example("MLflow")
    (study,), trials = runs_of(address)
    assert len(trials) == len(optimizer.trials) == 16
    figures = mlflow.MlflowClient(address).list_artifacts(study.info.run_id, "figures")
    assert {figure.path for figure in figures} >= {"figures/Learning curves.png", "figures/Slices.png"}


def test_the_active_run_stays(optimizer, run_trials, address):
    before = mlflow.get_tracking_uri()
    with MLflowTracker("wine", address) as tracker:
        run_trials(optimizer, 2, tracker)
    assert mlflow.get_tracking_uri() == before
    assert mlflow.active_run() is None
