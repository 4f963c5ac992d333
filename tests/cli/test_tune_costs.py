"""``dre-jax tune`` with costs, standard errors and the end of a search, in a study file and in a storage."""

import re

import optuna
import pytest

from dre_jax import Float, Optimizer, Space
from dre_jax.tuning.command.shared_study import SharedStudy

SPACE = Space({"x": Float(0.0, 1.0)})
pytestmark = pytest.mark.usefixtures("even_points")


@pytest.fixture
def tune(tmp_path, space, study):
    """Arguments of the command: a value, then a cost that the trial's number decides, and a standard error."""

    def arguments(*options, script="echo loss: {x}; echo seconds: 1{trial}; echo error=0.25"):
        return ["tune", "--space", space, "--study", study, *options, "--", "sh", "-c", script]

    return arguments


def test_costs_and_standard_errors_of_a_file(cli, tune, study):
    names = ("--cost", "seconds", "--stderr", "error")
    status, _, error = cli(*tune("--trials", 3, *names))
    assert status == 0, error
    assert re.search(r"tune: read \S+ from the line 'loss: \S+', cost 10, standard error 0.25; --metric NAME", error)
    trials = Optimizer.load(study).trials
    assert [(trial.value, trial.cost, trial.stderr) for trial in trials] == [
        (trial["x"], 10.0 + i, 0.25) for i, trial in enumerate(trials)
    ]


def test_costs_of_a_storage_and_its_end(cli, tune, tmp_path, monkeypatch):
    storage = f"sqlite:///{tmp_path / 'tune.db'}"
    monkeypatch.setattr(SharedStudy, "gain_is_below", lambda self, threshold: len(self.trials) >= threshold)
    options = ("--trials", 9, "--storage", storage, "--cost", "seconds", "--stderr", "error")
    status, out, error = cli(*tune(*options, "--stop-when-gain-below", 4))
    assert status == 0, error
    assert out.splitlines()[0] == "tune: stopped, because a trial is expected to gain less than 4"
    (name,) = optuna.get_all_study_names(storage)
    trials = optuna.load_study(study_name=name, storage=storage).trials
    attributes = [{key: trial.user_attrs[f"dre_jax:{key}"] for key in ("cost", "stderr")} for trial in trials]
    assert attributes == [{"cost": 10.0 + i, "stderr": 0.25} for i in range(4)]


def test_a_command_without_the_names_has_several_values(refused, tune):
    assert "several values" in refused(*tune("--trials", 1, "--quiet", "--cost", "seconds"))
    message = refused(*tune("--metric", "loss", "--metric", "seconds", "--stderr", "error"))
    assert "--past-curves and --stderr need a single metric" in message
