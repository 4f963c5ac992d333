"""Checkpoints: what goes in comes out, and what is broken is refused in a line. No training: states are made up."""

import dataclasses
import json
import pickle
import shutil
from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from dre_jax.errors import CheckpointError
from dre_jax.methods.dre.checkpoint import (
    Checkpoint,
    describe,
    differences,
    load_params,
    model_config,
    training_config,
)
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.steps import TrainState, start
from dre_jax.methods.dre.training_config import LossConfig, MetaTrainConfig

MODEL = ModelConfig(members=2, hidden=(4, 3), phi=(4,), rho=(4, 2))
CONFIG = MetaTrainConfig(steps=100, evaluate_every=10, loss=LossConfig(weights="none"), patience=3)


def make_state(model=MODEL, step=40, seed=0):
    """A state in which every number is another one."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda: start(model, CONFIG, 3, jax.random.key(0)))
    drawn = jax.tree.map(lambda a: jnp.asarray(rng.standard_normal(a.shape), a.dtype), shapes)
    return TrainState(drawn.params, drawn.moments, jnp.int32(step))


def make_metadata(model=MODEL, best_step=None, **changed):
    facts = describe(space="svm", n_columns=3, model=model, config=CONFIG, key=jax.random.key(5), fingerprint="f" * 64)
    history = [[0, 5.25, 5.5], [40, 4.125, None]]
    return {**facts, "history": history, "best_step": best_step, "versions": {"jax": jax.__version__}, **changed}


assert_same = partial(chex.assert_trees_all_equal, strict=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Two steps; treat as read-only."""
    folder = tmp_path_factory.mktemp("saved")
    best = make_state(seed=9).params
    Checkpoint(folder).save(make_state(step=30), best, make_metadata(best_step=20))
    Checkpoint(folder).save(make_state(step=40, seed=1), best, make_metadata(best_step=20))
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def message_of(call, *arguments, **named):
    """The line in which something is refused; None if it is not."""
    try:
        call(*arguments, **named)
    except CheckpointError as error:
        message = str(error)
    else:
        return None
    assert "\n" not in message
    return message


@pytest.mark.parametrize("context", ["own", "shared", "none"])
@pytest.mark.parametrize("with_best", [False, True])
def test_round_trip(tmp_path, context, with_best):
    model = dataclasses.replace(MODEL, context=context)
    state = make_state(model)
    best = make_state(model, seed=1).params if with_best else None
    metadata = make_metadata(model, best_step=20 if with_best else None)
    Checkpoint(tmp_path).save(state, best, metadata)
    found = Checkpoint(tmp_path).load()
    assert_same(found.state, state)
    assert_same(found.best, best)
    assert (found.state.params.deep_set is None) == (context == "none")
    params, described = load_params(tmp_path)
    assert_same(params, best if with_best else state.params)
    arrays = described.pop("arrays")
    assert described == {**json.loads(json.dumps(metadata)), "step": 40}
    assert arrays["state.params.scorers.hidden_1_kernel"] == [2, 4, 3]
    assert ("best.scorers.hidden_1_kernel" in arrays) == with_best
    assert model_config(described) == model
    assert training_config(described) == CONFIG


def test_the_copies_for_people(saved):
    assert json.loads((saved / "metadata.json").read_text()) == Checkpoint(saved).metadata()
    expected = ["step,train_loss,validation_loss", "0,5.250000,5.500000", "40,4.125000,"]
    assert (saved / "losses.csv").read_text().splitlines() == expected


@pytest.mark.parametrize("times", [1, 10**9])
def test_a_step_that_vanishes_while_it_is_looked_at(saved, monkeypatch, times):
    manager, left = ocp.CheckpointManager, [times]

    def vanishing(*args, **kwargs):
        left[0] -= 1
        if left[0] >= 0:
            raise FileNotFoundError("steps/0")
        return manager(*args, **kwargs)

    monkeypatch.setattr(ocp, "CheckpointManager", vanishing)
    message = message_of(Checkpoint(saved).latest_step)
    assert message is None if times == 1 else "changes while it is read" in message


def test_saving_a_step_again_replaces_it(copy):
    # Whoever goes on at 30 after 40 was lost comes to 40 once more.
    state = make_state(step=50, seed=4)
    for seed in (3, 4):
        shutil.rmtree(copy / "steps" / "50", ignore_errors=True)
        Checkpoint(copy).save(make_state(step=50, seed=seed), None, make_metadata())
    assert_same(Checkpoint(copy).load().state, state)


def test_no_pickles(saved):
    files = [path for path in saved.rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        # What ends its first frame without an error is one.
        with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError)):
            pickle.loads(path.read_bytes())


BREAKAGES = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "garbled": lambda content: bytes(255 - byte for byte in content),
    "one bit": lambda content: bytes([*content[:-1], content[-1] ^ 1]) if content else b"1",
}


