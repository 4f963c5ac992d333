"""Trials as jobs of Slurm: on a cluster of one machine, which the tests start where Slurm is installed."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dre_jax import Float, Optimizer, Space, write_space
from tests.processes import wait_until

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "slurm.md"
pytestmark = [pytest.mark.thorough, pytest.mark.multiprocess, pytest.mark.filterwarnings("default")]

_TRAIN = """
import sys, time
x, seconds = map(float, sys.argv[1:])
time.sleep(seconds)
if x > 0.8:
    sys.exit(3)
print(x**2)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Starts Slurm as root: the environment of its commands."""
    if missing := [name for name in ("munged", "slurmctld", "slurmd", "srun") if shutil.which(name) is None]:
        pytest.skip(f"{missing[0]} is not installed (Debian's munge, slurmctld, slurmd and slurm-client)")
    if os.geteuid():
        pytest.skip("only root may start slurmd")
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    host, cores = socket.gethostname().split(".")[0], os.cpu_count()
    paths = {
        "AuthInfo": f"socket={folder / 'socket'}",
        **{name: folder / name for name in ("StateSaveLocation", "SlurmdSpoolDir")},
        **{name: folder / name for name in ("SlurmctldPidFile", "SlurmdPidFile")},
        **{name: folder / f"{name}.log" for name in ("SlurmctldLogFile", "SlurmdLogFile")},
    }
    lines = [
        f"ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge",
        *(f"{name}={path}" for name, path in paths.items()),
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\nKillWait=2\nInactiveLimit=30",
        f"SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nNodeName={host} NodeAddr=127.0.0.1 CPUs={cores}",
        "PartitionName=gpu Nodes=ALL Default=YES State=UP",
    ]
    (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
    for name in ("StateSaveLocation", "SlurmdSpoolDir"):
        (folder / name).mkdir()
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    services = (
        ["munged", "-F", "--force", *(f"--{name}={folder / name.removesuffix('-file')}" for name in
         ("key-file", "socket", "pid-file", "log-file", "seed-file"))],
        ["slurmctld", "-D", "-f", folder / "slurm.conf"],
        ["slurmd", "-D", "-f", folder / "slurm.conf"],
    )  # fmt: skip
    processes = [subprocess.Popen(list(map(str, service)), env=environment) for service in services]

    def is_idle():
        state = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True)
        return state.stdout.strip() == "idle"

    try:
        wait_until(is_idle, *processes, seconds=60)
        yield environment
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


@pytest.fixture
def tune(cluster, tmp_path):
    """Starts `dre-jax tune` with some options, whose trials take some seconds, by `srun`: the process."""
    (tmp_path / "train.py").write_text(_TRAIN)
    write_space(tmp_path / "space.json", Space({"x": Float(0.0, 1.0)}))

    def start(*options, seconds=0, srun=("srun", "-n1"), prefix=()):
        command = [*srun, sys.executable, "train.py", "{x}", str(seconds)]
        tune = [sys.executable, "-m", "dre_jax", "tune", "--space", "space.json", *map(str, options), "--", *command]
        return subprocess.Popen([*prefix, *tune], cwd=tmp_path, env=cluster, stderr=subprocess.PIPE, text=True)

    return start


def jobs(environment):
    """Returns the numbers of the jobs that run or wait."""
    return subprocess.run(["squeue", "-h", "-o", "%i"], env=environment, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("is_allocated", [False, True])
def test_trials_are_jobs_or_steps(tune, tmp_path, is_allocated):
    options = {"srun": ("srun", "-n1", "--exact"), "prefix": ("salloc", "-n2")} if is_allocated else {}
    process = tune("--trials", 4, "--workers", 2, **options)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    trials = Optimizer.load(tmp_path / "study.json").trials
    assert len(trials) == 4
    for trial in trials:
        assert trial.state == ("failed" if trial["x"] > 0.8 else "complete")
        assert trial.value is None or trial.value == pytest.approx(trial["x"] ** 2)


def test_jobs_end_with_the_search_and_run_again(tune, cluster, tmp_path):
    options = ("--trials", 3, "--workers", os.cpu_count() + 1)  # one waits in the queue
    process = tune(*options, seconds=300)
    wait_until(lambda: len(jobs(cluster)) == 3, process, seconds=60)
    process.kill()
    process.communicate()
    wait_until(lambda: not jobs(cluster), seconds=60)
    before = Optimizer.load(tmp_path / "study.json").trials
    assert [trial.state for trial in before] == ["running"] * 3
    process = tune(*options)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    after = Optimizer.load(tmp_path / "study.json").trials
    assert [trial.params for trial in after] == [trial.params for trial in before]
    assert "running" not in [trial.state for trial in after]


def test_a_job_that_is_cancelled_is_a_failed_trial(tune, cluster, tmp_path):
    process = tune("--trials", 1, "--logs", "logs", seconds=300)
    wait_until(lambda: jobs(cluster), process, seconds=60)
    subprocess.run(["scancel", *jobs(cluster)], env=cluster, check=True)
    process.communicate(timeout=60)
    assert [trial.state for trial in Optimizer.load(tmp_path / "study.json").trials] == ["failed"]
    assert "srun: error" in (tmp_path / "logs" / "0.err").read_text()


@pytest.mark.parametrize("kind", ["local", "slurm"])
def test_functions_by_submitit(kind, request, tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    if kind == "slurm":
        monkeypatch.setenv("SLURM_CONF", request.getfixturevalue("cluster")["SLURM_CONF"])
    monkeypatch.chdir(tmp_path)
    source = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    source = source.replace('AutoExecutor("jobs")', f'AutoExecutor("jobs", cluster="{kind}")')
    source = source.replace("    return (lr", "    assert lr < 0.5\n    return (lr")
    names = {}
    exec(source, names)
    trials = Optimizer.load("study.json").trials
    assert len(trials) == 8
    assert [trial.state for trial in trials] == ["complete" if trial["lr"] < 0.5 else "failed" for trial in trials]
    assert "failed" in {trial.state for trial in trials}
