"""The process that measures a method's suggestions."""

import os
import subprocess
import sys

import pytest

from tests.processes import wait_until

METHOD = """
import os, time
from pathlib import Path

Path(__file__).with_name("process").write_text(f"{os.getpid()} ")
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.multiprocess
def test_the_process_ends_with_a_command_that_is_killed(tmp_path):
    (tmp_path / "method.py").write_text(METHOD)
    source = "from pathlib import Path; from dre_jax.hpob.timing import suggestion_times as times; "
    command = subprocess.Popen([sys.executable, "-c", source + "times('method.py:Slow', Path('out'))"], cwd=tmp_path)
    written = tmp_path / "process"
    wait_until(lambda: written.exists() and written.read_text().endswith(" "), command)
    process = int(written.read_text())
    assert process != command.pid
    command.kill()
    command.wait()
    wait_until(lambda: not alive(process), seconds=10)


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
