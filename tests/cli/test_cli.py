"""The command line where all goes well: what it prints, and what it leaves on the disk."""

import json
import shutil

import numpy as np
import pytest

from dre_jax.data import bundled, read_results
from dre_jax.methods.dre.training_checkpoint import TrainingCheckpoint
from tests.processes import run_python


@pytest.mark.slow
def test_meta_train_and_go_on(cli, trained, tmp_path, data):
    arguments = ["meta-train", "--data", data, "--space", "svm", "--method", "dre"]
    arguments += ["--evaluate-every", "10", "--steps", "20"]
    root = shutil.copytree(trained, tmp_path / "root")
    shutil.rmtree(root / "svm" / "steps" / "20")  # as if it had been killed after ten steps
    status, out, error = cli(*arguments, "--out", root)
    assert status == 0
    assert out.startswith("svm: went on from step 10\nsvm: 20 steps, training loss ")
    assert out.endswith(f"saved in {root / 'svm'}\n")
    assert "meta-train svm: 10/20 steps" in error
    assert "meta-train svm: 20/20 steps" in error
    for name in ("losses.csv", "metadata.json"):
        assert (root / "svm" / name).read_text() == (trained / "svm" / name).read_text()
    assert TrainingCheckpoint(root / "svm").latest_step() == 20


def test_info(cli, trained):
    status, out, error = cli("info", trained / "svm")
    assert (status, error) == (0, "")
    facts = dict(line.split("  ", 1) for line in out.splitlines())
    assert facts["search space"].strip() == "svm, 14 columns"
    assert "20 of 20" in out
    metadata = json.loads((trained / "svm" / "metadata.json").read_text())
    assert metadata["facts"]["fingerprint"][:16] in out
    assert f"jax {metadata['facts']['versions']['jax']}" in out
    (_, *first), *_, (_, *last) = metadata["history"]
    training, validation = (f"{before:.3f} -> {after:.3f}" for before, after in zip(first, last, strict=True))
    assert facts["losses"].strip() == f"training {training}, validation {validation}"
    assert facts["best step"].strip() == str(metadata["best_step"]).replace("None", "not kept")


@pytest.mark.slow
def test_evaluate_from_a_checkpoint(cli, trained, tmp_path, evaluate):
    out = tmp_path / "dre.json"
    command = evaluate("dre", checkpoints=trained, seeds="test0,test1", epochs=1, out=out)
    status, printed, error = cli(*command)
    assert status == 0
    n_tasks = len(bundled.load("svm").test)
    assert f"evaluate dre: 0/{2 * n_tasks} runs" in error
    assert f"evaluate dre: {2 * n_tasks}/{2 * n_tasks} runs" in error
    traces = [trace for *_, trace in read_results(out).runs()]
    assert len(traces) == 2 * n_tasks
    assert {len(trace) for trace in traces} == {3}
    mean = np.mean([1 - trace[2] for trace in traces])
    facts = f"dre: {2 * n_tasks} runs, mean regret {mean:.4f} at 2 trials, saved in {out}\n"
    assert printed == facts
    assert cli(*command, "--quiet") == (0, facts, "")


def test_methods(cli):
    status, out, error = cli("methods")
    assert (status, error) == (0, "")
    assert {"name", "dre", "dre-ri", "dre-no-finetune", "random"} <= {line.split()[0] for line in out.splitlines()}
    assert "hedged-prior (recommended)" in out
    assert cli("methods", "recommended")[1] == cli("methods", "hedged-prior")[1]
    lines = cli("methods", "gp")[1].splitlines()
    assert lines[0] == "--epochs sets fitting.steps"
    options = {"--acquisition sets acquisition.kind", "--set acquisition.kind=ei", "--set fitting.priors=true"}
    assert options <= set(lines)
    assert cli("methods", "tpe")[1] == "--set multivariate=false\n--set startup=10\n"
    assert cli("methods", "random")[1] == "random takes no settings\n"
    assert "did you mean gp?" in cli("methods", "gpp")[2]


THREADS = """
from dre_jax.runtime.setup import prepare
from threadpoolctl import threadpool_info
prepare()
print({library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"})
"""


@pytest.mark.multiprocess
@pytest.mark.parametrize("variable", [None, pytest.param("3", marks=pytest.mark.thorough)])
def test_factorisations_take_one_thread(variable):
    """The libraries are loaded before a command begins, so that the environment alone would come too late."""
    assert run_python(THREADS, OPENBLAS_NUM_THREADS=variable).stdout == f"{{{variable or 1}}}\n"
