"""Checkpoints: what is broken is refused in a line. No training: states are made up; test_trainer resumes from some."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dre_jax import CheckpointError, LossConfig, MetaTrainConfig, ModelConfig, SearchSpace, Task
from dre_jax.methods.dre.state import LossEntry, TrainingRun
from dre_jax.methods.dre.steps import TrainState, start
from dre_jax.methods.dre.training_checkpoint import ResumableTraining, TrainingCheckpoint
from tests.error_messages import raises_line
from tests.methods.conftest import assert_same

MODEL = ModelConfig(members=2, hidden=(4, 3), phi=(4,), rho=(4, 2))
CONFIG = MetaTrainConfig(steps=100, evaluate_every=10, loss=LossConfig(weights="none"), patience=3)
SPACE = SearchSpace("svm", train={"a": Task("a", np.zeros((2, 3), np.float32), np.arange(2.0))})
HISTORY = [LossEntry(0, 5.25, 5.5), LossEntry(40, 4.125, None)]


def make_state(step=40, seed=0):
    """A state in which every number is another one."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda: start(MODEL, CONFIG, 3, jax.random.key(0)))
    drawn = jax.tree.map(lambda a: jnp.asarray(rng.standard_normal(a.shape), a.dtype), shapes)
    return TrainState(drawn.params, drawn.moments, jnp.int32(step))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Two steps; treat as read-only."""
    folder = tmp_path_factory.mktemp("saved")
    training = ResumableTraining(folder, SPACE, MODEL, CONFIG, jax.random.key(5))
    for state in (make_state(30), make_state(40, seed=1)):
        training.save(TrainingRun(state, HISTORY, make_state(seed=9).params, 20))
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def test_the_copies_for_people(saved):
    assert json.loads((saved / "metadata.json").read_text()) == TrainingCheckpoint(saved).metadata()
    expected = ["step,train_loss,validation_loss", "0,5.250000,5.500000", "40,4.125000,"]
    assert (saved / "losses.csv").read_text().splitlines() == expected


BREAKAGES = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "garbled": lambda content: bytes(255 - byte for byte in content),
    "one bit": lambda content: bytes([*content[:-1], content[-1] ^ 1]) if content else b"1",
}


@pytest.mark.parametrize("breakage", [*BREAKAGES, "missing"])
def test_broken_files(saved, copy, breakage):
    """Every file of the last step in turn: either it is refused in a line, or all that is read is right."""
    good = TrainingCheckpoint(saved).load().state
    refused = []
    for path in sorted(path for path in (copy / "steps" / "40").rglob("*") if path.is_file()):
        content = path.read_bytes()
        if breakage == "missing":
            path.unlink()
        else:
            path.write_bytes(BREAKAGES[breakage](content))
        try:
            assert_same(TrainingCheckpoint(copy).load().state, good)
        except CheckpointError as error:
            lines = str(error).splitlines()
            assert [str(copy) in line for line in lines] == [True]
            refused.append(path.relative_to(copy / "steps" / "40").parts[0])
        path.write_bytes(content)
    assert {"arrays", "metadata"} <= set(refused)
    assert_same(TrainingCheckpoint(copy).load().state, good)


def test_the_step_before_a_damaged_one(copy):
    damaged = copy / "steps" / "40" / "arrays" / "manifest.ocdbt"
    damaged.write_bytes(b"")
    with raises_line(CheckpointError, str(damaged), f"remove {copy / 'steps' / '40'} to use the step before"):
        TrainingCheckpoint(copy).load()
    shutil.rmtree(copy / "steps" / "40")
    assert_same(TrainingCheckpoint(copy).load().state, make_state(step=30))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"format": 999}', b"{", b"null", b'{"format": 1}'])
def test_metadata_that_is_not_ours(copy, content):
    (copy / "steps" / "40" / "metadata" / "metadata").write_bytes(content)
    (copy / "steps" / "40" / "digests.json").unlink()
    with raises_line(CheckpointError, str(copy)):
        TrainingCheckpoint(copy).load()


OTHER_SIZES = "best.scorers.hidden_0_bias ([2, 5] here, [2, 4] in the checkpoint)"


@pytest.mark.parametrize(
    ("changed", "named"),
    [({"layers_of_tomorrow": 3}, "layers_of_tomorrow"), ({"hidden": [5, 3]}, OTHER_SIZES)],
    ids=["another version", "other sizes than the arrays have"],
)
def test_a_configuration_that_does_not_fit(copy, rewrite, changed, named):
    rewrite(copy / "steps", lambda metadata: metadata["configuration"]["model"].update(changed))
    with raises_line(CheckpointError, str(copy), named):
        TrainingCheckpoint(copy).load()
