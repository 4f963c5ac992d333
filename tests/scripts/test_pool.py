"""The worker processes of the scripts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

PROGRAM = """
import os, sys, time
from pathlib import Path
from pool import in_pools

def job(path):
    Path(path).write_text(str(os.getpid()))
    time.sleep(120)
    return 1

if __name__ == "__main__":
    list(in_pools([sys.argv[1]], job, 1))
"""


def wait_until(true, seconds):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.1)
    return true()


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that ended and that nobody has asked about yet is a zombie.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.multiprocess
@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="asks Linux whether a process lives")
def test_a_worker_does_not_outlive_a_script_that_is_killed(tmp_path):
    script, told = tmp_path / "program.py", tmp_path / "pid"
    script.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, script, told], env=os.environ | {"PYTHONPATH": str(SCRIPTS)}) as process:
        assert wait_until(lambda: told.exists() and told.read_text(), 60)
        worker = int(told.read_text())
        assert alive(worker)
        process.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not alive(worker), 20)
