"""Jobs and grids: what is shared, what is kept, and what goes on after a failure."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dre_jax.errors import ConfigError
from dre_jax.hpob import jobs as grid
from dre_jax.hpob.jobs import BUNDLED, collect, complete_methods, make_jobs, run_jobs
from tests.processes import wait_until

ONE = ("test0",)


def jobs_of(methods, out, designs=ONE, **options):
    return make_jobs(methods, [BUNDLED], designs=designs, out=out, **{"spaces": ["svm"], "trials": 3, **options})


def test_jobs_share_checkpoints(tmp_path):
    methods = ["dre", "dre-no-finetune", "dre", "dre-paper", "random"]
    jobs = [job for seed in (0, 1) for job in jobs_of(methods, tmp_path, spaces=None, seed=seed)]
    assert len({job.path for job in jobs}) == len(jobs) == 4 * 4 * 2
    # Fine-tuning decides nothing about meta-training, and random search learns nothing.
    assert len({job.checkpoints() for job in jobs} - {None}) == 2 * 2
    assert sorted(len(group) for group in grid._groups(jobs)) == [1] * 16 + [2] * 8
    assert jobs_of(["dre"], tmp_path)[0].checkpoints() == jobs_of(["dre-no-finetune"], tmp_path)[0].checkpoints()
    other = jobs_of(["dre"], tmp_path, split="validation", spaces=None)[0]
    assert other.path != jobs[0].path
    assert other.checkpoints() == jobs[0].checkpoints()


def test_a_failed_job_is_reported_and_runs_again(tmp_path, monkeypatch, capsys, jobs_in_this_process):
    jobs = jobs_of(["random", "gp"], tmp_path)
    real, broken = grid.run_job, ["gp"]

    def run(job):
        if job.method in broken:
            raise RuntimeError("no memory\nat all")
        return real(job)

    monkeypatch.setattr(grid, "run_job", run)
    output = ["gp on bundled/svm, seed 0: RuntimeError: no memory at all"]
    assert run_jobs(jobs, 1) == output
    assert complete_methods(jobs) == ["random"]
    error = capsys.readouterr().err
    assert f"dre-jax: failed: {output[0]}\ngp is left out: finished on 0 of 1 search spaces\n" in error
    written = jobs[0].path.stat().st_mtime_ns
    broken.clear()
    assert run_jobs(jobs, 1, quiet=True) == []
    assert complete_methods(jobs) == ["random", "gp"]
    assert jobs[0].path.stat().st_mtime_ns == written
    monkeypatch.setattr(grid, "run_job", None)  # nothing is left to do
    assert run_jobs(jobs, 1, "jobs", quiet=False) == []
    assert capsys.readouterr().err.startswith("jobs: 2/2 jobs\n")


def test_unknown_spaces_and_equal_names(tmp_path):
    with pytest.raises(ConfigError, match=r"must be among .*svm.*, but got trees"):
        jobs_of(["gp"], tmp_path, spaces=["trees"])
    with pytest.raises(ConfigError, match="different names, but got a, a"):
        make_jobs(["gp"], ["x/a", "y/a"], designs=ONE, out=tmp_path)


PROGRAM = """
import sys
from pathlib import Path
from dre_jax.hpob.jobs import make_jobs, run_jobs

if __name__ == "__main__":
    jobs = make_jobs(["gp"], ["bundled"], designs=("test0",), out=Path(sys.argv[1]), spaces=["svm"], trials=30)
    run_jobs(jobs, 1)
"""


@pytest.mark.multiprocess
@pytest.mark.thorough
@pytest.mark.skipif(not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="asks Linux for processes")
def test_a_killed_grid_leaves_no_worker_and_keeps_its_runs(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    root = str(Path(__file__).resolve().parents[2])
    with subprocess.Popen([sys.executable, script, tmp_path], env=os.environ | {"PYTHONPATH": root}) as process:
        jobs = make_jobs(["gp"], [BUNDLED], designs=ONE, out=tmp_path, spaces=["svm"], trials=30)
        wait_until(jobs[0].path.exists, process)
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert workers
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), seconds=20)
    assert len(list(collect(jobs, "gp").runs())) > 0
    assert not jobs[0].done
