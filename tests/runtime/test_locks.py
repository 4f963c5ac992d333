"""Locks between processes: whose they are, how long another one waits, and where there is none."""

import os
import subprocess
import sys

import pytest

from dre_jax.errors import DataError
from dre_jax.runtime.locks import file_in_use, folder_lock
from tests.conftest import REPOSITORY
from tests.error_messages import raises_line

HOLD = "import sys\nfrom dre_jax.runtime.locks import {0}\nwith {0}(sys.argv[1]): print(flush=True), input()"
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="only Linux has /proc, which takes no files")


@pytest.fixture
def other_process():
    """Starts a process that holds a lock until the end of the test."""
    processes = []

    def hold(lock, path):
        command = [sys.executable, "-c", HOLD.format(lock.__name__), str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        processes.append(subprocess.Popen(command, cwd=REPOSITORY, **pipes))
        processes[-1].stdout.readline()
        return processes[-1].pid

    yield hold
    for process in processes:
        process.communicate(b"\n")
        assert process.returncode == 0


def test_a_lock_has_a_limit_and_an_owner(tmp_path, other_process):
    number = other_process(folder_lock, tmp_path)
    owner = f"but process {number} on "
    rule = f"{tmp_path} must be written by one process at a time"
    with raises_line(DataError, rule, owner, "0.1 s or more"), folder_lock(tmp_path, 0.1):
        pass


def test_a_file_in_use(tmp_path, other_process):
    number = other_process(file_in_use, tmp_path / "a {study}.json")
    words = "must be used by one process at a time", f"process {number} on ", "uses it"
    with raises_line(DataError, *words), file_in_use(tmp_path / "a {study}.json"):
        pass


def test_a_lock_leaves_nothing(tmp_path):
    with folder_lock(tmp_path), file_in_use(tmp_path / "study.json"):
        assert sorted(os.listdir(tmp_path)) == [".lock", ".study.json.lock"]
        assert (tmp_path / ".lock").read_text().startswith(f"process {os.getpid()} on ")
    assert os.listdir(tmp_path) == []


@needs_proc
@pytest.mark.parametrize("lock", [folder_lock, file_in_use])
def test_where_no_file_can_be_created_there_is_no_lock(lock):
    """And nobody waits: the writer says what is wrong."""
    for path in ("/proc/study.json", "/proc/none/study.json", f"{__file__}/study.json"):
        with lock(path if lock is file_in_use else os.path.dirname(path)):
            assert not os.path.exists(path)
