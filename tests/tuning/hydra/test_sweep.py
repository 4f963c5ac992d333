"""Sweeps with Hydra and its launchers, as users start them, and the loop over their jobs."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dre_jax import Float, Optimizer, Space, Surrogate
from dre_jax.errors import ConfigError, DataError
from tests.error_messages import raises_line
from tests.processes import run_python

pytest.importorskip("hydra", reason="hydra-core is not installed: pip install 'dre_jax[hydra]'")
from hydra.core.utils import JobReturn, JobStatus

from dre_jax.tuning.hydra.overrides import SweepOverrides
from dre_jax.tuning.hydra.sweep import PAST, RESULTS, STUDY, SweepConfig, run_sweep

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = REPOSITORY / "docs" / "how-to" / "hydra.md"
OVERRIDES = SweepOverrides(Space({"x": Float(0.0, 1.0)}), ("seed=3",))


class Launcher:
    """Runs jobs in this process, as Hydra's launchers return them."""

    def __init__(self, function):
        self.function, self.batches = function, []

    def __call__(self, overrides, first_number):
        self.batches.append((first_number, len(overrides)))
        return [self._run(job) for job in overrides]

    def _run(self, overrides):
        job = JobReturn(overrides=overrides)
        try:
            job.return_value, job.status = self.function(float(overrides[0].removeprefix("x="))), JobStatus.COMPLETED
        except ValueError as error:
            job.return_value, job.status = error, JobStatus.FAILED
        return job


def fail(x):
    raise ValueError("diverged")


@pytest.mark.usefixtures("even_points")
def test_a_sweep_of_batches_and_its_continuation(tmp_path):
    launch = Launcher(lambda x: fail(x) if x < 0.3 else "high" if x > 0.8 else x**2)
    run_sweep(tmp_path, OVERRIDES, SweepConfig(n_trials=5, n_jobs=2), launch)
    assert launch.batches == [(0, 2), (2, 2), (4, 1)]
    run_sweep(tmp_path, OVERRIDES, SweepConfig(n_trials=8, n_jobs=4), launch)
    assert launch.batches[3:] == [(5, 3)]
    trials = Optimizer.load(tmp_path / STUDY).trials
    twin = Optimizer(OVERRIDES.space)
    assert [trial.params for trial in trials] == [trial.params for trial in twin.ask(8)]
    expected = {trial["x"]: trial["x"] ** 2 for trial in trials if 0.3 <= trial["x"] <= 0.8}
    assert {trial["x"]: trial.value for trial in trials if trial.state == "complete"} == expected
    assert {trial.state for trial in trials} == {"complete", "failed"}
    best = min(expected, key=expected.get)
    results = {"name": "dre", "best_params": {"x": best}, "best_value": expected[best]}
    assert yaml.safe_load((tmp_path / RESULTS).read_text()) == results


@pytest.mark.usefixtures("even_points")
def test_jobs_that_were_interrupted_run_again(tmp_path):
    def interrupt(overrides, first_number):
        if first_number == 2:
            raise KeyboardInterrupt
        return Launcher(lambda x: x)(overrides, first_number)

    with pytest.raises(KeyboardInterrupt):
        run_sweep(tmp_path, OVERRIDES, SweepConfig(n_trials=6, n_jobs=2), interrupt)
    before = Optimizer.load(tmp_path / STUDY).trials
    assert [trial.state for trial in before] == ["complete"] * 2 + ["running"] * 2
    launch = Launcher(lambda x: x)
    run_sweep(tmp_path, OVERRIDES, SweepConfig(n_trials=6, n_jobs=3), launch)
    assert launch.batches == [(2, 2), (4, 2)]
    after = Optimizer.load(tmp_path / STUDY).trials
    assert [trial.params for trial in after[:4]] == [trial.params for trial in before]


@pytest.mark.usefixtures("even_points")
def test_several_objectives(tmp_path):
    for direction, names in (
        (["minimize", "maximize"], ["objective_0", "objective_1"]),
        ({"error": "minimize", "speed": "maximize"}, ["error", "speed"]),
    ):
        folder = tmp_path / names[0]
        config = SweepConfig(direction=direction, n_trials=4)
        run_sweep(folder, OVERRIDES, config, Launcher(lambda x: (x, x**2)))
        solutions = yaml.safe_load((folder / RESULTS).read_text())["solutions"]
        assert len(solutions) == 4
        assert all(one["values"] == [one["params"]["x"], one["params"]["x"] ** 2] for one in solutions)
        assert [*Optimizer.load(folder / STUDY).directions] == names


