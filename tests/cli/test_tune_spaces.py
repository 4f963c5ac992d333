"""``dre-jax tune --change-space``."""

import json

import pytest

from dre_jax import Float, Optimizer, Space, write_space

SPACE = Space({"x": Float(-1.0, 1.0), "y": Float(0.0, 1.0)})
NEW = Space({"x": Float(0.0, 3.0), "z": Float(0.0, 1.0, default=0.25)})
pytestmark = pytest.mark.usefixtures("even_points")


@pytest.fixture
def tune(tmp_path, study):
    """Arguments of the command in the new space, for a study in the old one with trials on both sides of zero."""
    optimizer = Optimizer(SPACE, seed=3)
    for x in (-0.5, 0.5, 0.25):
        optimizer.add({"x": x, "y": 0.5}, x)
    optimizer.save(study)
    write_space(tmp_path / "new.json", NEW)

    def arguments(*options):
        files = ["--space", tmp_path / "new.json", "--study", study]
        return ["tune", *files, *options, "--metric", "x", "--", "sh", "-c", "echo x: $0", "{x}", "{z}"]

    return arguments


def test_a_study_continues_in_another_space(cli, tune, study, tmp_path):
    before = study.read_bytes()
    status, out, error = cli(*tune("--trials", 5))
    assert (status, out) == (2, "")
    assert error.count("\n") == 1
    assert "must hold a study of the space given" in error
    assert "--change-space" in error
    assert study.read_bytes() == before
    page = tmp_path / "page.html"
    status, out, error = cli(*tune("--trials", 5, "--change-space", "--report", page))
    assert status == 0, error
    assert "warning: 1 trial is outside of the space, and cannot be the best: trial 0 (x must be a number in" in error
    optimizer = Optimizer.load(study, space=NEW)
    assert [(one.state, one.in_space) for one in optimizer.trials] == [("complete", i > 0) for i in range(5)]
    assert [one["z"] for one in optimizer.trials[:3]] == [0.25] * 3
    head, params, *_ = out.splitlines()
    assert head == f"best of 5 trials: {optimizer.best.value} (trial {optimizer.best.number})"
    assert json.loads(params) == optimizer.best.params
    assert optimizer.best.value >= 0.0
    assert "1 is outside of the space" in page.read_text()
    status, again, error = cli(*tune("--trials", 5))
    assert (status, again.splitlines()[:2]) == (0, out.splitlines()[:2])
    assert "warning" not in error


def test_an_interrupted_trial_outside_of_the_space_does_not_run_again(cli, tune, study):
    optimizer = Optimizer.load(study)
    for x in (-0.25, 0.75):
        optimizer.add_running({"x": x, "y": 0.5})
    optimizer.save(study)
    status, _, error = cli(*tune("--trials", 5, "--change-space"))
    assert status == 0, error
    assert "trial 3, which was interrupted, is outside of the space and counts as failed" in error
    assert [one.state for one in Optimizer.load(study).trials] == ["complete"] * 3 + ["failed", "complete"]


def test_the_change_is_saved_where_no_trial_is_left(cli, tune, study):
    assert cli(*tune("--trials", 3, "--change-space"))[0] == 0
    assert Optimizer.load(study).space == NEW
    assert cli(*tune("--trials", 3, "--change-space"))[0] == 0, "of a space that is the study's"


def test_processes_that_share_a_study_do_not_change_its_space(cli, tune, tmp_path):
    status, out, error = cli(*tune("--change-space", "--storage", f"sqlite:///{tmp_path / 'tune.db'}"))
    assert (status, out) == (2, "")
    assert "cannot change its space: pass --change-space with a study file" in error
