"""Trackers of `dre-jax tune`, and what all of them do."""

import shutil

import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import Float, Optimizer, Space, write_space
from dre_jax.tuning.trackers import TensorBoardTracker
from dre_jax.tuning.trackers.by_name import tracking
from tests.error_messages import raises_line


def test_the_command_line_tracks_its_trials(cli, optimizer, tmp_path):
    write_space(tmp_path / "space.json", Space({"x": Float(-1.0, 1.0)}))

    def tune(n, *options):
        files = ["--space", tmp_path / "space.json", "--study", tmp_path / "study.json", "--trials", n, "--quiet"]
        return cli("tune", *files, *options, "--", "sh", "-c", "echo {x} | grep -v -- -")  # fails below 0

    def tracked():
        return {path.name for path in (tmp_path / "runs").glob("*/trial-*")}

    track = ("--track", f"tensorboard={tmp_path / 'runs'}")
    assert tune(3, *track)[0] == 0
    assert tracked() == {f"trial-{i}" for i in range(3)}
    (folder,) = (tmp_path / "runs").iterdir()
    shutil.rmtree(folder / "trial-2")  # as if killed after the study was saved
    assert tune(5, *track)[0] == 0
    assert tracked() == {f"trial-{i}" for i in range(5)}
    assert {trial.state for trial in Optimizer.load(tmp_path / "study.json").trials} == {"complete", "failed"}
    status, _, error = tune(6, "--track", "neptune=wine")
    assert (status, "mlflow, tensorboard or wandb, but got 'neptune=wine'" in error) == (2, True)
    status, _, error = tune(6, *track, "--storage", f"sqlite:///{tmp_path / 'tune.db'}")
    assert (status, "--track without --storage" in error) == (2, True)


def test_a_tracker_that_fails_is_one_line(optimizer, tmp_path):
    (tmp_path / "runs").write_text("a file")
    with raises_line(DataError, str(tmp_path / "runs")), tracking([f"tensorboard={tmp_path}/runs"], "s", optimizer):
        pass


def test_a_tracker_has_one_study(optimizer, run_trials, tmp_path):
    tracker = TensorBoardTracker(tmp_path)
    run_trials(optimizer, 1, tracker)
    with raises_line(ConfigError, "one study"):
        run_trials(Optimizer(optimizer.space), 1, tracker)


def test_a_study_without_a_value_has_no_figures_to_fail_for(tmp_path, even_points):
    optimizer = Optimizer({"x": Float(-1.0, 1.0)})
    with TensorBoardTracker(tmp_path) as tracker:
        optimizer.optimize(lambda trial: float("nan"), 2, callbacks=tracker)
    assert len(list(tmp_path.glob("*/trial-*"))) == 2


def test_an_exception_of_the_objective_leaves_its_trial_failed(optimizer, tmp_path):
    with pytest.raises(ZeroDivisionError), TensorBoardTracker(tmp_path) as tracker:
        optimizer.optimize(lambda trial: 1 / (1 - trial.number), 3, callbacks=tracker)
    assert {path.name for path in tmp_path.glob("*/trial-*")} == {"trial-0", "trial-1"}


def test_threads_share_a_tracker(optimizer, tmp_path):
    optimizer.optimize(lambda trial: trial["x"], 12, callbacks=TensorBoardTracker(tmp_path), n_jobs=4)
    assert len(list(tmp_path.glob("*/trial-*"))) == 12


def test_identities_of_studies(optimizer, study):
    """A file of an earlier version has none: the study gets one, and keeps it."""
    optimizer.save(study)
    assert Optimizer.load(study).study_id == optimizer.study_id != Optimizer(optimizer.space).study_id
    study.write_text(study.read_text().replace(f' "id": "{optimizer.study_id}",\n', ""))
    loaded = Optimizer.load(study)
    loaded.save(study)
    assert Optimizer.load(study).study_id == loaded.study_id != optimizer.study_id
