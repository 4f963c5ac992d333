"""Two processes of two devices each, on this machine: they end with what one process makes, also after one has died."""

import os
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from dre_jax.data import read_results, write_dataset
from dre_jax.methods.dre.training_checkpoint import TrainingCheckpoint
from tests.processes import wait_until

pytestmark = pytest.mark.multiprocess
SECONDS = 300  # a hard limit on a busy machine, not a measurement


def one(*arguments):
    """Runs a command in one process, on one device: as `end_of`."""
    command = [sys.executable, "-m", "dre_jax", *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    return process.returncode, process.stdout, process.stderr


@pytest.fixture
def two():
    """Starts a command on two processes; whatever happens, none of them is left."""
    started = []

    def start(*arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for process_id in (0, 1):
            command = [sys.executable, "-m", "dre_jax", *map(str, arguments), "--devices", "2", "--processes", "2"]
            command += ["--coordinator", f"127.0.0.1:{port}", "--process-id", str(process_id)]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            started.append(subprocess.Popen(command, **pipes))
        return started[-2:]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def end_of(process):
    """Exit status, standard output, standard error."""
    out, error = process.communicate(timeout=SECONDS)
    # Gloo tells of its connections, from several threads whose lines may run into each other and leave empty ones.
    lines = [line for line in error.splitlines(True) if line.strip()]
    ours = [line for line in lines if not line.startswith("[Gloo]") and "peer ranks" not in line]
    return process.returncode, out, "".join(ours)


@pytest.mark.thorough
def test_meta_training_and_a_death(two, tmp_path, monkeypatch, make_space):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")  # quick to compile: there is little to run
    data, out, alone = tmp_path / "data", tmp_path / "out", tmp_path / "alone"
    write_dataset(data, [make_space("a"), make_space("b", seed=1)])
    command = ["meta-train", "--data", data, "--method", "dre", "--evaluate-every", 2, "--lists-per-step", 2]
    processes = two(*command, "--out", out, "--steps", 100_000)
    # Each process saves its own search space, and does not wait for the other.
    wait_until(lambda: min(TrainingCheckpoint(out / name).latest_step() or 0 for name in "ab") >= 2, *processes)
    processes[0].kill()
    start = time.monotonic()
    status, _, error = end_of(processes[1])
    assert status == -signal.SIGABRT
    assert "another task died" in error
    assert time.monotonic() - start < 60

    steps = max(TrainingCheckpoint(out / name).latest_step() for name in "ab") + 4
    # What went on with tables on the devices goes on with rows that the host sends them.
    (status, printed, error), second = map(end_of, two(*command, "--out", out, "--steps", steps, "--stream"))
    assert status == 0, error
    lines = printed.splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == [f"a: {steps} steps", f"b: {steps} steps"]
    assert lines[0].startswith("a: went on from step ")
    assert "meta-train a: " in error
    assert "meta-train b" not in error
    assert second == (0, "", "")

    assert one(*command, "--out", alone, "--steps", steps, "--devices", 1)[0] == 0
    for name in "ab":
        checkpoints = [TrainingCheckpoint(root / name) for root in (out, alone)]
        ours, theirs = (checkpoint.load() for checkpoint in checkpoints)
        facts, expected = (checkpoint.metadata() for checkpoint in checkpoints)
        assert facts["space"] == name
        np.testing.assert_allclose(facts.pop("history"), expected.pop("history"), rtol=1e-4)
        assert facts == expected
        difference = jax.tree.map(lambda a, b: np.abs(a - b).ravel(), ours.params, theirs.params)
        assert np.mean(np.concatenate(jax.tree.leaves(difference)) > 1e-3) < 0.005


@pytest.mark.thorough
def test_evaluation_and_a_death(two, tmp_path, evaluate, monkeypatch, make_space, save_checkpoint):
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0")
    monkeypatch.setenv("DRE_JAX_NATIVE", "0")  # nothing is fine-tuned, so there is nothing to build
    # Of two widths, so that the second still has to be compiled when the first has ended.
    spaces = [make_space("a", test="v", designs=(5, 3)), make_space("b", 3, test="v", designs=(5, 3))]
    write_dataset(tmp_path / "data", spaces)
    for space in spaces:
        save_checkpoint(tmp_path / "checkpoints" / space.name, space)

    def command(name):
        places = {"data": tmp_path / "data", "checkpoints": tmp_path / "checkpoints", "out": tmp_path / name}
        return [*evaluate("dre-no-finetune", space="a", trials=3, **places), "--space", "b"]

    assert one(*command("alone.json"), "--devices", 1)[0] == 0
    processes = two(*command("two.json"))
    wait_until((tmp_path / "two.json").exists, *processes)
    processes[1].kill()
    start = time.monotonic()
    status, printed, error = end_of(processes[0])
    assert status == 1, error
    assert printed == ""
    assert "cannot compute with the others any more" in error
    assert time.monotonic() - start < 60
    some = len(list(read_results(tmp_path / "two.json").runs()))

    (status, printed, error), second = map(end_of, two(*command("two.json")))
    assert status == 0, error
    assert printed.startswith("dre-no-finetune: ")
    assert printed.count("\n") == 1
    assert f"evaluate dre-no-finetune: {some}/" in error
    assert second == (0, "", "")
    # The same picks to the last bit, and the same account of them.
    assert (tmp_path / "two.json").read_text() == (tmp_path / "alone.json").read_text()


@pytest.mark.thorough
def test_distributed_without_a_cluster(data, tmp_path):
    status, out, error = one("meta-train", "--data", data, "--out", tmp_path / "out", "--distributed")
    assert (status, out) == (2, "")
    assert error.startswith("dre-jax: --distributed needs a cluster that JAX knows")
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()
