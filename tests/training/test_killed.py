"""Meta-training that is killed, as by `kill -9`, goes on to the parameters of a training that was not."""

import os
import random
import signal
import subprocess
import sys

import chex
import pytest

from dre_jax.training.checkpoint import Checkpoint

pytestmark = [pytest.mark.multiprocess, pytest.mark.thorough]
SECONDS = 240  # a hard limit for a child on a busy machine, not a measurement

# Arguments: folder, the number of the file-system call to die at (0: never).
# Calls are counted from the start of training, where they touch the folder; every one prints a line.
CHILD = """
import os, signal, sys
import jax
from dre_jax.data import bundled
from dre_jax.model import ModelConfig
from dre_jax.training import MetaTrainConfig, meta_train

folder, die_at, count = sys.argv[1], int(sys.argv[2]), 0

def watch(event, arguments):
    global count
    if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir") and folder in str(arguments[0]):
        count += 1
        os.write(1, b".\\n")
        if count == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
model = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
config = MetaTrainConfig(steps=60, evaluate_every=10, n_support=3, n_query=6, evaluation_lists=8, patience=50)
done = meta_train(bundled.load("svm"), model, config, key=jax.random.key(7), folder=folder)
print("resumed from", done.resumed_from)
"""


@pytest.fixture(scope="module")
def child(tmp_path_factory):
    """Starts a child; all children share their compiled programs."""
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("programs")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }

    def start(folder, die_at=0):
        command = [sys.executable, "-c", CHILD, str(folder), str(die_at)]
        return subprocess.Popen(
            command, env=os.environ | cache, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return start


def end_of(process):
    """Exit status and standard output; the process is gone afterwards, whatever happens."""
    try:
        out, error = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode in (0, -signal.SIGKILL), error
    return process.returncode, out


@pytest.fixture(scope="module")
def uninterrupted(child, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    status, out = end_of(child(folder))
    assert status == 0
    assert "resumed from None" in out
    return folder, out.count(".\n")


def test_killed_processes_end_with_the_same_parameters(child, uninterrupted, tmp_path):
    reference, n_calls = uninterrupted
    assert n_calls > 50
    draw = random.Random()
    # Seven saves make all of the calls: death comes in the first to fourth.
    die_at = draw.randint(1, n_calls // 2)
    assert end_of(child(tmp_path, die_at))[0] == -signal.SIGKILL, die_at
    # And from outside, at a moment that nobody chose: after some lines of the child's.
    process, lines = child(tmp_path), draw.randint(1, n_calls // 4)
    for _ in range(lines):
        process.stdout.readline()
    process.kill()
    end_of(process)
    last = Checkpoint(tmp_path).latest_step()
    status, out = end_of(child(tmp_path))
    assert status == 0, (die_at, lines)
    assert f"resumed from {last}\n" in out, (die_at, lines)
    ours, theirs = Checkpoint(tmp_path), Checkpoint(reference)
    for part in ("state", "best"):
        chex.assert_trees_all_equal(*(getattr(one.load(), part) for one in (ours, theirs)), strict=True)
    assert ours.metadata() == theirs.metadata()
    assert (tmp_path / "losses.csv").read_text() == (reference / "losses.csv").read_text()
    # Nothing half-written is left.
    assert names(tmp_path) == names(reference)
    assert names(tmp_path / "steps") == names(reference / "steps") == ["50", "60"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())
