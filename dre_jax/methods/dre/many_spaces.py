"""Meta-training of several search spaces side by side: one space leaves most of an accelerator idle.

Tables, parameters and moments are padded to the widest space and the longest table. Lists depend on the key and the
step alone, and padding is zero and stays zero, so each space learns the same as alone.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.data.spaces import Task
from dre_jax.data.tasks import TaskTable, build_host_table
from dre_jax.methods.dre import trainer
from dre_jax.methods.dre.mesh import mesh_for
from dre_jax.methods.dre.model.ensemble import drop_columns, pad_ensemble
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.state import LossEntry, TrainingRun, TrainState
from dre_jax.methods.dre.steps import evaluate_side_by_side, start, train_side_by_side
from dre_jax.methods.dre.stream import must_stream
from dre_jax.methods.dre.training_checkpoint import ResumableTraining
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.optim.adam import Moments
from dre_jax.runtime.devices import local


class SpaceTraining(NamedTuple):
    """A search space to train on; see `dre_jax.methods.dre.trainer.meta_train`."""

    space: SearchSpace
    folder: str | Path | None = None
    """Folder of checkpoints; None writes none."""
    owner: Mapping[str, Any] | None = None
    """The method that the ensemble is trained for; see `ResumableTraining`."""


def gains_side_by_side() -> bool:
    """Returns whether a device of this process trains several spaces faster than one: not a CPU, which is busy."""
    return local()[0].platform != "cpu"


def runs_side_by_side(trainings: Sequence[SpaceTraining], model: ModelConfig, config: MetaTrainConfig) -> bool:
    """Returns whether spaces are trained side by side: on one accelerator, if their padded tables fit in its memory."""
    if len(trainings) < 2 or not gains_side_by_side() or mesh_for(model, config.lists_per_step) is not None:
        return False
    tables = [tasks for training in trainings for tasks in (training.space.train, training.space.validation)]
    longest = max(tables, key=lambda tasks: sum(task.n_rows for task in tasks.values()))
    return not must_stream(*[longest] * len(tables))


def meta_train_side_by_side(
    trainings: Sequence[SpaceTraining],
    model: ModelConfig,
    config: MetaTrainConfig,
    *,
    key: Array,
    report: Callable[[trainer.TrainingProgress], None] | None = None,
) -> list[trainer.MetaTrainingResult]:
    """Meta-trains an ensemble a search space, all of them in each compiled call.

    Checkpoints, resumption and losses of each space are those of `dre_jax.methods.dre.trainer.meta_train`. The spaces
    may differ in columns, tasks and rows. ``report`` gets the progress of the space that is furthest behind. Raises
    `DataError` without training tasks, or with patience but without validation tasks, and `CheckpointError` where a
    folder holds the checkpoint of another training; the message says what differs.
    """
    for training in trainings:
        trainer.check_patience(config, training.space)
    batch = _Batch(trainings, model, config, key)
    batch.measure([i for i, run in enumerate(batch.runs) if not run.history])
    while unfinished := [i for i, run in enumerate(batch.runs) if not trainer.is_finished(run, config)]:
        count = min(trainer.next_portion(config, batch.steps[i]) for i in unfinished)
        losses = batch.train(count)
        if report:
            behind = min(unfinished, key=lambda i: batch.steps[i])
            resumed_from = batch.runs[behind].resumed_from
            report(trainer.TrainingProgress(batch.steps[behind], config.steps, float(losses[behind]), resumed_from))
        ends = [step % config.evaluate_every == 0 or step == config.steps for step in batch.steps]
        batch.measure([i for i in unfinished if ends[i]])
    return [
        trainer.MetaTrainingResult(run.params, int(run.state.step), run.history, run.resumed_from) for run in batch.runs
    ]


class _Batch:
    """The trainings of several search spaces, padded. Finished ones continue, but their steps are discarded."""

    def __init__(
        self, trainings: Sequence[SpaceTraining], model: ModelConfig, config: MetaTrainConfig, key: Array
    ) -> None:
        self._model, self._config, self._key = model, config, key
        spaces = [training.space for training in trainings]
        self._columns = [space.n_columns for space in spaces]
        self._has_validation = [bool(space.validation) for space in spaces]
        self._tables = stack_tables([space.require_train_tasks() for space in spaces])
        # A space without validation tasks has the first of its training tasks there; the loss is not used.
        self._validation = None
        if any(self._has_validation):
            tasks = [space.validation or dict(list(space.train.items())[:1]) for space in spaces]
            self._validation = stack_tables(tasks)
        self._checkpoints: list[ResumableTraining | None] = [
            None
            if training.folder is None
            else ResumableTraining(training.folder, training.space, model, config, key, training.owner)
            for training in trainings
        ]
        resumed = [None if checkpoint is None else checkpoint.resume() for checkpoint in self._checkpoints]
        self.runs = [
            run or TrainingRun(start(model, config, columns, key))
            for run, columns in zip(resumed, self._columns, strict=True)
        ]
        self.steps = [int(run.state.step) for run in self.runs]
        width = max(self._columns)
        states = [_pad(run.state, n, width) for run, n in zip(self.runs, self._columns, strict=True)]
        self._states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    def train(self, count: int) -> Array:
        """Does steps in all spaces; returns the mean loss of each."""
        model, config = self._model, self._config
        self._states, losses = train_side_by_side(model, config, self._tables, self._states, self._key, count)
        self.steps = [step + count for step in self.steps]
        return jnp.mean(losses, axis=1)

    def measure(self, numbers: Sequence[int]) -> None:
        """Adds an entry to the history of each of some spaces from its current state, and saves a checkpoint."""
        if not numbers:
            return
        train = self._evaluate(self._tables)
        validation = None if self._validation is None else self._evaluate(self._validation)
        for i in numbers:
            run, checkpoint = self.runs[i], self._checkpoints[i]
            state = jax.tree.map(lambda leaf, i=i: leaf[i], self._states)
            run.state = _unpad(state, self._columns[i], max(self._columns))
            loss = None if validation is None or not self._has_validation[i] else float(validation[i])
            entry = LossEntry(int(run.state.step), float(train[i]), loss)
            trainer.record_entry(run, entry, self._config)
            if checkpoint:
                checkpoint.save(run)

    def _evaluate(self, tables: TaskTable) -> np.ndarray:
        return np.asarray(evaluate_side_by_side(self._model, self._config, tables, self._states.params, self._key))


def stack_tables(tasks_of_spaces: Sequence[Mapping[str, Task]]) -> TaskTable:
    """Returns the tables of search spaces, padded to one size, with the spaces in front."""
    tables = [build_host_table(tasks) for tasks in tasks_of_spaces]

    def stack(*leaves: Any) -> np.ndarray:
        result = np.zeros((len(leaves), *map(max, zip(*map(np.shape, leaves), strict=True))), leaves[0].dtype)
        for i, leaf in enumerate(leaves):
            index: tuple[Any, ...] = (i, *map(slice, leaf.shape))
            result[index] = leaf
        return result

    return jax.device_put(jax.tree.map(stack, *tables))


def _pad(state: TrainState, n_columns: int, width: int) -> TrainState:
    trees = state.params, *state.moments
    params, *moments = (pad_ensemble(tree, n_columns, width) for tree in trees)
    return TrainState(params, Moments(*moments), state.step)


def _unpad(state: TrainState, n_columns: int, width: int) -> TrainState:
    trees = state.params, *state.moments
    params, *moments = (drop_columns(tree, n_columns, width) for tree in trees)
    return TrainState(params, Moments(*moments), state.step)
