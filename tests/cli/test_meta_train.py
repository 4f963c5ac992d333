"""``dre-jax meta-train`` and ``info`` for methods that are more than a ranking ensemble, or none."""

import json
import re

import pytest

from dre_jax.data import bundled
from dre_jax.methods.fitted import load_fitted
from dre_jax.tuning import Surrogate

QUICK = ["--set", "members.1.meta_training.steps=4", "--set", "members.0.training.evaluation_lists=2"]


@pytest.fixture
def meta_train(cli, data, tmp_path):
    return lambda *more: cli("meta-train", "--data", data, "--space", "svm", "--out", tmp_path / "root", *more)


def test_the_recommended_method(meta_train, cli, tmp_path):
    folder = tmp_path / "root" / "svm"
    status, out, error = meta_train("--steps", 4, *QUICK)
    assert status == 0, error
    count = len(bundled.load("svm").train)
    line = rf"svm: committee fitted to {count} tasks, 4 steps, training loss [\d.]+, validation loss [\d.]+, saved in "
    assert re.fullmatch(line + re.escape(f"{folder}\n"), out)
    assert "meta-train svm: 4/4 steps" in error
    assert "meta-train svm: fitting committee\n" in error
    assert json.loads((folder / "metadata.json").read_text())["method"] == "committee"
    assert meta_train("--steps", 4, *QUICK, "--quiet") == (0, out, "")  # all is there
    # The folder is a surrogate of the space that the data describe.
    surrogate = Surrogate.load(folder)
    assert surrogate.space["degree"].high == 5
    assert len(surrogate.start) == 4
    status, out, _ = cli("info", folder)
    told = dict(line.split("  ", 1) for line in out.splitlines())
    told = {name: text.strip() for name, text in told.items()}
    assert (status, told["method"], told["search space"]) == (0, "committee", "svm, 14 columns")
    assert told["members.1.meta_training.steps"] == "4"
    assert told["training data"].startswith(f"{count} tasks, fingerprint ")
    assert "log float: C" in told["columns"]
    assert "level: kernel.ohe._" in told["columns"]


def test_a_method_that_is_fitted_at_once(meta_train, tmp_path):
    status, out, error = meta_train("--method", "gcp-ts", "--set", "prior.steps=20")
    folder = tmp_path / "root" / "svm"
    assert (status, error) == (0, "meta-train svm: fitting gcp-ts\n")
    assert out == f"svm: gcp-ts fitted to {len(bundled.load('svm').train)} tasks, saved in {folder}\n"
    assert load_fitted(folder).method.prior.steps == 20
    status, out, error = meta_train("--method", "gcp-ts", "--set", "prior.steps=21")
    assert status == 2
    assert "holds another training: prior.steps (21 here, 20 in the checkpoint)" in error


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--method", "fsbo", "--steps", 5], "--steps train a ranking ensemble, but fsbo has none"),
        (["--method", "random"], "but random learns nothing"),
        (["--method", "recomended"], "did you mean recommended?"),
        (["--method", "gcp", "--set", "prior.stepz=5"], "gcp takes "),
    ],
)
def test_refused(meta_train, tmp_path, given, said):
    status, out, error = meta_train(*given)
    assert (status, out) == (2, "")
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "root").exists()