@pytest.mark.parametrize("breakage", [*BREAKAGES, "missing"])
def test_broken_files(saved, copy, breakage):
    """Every file of the last step in turn: either it is refused in a line, or all that is read is right."""
    good = Checkpoint(saved).load()
    refused = []
    for path in sorted(path for path in (copy / "steps" / "40").rglob("*") if path.is_file()):
        content = path.read_bytes()
        if breakage == "missing":
            path.unlink()
        else:
            path.write_bytes(BREAKAGES[breakage](content))
        message = message_of(Checkpoint(copy).load)
        if message is None:
            assert_same(Checkpoint(copy).load(), good)
        else:
            assert str(copy) in message
            refused.append(path.relative_to(copy / "steps" / "40").parts[0])
        path.write_bytes(content)
    assert {"arrays", "metadata"} <= set(refused)
    assert_same(Checkpoint(copy).load(), good)


def test_the_step_before_a_damaged_one(copy):
    damaged = copy / "steps" / "40" / "arrays" / "manifest.ocdbt"
    damaged.write_bytes(b"")
    message = message_of(Checkpoint(copy).load)
    assert str(damaged) in message
    assert f"remove {copy / 'steps' / '40'} to use the step before" in message
    shutil.rmtree(copy / "steps" / "40")
    assert_same(Checkpoint(copy).load().state, make_state(step=30))


def test_killed_before_the_digests(copy):
    """A process that died between a step and its digests leaves a step that is whole."""
    (copy / "steps" / "40" / "digests.json").unlink()
    assert_same(Checkpoint(copy).load().state, make_state(step=40, seed=1))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 999}', b"{", b"null", b'{"format": 1}'])
def test_metadata_that_is_not_ours(copy, content):
    (copy / "steps" / "40" / "metadata" / "metadata").write_bytes(content)
    (copy / "steps" / "40" / "digests.json").unlink()
    assert str(copy) in message_of(Checkpoint(copy).load)


OTHER_SIZES = "state.params.scorers.hidden_0_kernel ([2, 5, 5] here, [2, 5, 4] in the checkpoint)"


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"layers_of_tomorrow": 3}, "layers_of_tomorrow"), ({"hidden": [5, 3]}, OTHER_SIZES)],
    ids=["another version", "other sizes than the arrays have"],
)
def test_a_configuration_that_does_not_fit(tmp_path, changed, named):
    metadata = make_metadata()
    Checkpoint(tmp_path).save(make_state(), None, metadata | {"model": metadata["model"] | changed})
    message = message_of(Checkpoint(tmp_path).load)
    assert str(tmp_path) in message
    assert named in message


@pytest.mark.parametrize("made", [(), ("",), ("steps",), ("steps/40",)])
def test_nothing_there(tmp_path, made):
    for name in made:
        (tmp_path / "a" / name).mkdir(parents=True)
    assert str(tmp_path / "a") in message_of(Checkpoint(tmp_path / "a").load)


def test_a_step_that_was_being_written_is_no_step(saved, copy):
    """What a killed process leaves: Orbax writes beside, and renames."""
    half = copy / "steps" / "50.orbax-checkpoint-tmp"
    shutil.copytree(copy / "steps" / "40", half)
    shutil.rmtree(half / "metadata")
    (copy / ".metadata.json.17-ab.tmp").write_text('{"half')
    assert Checkpoint(copy).latest_step() == 40
    assert_same(Checkpoint(copy).load(), Checkpoint(saved).load())
    Checkpoint(copy).save(make_state(step=50), None, make_metadata())
    assert sorted(path.name for path in (copy / "steps").iterdir()) == ["40", "50"]
    assert sorted(path.name for path in copy.iterdir()) == ["losses.csv", "metadata.json", "steps"]
    assert_same(Checkpoint(copy).load().state, make_state(step=50))


@pytest.mark.parametrize("occupied", ["", "steps"])
def test_a_folder_that_cannot_be_written(tmp_path, occupied):
    folder = tmp_path / "a"
    (folder / occupied).parent.mkdir(exist_ok=True)
    (folder / occupied).write_text("a file where a folder should be")
    assert str(folder) in message_of(Checkpoint(folder).save, make_state(), None, make_metadata())


def test_load_params_refuses_what_does_not_fit(saved):
    load_params(saved, space="svm", n_columns=3)
    for wanted, named in (
        ({"space": "xgboost"}, "space (xgboost here, svm in the checkpoint)"),
        ({"n_columns": 4}, "columns (4 here, 3 in the checkpoint)"),
    ):
        message = message_of(load_params, saved, **wanted)
        assert named in message
        assert str(saved) in message


def test_differences():
    ours = {"a": 1, "b": {"c": (1, 2), "d": 2}, "e": "x" * 64}
    assert differences(ours, {"a": 1, "b": {"c": [1, 2], "d": 2}, "e": "x" * 64, "more": 0}) == []
    found = differences(ours, {"a": 2, "b": {"c": [1, 3], "d": 2}})
    assert [phrase.split(" ")[0] for phrase in found] == ["a", "b.c", "e"]
    assert "x" * 25 not in found[2]