@pytest.mark.usefixtures("even_points")
def test_failures(tmp_path):
    with raises_line(DataError, "all 3 trials of the sweep failed"):
        run_sweep(tmp_path / "a", OVERRIDES, SweepConfig(n_trials=3), Launcher(fail))
    with raises_line(DataError, "all 1 trials of the sweep failed"):
        run_sweep(tmp_path / "b", OVERRIDES, SweepConfig(n_trials=1), Launcher(lambda x: float("nan")))
    config = SweepConfig(n_trials=9, n_jobs=2, max_failure_rate=0.5)
    launch = Launcher(fail)
    with pytest.raises(ValueError, match="diverged"):
        run_sweep(tmp_path / "c", OVERRIDES, config, launch)
    assert launch.batches == [(0, 2)]
    assert [trial.state for trial in Optimizer.load(tmp_path / "c" / STUDY).trials] == ["failed"] * 2
    with raises_line(ConfigError, "a job for each trial, but 1 got 0"):
        run_sweep(tmp_path / "d", OVERRIDES, SweepConfig(n_trials=1), lambda overrides, first_number: [])


def test_configurations_that_are_refused():
    for options, words in (
        ({"n_jobs": 0}, "n_jobs must be a whole number from 1"),
        ({"max_failure_rate": 2}, "between 0 and 1, but got 2"),
        ({"past": "a.json", "direction": ["minimize", "minimize"]}, "one objective, but got 2 directions"),
    ):
        with raises_line(ConfigError, words):
            SweepConfig(**options)


@pytest.mark.slow
def test_a_sweep_learns_from_past_studies_once(tmp_path, monkeypatch):
    past, fits, fit = Optimizer(OVERRIDES.space), [], Surrogate.fit
    for i in range(10):
        past.add({"x": i / 9}, (i / 9 - 1 / 3) ** 2)
    past.save(tmp_path / "past.json")

    def fit_quickly(tasks):
        fits.append(tasks)
        return fit(tasks, method="gcp", settings={"prior.steps": 5})

    monkeypatch.setattr(Surrogate, "fit", fit_quickly)
    for n_trials in (1, 2):
        config = SweepConfig(n_trials=n_trials, past=[str(tmp_path / "past.json")])
        run_sweep(tmp_path / "sweep", OVERRIDES, config, Launcher(lambda x: x))
    assert len(fits) == 1
    trials = Optimizer.load(tmp_path / "sweep" / STUDY, Surrogate.load(tmp_path / "sweep" / PAST)).trials
    assert trials[0]["x"] == pytest.approx(past.best["x"])


@pytest.fixture
def application(tmp_path):
    """Runs the application of the page with some arguments: the process."""
    text = PAGE.read_text()
    (tmp_path / "train.py").write_text(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1])
    (tmp_path / "config.yaml").write_text(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "train.py", "-m", "hydra.sweep.dir=sweep", "hydra.sweeper.n_trials=4", *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


@pytest.mark.slow
@pytest.mark.multiprocess
def test_an_application_is_killed_and_goes_on(application, tmp_path):
    script = tmp_path / "train.py"
    source = script.read_text()
    number = "hydra.core.hydra_config.HydraConfig.get().job.num"
    kill = f"    if {number} == 2: __import__('os').kill(__import__('os').getpid(), {signal.SIGKILL:d})\n"
    script.write_text(re.sub(r"(def train.*\n)", lambda line: line[0] + kill, source))
    assert application().returncode == -signal.SIGKILL
    killed = Optimizer.load(tmp_path / "sweep" / STUDY).trials
    assert [trial.state for trial in killed] == ["complete", "complete", "running"]
    script.write_text(source)
    process = application()
    assert process.returncode == 0, process.stderr
    trials = Optimizer.load(tmp_path / "sweep" / STUDY).trials
    assert [trial.state for trial in trials] == ["complete"] * 4
    assert trials[2].params == killed[2].params
    results = yaml.safe_load((tmp_path / "sweep" / RESULTS).read_text())
    assert results["best_value"] == min(trial.value for trial in trials)
    for trial in trials:
        overrides = yaml.safe_load((tmp_path / "sweep" / str(trial.number) / ".hydra" / "overrides.yaml").read_text())
        assert overrides == [f"lr={trial['lr']}", f"layers={trial['layers']}"]
    assert "Unable to initialize backend" not in process.stdout + process.stderr


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_launchers_of_processes(application, tmp_path, launcher):
    package = f"hydra_{launcher.partition('_')[0]}_launcher"
    pytest.importorskip(f"hydra_plugins.{package}", reason=f"{package} is not installed")
    process = application(f"hydra/launcher={launcher}", "hydra.sweeper.n_jobs=4", "optimiser=sgd,none")
    assert process.returncode == 0, process.stderr
    trials = Optimizer.load(tmp_path / "sweep" / STUDY).trials
    assert {trial["optimiser"]: trial.state for trial in trials} == {"sgd": "complete", "none": "failed"}


@pytest.mark.slow
@pytest.mark.multiprocess
def test_errors_are_one_line(application):
    process = application("hydra.sweeper.direction=up")
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "dre_jax: direction must be" in process.stderr


def test_other_applications_of_hydra_import_nothing_of_ours():
    program = "import sys; from hydra.core.plugins import Plugins; print(*map(str, Plugins.instance().discover()))"
    printed = run_python(f"{program}; print([name for name in ('dre_jax', 'jax') if name in sys.modules])").stdout
    assert "hydra_dre_sweeper" in printed
    assert printed.splitlines()[-1] == "[]"
