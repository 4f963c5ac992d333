"""Evaluations that start from checkpoints: which one, what the result file says of it, and search spaces together."""

import dataclasses
from functools import partial

import numpy as np
import pytest

from dre_jax.benchmark import Evaluation, Plan, evaluation, run_hpob
from dre_jax.benchmark.compiled_runs import CompiledRunner
from dre_jax.data import fingerprint, read_results
from dre_jax.errors import CheckpointError, ConfigError, DataError
from dre_jax.methods import DRE
from dre_jax.search import BatchConfig, batch
from dre_jax.training import FineTuneConfig
from dre_jax.training.checkpoint import Checkpoint


@pytest.fixture
def plan(data, checkpoints):
    return Plan(
        data=data, spaces=("s", "t"), method="dre-no-finetune", checkpoints=checkpoints, trials=1, seeds=("test0",)
    )


def test_what_the_file_says(plan, tmp_path, spaces, save_checkpoint, content):
    out = tmp_path / "dre.json"
    assert len(list(Evaluation(plan, out))) == 6
    facts = content(out)["_meta"]["checkpoints"]["s"]
    assert (facts["step"], facts["fingerprint"]) == (0, fingerprint(spaces["s"]))
    # The same file and a checkpoint that was trained further are not the same evaluation.
    for name in ("s", "t"):
        save_checkpoint(tmp_path / "further" / name, spaces[name], step=7)
    with pytest.raises(DataError, match="checkpoints"):
        Evaluation(dataclasses.replace(plan, checkpoints=tmp_path / "further"), out)


@pytest.mark.thorough
def test_search_spaces_as_one_program(plan, tmp_path, monkeypatch, content):
    given = dataclasses.replace(plan, spaces=("s", "wide"), seeds=None)
    assert len(list(Evaluation(given, tmp_path / "apart.json"))) == 18
    accelerator = partial(CompiledRunner, config=BatchConfig(side_by_side=True))
    monkeypatch.setattr(evaluation, "CompiledRunner", accelerator)
    sizes, run_grid = [], batch.run_grid
    monkeypatch.setattr(batch, "run_grid", lambda *a: sizes.append(len(a[2].x)) or run_grid(*a))
    together = Evaluation(given, tmp_path / "together.json")
    assert next(iter(together)).space == "s"
    assert len(list(together)) == 17
    # All tasks of both at once; then what is missing: two designs of one task, and three of five.
    assert sizes == [6, 1, 5]
    assert content(tmp_path / "together.json") == content(tmp_path / "apart.json")
    # One that is fitted anew reads the training tables, and goes space by space.
    assert not accelerator(dataclasses.replace(given, checkpoints=None), {"s": None}).together


def test_checkpoints_that_are_missing_or_of_another_space(plan, tmp_path, checkpoints):
    out = tmp_path / "dre.json"
    with pytest.raises(CheckpointError, match="must hold a checkpoint"):
        Evaluation(dataclasses.replace(plan, checkpoints=tmp_path / "nowhere"), out)
    (tmp_path / "swapped").mkdir()
    (tmp_path / "swapped" / "s").symlink_to(checkpoints / "wide")
    with pytest.raises(CheckpointError) as caught:
        Evaluation(dataclasses.replace(plan, spaces=("s",), checkpoints=tmp_path / "swapped"), out)
    assert "space (s here, wide in the checkpoint)" in str(caught.value)
    assert "columns (2 here, 3 in the checkpoint)" in str(caught.value)
    with pytest.raises(ConfigError, match="the checkpoint decides on model, training, transfer, but got model"):
        Evaluation(dataclasses.replace(plan, settings={"model.members": 3}), out)
    assert not out.exists()


def test_described_once_and_no_training_data_needed(plan, tmp_path, monkeypatch):
    for name in ("meta-test-dataset", "bo-initializations"):
        (tmp_path / f"{name}.json").write_bytes((plan.data / f"{name}.json").read_bytes())
    described = []
    real = Checkpoint.metadata
    monkeypatch.setattr(Checkpoint, "metadata", lambda self: described.append(self.folder.name) or real(self))
    found = Evaluation(dataclasses.replace(plan, data=tmp_path), tmp_path / "a.json")
    assert described == ["s", "t"]
    assert len(list(found)) == found.total == 6
    # Loading reads the description that lies beside the arrays: it must be the one that the file tells of.
    assert described == ["s", "t"] * 2


def test_a_method_as_an_object(plan, tmp_path):
    """A DRE of one's own takes weights and sizes from the checkpoint, everything else from the object and settings."""
    given = {"spaces": ["s"], "trials": 1, "seeds": ["test0"], "checkpoints": plan.checkpoints}
    method, settings = DRE(fine_tuning=FineTuneConfig(epochs=0)), {"acquisition.beta": 2.0}
    by_object = run_hpob(method, plan.data, tmp_path / "object.json", settings=settings, **given)
    by_name = run_hpob("dre-no-finetune", plan.data, tmp_path / "name.json", settings=settings, **given)
    assert by_object.meta["method"] == "DRE"
    assert by_object.meta["configuration"] == by_name.meta["configuration"]
    assert by_object.meta["configuration"]["model"]["members"] == 2
    assert by_object.meta["configuration"]["acquisition"]["beta"] == 2.0
    for (*_, ours), (*_, theirs) in zip(by_object.runs(), by_name.runs(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_spaces_are_added_to_a_file_with_their_checkpoints(plan, tmp_path, content):
    both, out = tmp_path / "both.json", tmp_path / "out.json"
    list(Evaluation(plan, both))
    for name in ("s", "t", "s"):
        list(Evaluation(dataclasses.replace(plan, spaces=(name,)), out))
    assert content(out) == content(both)


def test_a_checkpoint_that_changes_under_way(plan, tmp_path, spaces, save_checkpoint):
    for name in ("s", "t"):
        save_checkpoint(tmp_path / "moving" / name, spaces[name])
    runs = iter(Evaluation(dataclasses.replace(plan, checkpoints=tmp_path / "moving"), tmp_path / "a.json"))
    next(runs)
    save_checkpoint(tmp_path / "moving" / "t", spaces["t"], step=5)
    with pytest.raises(CheckpointError, match=r"t has changed \(step 5, was 0\)"):
        list(runs)
    assert set(read_results(tmp_path / "a.json").traces) == {"s"}
