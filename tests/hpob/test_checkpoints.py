"""Evaluations that start from checkpoints: which one, what the result file says of it, and search spaces together."""

import dataclasses
from functools import partial

import jax
import numpy as np
import pytest

from dre_jax import DRE, CheckpointError, DataError, FineTuneConfig
from dre_jax.data import fingerprint, read_results
from dre_jax.hpob import Evaluation, Plan, evaluation, run_hpob
from dre_jax.hpob.compiled_runs import CompiledRunner
from dre_jax.methods.checkpoints.meta_training import meta_train_method
from dre_jax.search import ExecutionConfig, batch
from tests.known_methods import quick_method


@pytest.fixture
def plan(data, checkpoints):
    options = {"data": data, "spaces": ("s", "t"), "checkpoints": checkpoints, "trials": 1, "seeds": ("test0",)}
    return Plan(method="dre-no-finetune", **options)


@pytest.mark.slow
def test_the_result_file_names_the_checkpoints(plan, tmp_path, spaces, save_checkpoint, content):
    out, by_space = tmp_path / "dre.json", tmp_path / "by-space.json"
    assert len(list(Evaluation(plan, out))) == 6
    # Search spaces are added to a file with their checkpoints.
    for name in ("s", "t", "s"):
        list(Evaluation(dataclasses.replace(plan, spaces=(name,)), by_space))
    assert content(by_space) == content(out)
    facts = content(out)["_meta"]["checkpoints"]["s"]
    assert (facts["step"], facts["fingerprint"]) == (0, fingerprint(spaces["s"]))
    # The same file and a checkpoint that was trained further are not the same evaluation.
    for name in ("s", "t"):
        save_checkpoint(tmp_path / "further" / name, spaces[name], step=7)
    with pytest.raises(DataError, match="checkpoints"):
        Evaluation(dataclasses.replace(plan, checkpoints=tmp_path / "further"), out)


@pytest.mark.thorough
def test_search_spaces_as_one_program(plan, tmp_path, monkeypatch, content):
    own_plan = dataclasses.replace(plan, spaces=("s", "wide"), seeds=None)
    assert len(list(Evaluation(own_plan, tmp_path / "apart.json"))) == 18
    accelerator = partial(CompiledRunner, config=ExecutionConfig(side_by_side=True))
    monkeypatch.setattr(evaluation, "CompiledRunner", accelerator)
    sizes, run_grid = [], batch.run_grid
    monkeypatch.setattr(batch, "run_grid", lambda *a: sizes.append(len(a[2].designs)) or run_grid(*a))
    together = Evaluation(own_plan, tmp_path / "together.json")
    assert next(iter(together)).space == "s"
    assert len(list(together)) == 17
    # All tasks of both at once; then what is missing: two designs of one task, and three of five.
    assert sizes == [6, 1, 5]
    assert content(tmp_path / "together.json") == content(tmp_path / "apart.json")
    # One that is fitted anew reads the training tables, and goes space by space.
    assert not accelerator(dataclasses.replace(own_plan, checkpoints=None), {"s": None}).together


@pytest.mark.slow
def test_a_method_as_an_object(plan, tmp_path):
    """A DRE of one's own takes weights and sizes from the checkpoint, everything else from the object and settings."""
    own_plan = {"spaces": ["s"], "trials": 1, "seeds": ["test0"], "checkpoints": plan.checkpoints}
    method, settings = DRE(fine_tuning=FineTuneConfig(epochs=0)), {"acquisition.beta": 2.0}
    by_object = run_hpob(method, plan.data, tmp_path / "object.json", settings=settings, **own_plan)
    by_name = run_hpob("dre-no-finetune", plan.data, tmp_path / "name.json", settings=settings, **own_plan)
    assert by_object.meta["method"] == "DRE"
    assert by_object.meta["configuration"] == by_name.meta["configuration"]
    assert by_object.meta["configuration"]["model"]["members"] == 2
    assert by_object.meta["configuration"]["acquisition"]["beta"] == 2.0
    for (*_, ours), (*_, theirs) in zip(by_object.runs(), by_name.runs(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_checkpoint_that_changes_under_way(plan, tmp_path, spaces, save_checkpoint):
    for name in ("s", "t"):
        save_checkpoint(tmp_path / "moving" / name, spaces[name])
    runs = iter(Evaluation(dataclasses.replace(plan, checkpoints=tmp_path / "moving"), tmp_path / "a.json"))
    next(runs)
    save_checkpoint(tmp_path / "moving" / "t", spaces["t"], step=5)
    with pytest.raises(CheckpointError, match=r"t has changed \(step 5, was 0\)"):
        list(runs)
    assert set(read_results(tmp_path / "a.json").traces) == {"s"}


@pytest.mark.slow
def test_the_ensemble_of_another_method(plan, spaces, tmp_path, content):
    """Whoever reads ensembles starts from it, with its sizes; others are told what is there."""
    folder = tmp_path / "pairwise"
    meta_train_method("pairwise", quick_method("pairwise"), spaces["s"], key=jax.random.key(0), folder=folder / "s")
    own_plan = dataclasses.replace(plan, spaces=("s",), checkpoints=folder)
    assert len(list(Evaluation(own_plan, tmp_path / "a.json"))) == 3
    meta = content(tmp_path / "a.json")["_meta"]
    assert (meta["method"], meta["checkpoints"]["s"]["method"]) == ("dre-no-finetune", "pairwise")
    assert meta["configuration"]["model"]["hidden"] == [4]
    assert meta["configuration"]["training"]["steps"] == 4
    with pytest.raises(CheckpointError, match=r"fsbo cannot start from .*/s, which holds pairwise"):
        Evaluation(dataclasses.replace(own_plan, method="fsbo"), tmp_path / "b.json")
