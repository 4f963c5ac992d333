"""The loop of meta-training: portions of steps, losses on fixed lists, checkpoints, resumption."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh

from dre_jax.data import SearchSpace
from dre_jax.data.spaces import Task
from dre_jax.errors import DataError
from dre_jax.methods.dre.mesh import collect, mesh_for, put_on_first, replicate, spread
from dre_jax.methods.dre.model.ensemble import EnsembleParams
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.state import LossEntry, TrainingRun
from dre_jax.methods.dre.steps import evaluate, portion, start, train
from dre_jax.methods.dre.stream import Feed, ResidentFeed, StreamedFeed, must_stream
from dre_jax.methods.dre.training_checkpoint import ResumableTraining
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.optim.schedule import portion_length


class TrainingProgress(NamedTuple):
    """Progress of a training, as `report` receives it."""

    step: int
    steps: int
    loss: float
    """Mean training loss of the steps since the last report."""
    resumed_from: int | None
    """Step of the checkpoint from which training was resumed."""


@dataclass
class MetaTrainingResult:
    """The outcome of meta-training."""

    params: EnsembleParams
    """The best by validation loss if patience was set, else the last."""
    step: int
    """Steps done."""
    history: list[LossEntry]
    """Losses at step 0, at every interval, and at the end."""
    resumed_from: int | None = None
    """Step of the checkpoint from which training was resumed."""


def meta_train(
    space: SearchSpace,
    model: ModelConfig,
    config: MetaTrainConfig,
    *,
    key: Array,
    folder: str | Path | None = None,
    report: Callable[[TrainingProgress], None] | None = None,
    owner: Mapping[str, Any] | None = None,
    stream: bool | None = None,
) -> MetaTrainingResult:
    """Meta-trains an ensemble on the training tasks of a search space (the paper, Algorithm 1).

    With a folder, a checkpoint is written at every evaluation, and the same call resumes from the last one: a training
    that was killed ends with the same parameters as one that was not.

    Args:
      space: training tasks, and validation tasks for the loss history.
      model: sizes.
      config: settings of the training.
      key: PRNG key.
      folder: folder of checkpoints; None writes none.
      report: called after every portion of steps.
      owner: the method that the ensemble is trained for, which checkpoints keep; see `ResumableTraining`.
      stream: whether tables stay on the host, and the rows of drawn lists are sent to the devices ahead of their use.
        Otherwise tables lie on every device. None streams tables that take too much of a device's memory. Results do
        not depend on it. Tasks may be mapped from files (`numpy.load` with ``mmap_mode``).

    Raises:
      DataError: without training tasks.
      CheckpointError: where the folder holds the checkpoint of another training; the message says what differs.

    Example:
      >>> from dre_jax.data import bundled
      >>> config = MetaTrainConfig(steps=2, evaluate_every=2, n_query=5, n_support=2, evaluation_lists=2)
      >>> model = ModelConfig(members=2, hidden=(4,), phi=(4,), rho=(4,))
      >>> meta_train(bundled.load("svm"), model, config, key=jax.random.key(0)).history[-1].step
      2
    """
    tasks = space.require_train_tasks()
    mesh = mesh_for(model, config.lists_per_step)
    streams = must_stream(tasks, space.validation) if stream is None else stream

    def feed_of(tasks: Mapping[str, Task]) -> Feed:
        return StreamedFeed(model, config, key, mesh, tasks) if streams else ResidentFeed(mesh, tasks)

    feed = feed_of(tasks)
    check_patience(config, space)
    checkpoint = None if folder is None else ResumableTraining(folder, space, model, config, key, owner)
    validation = feed_of(space.validation) if space.validation else None
    run = checkpoint.resume() if checkpoint else None
    run = run or TrainingRun(start(model, config, space.n_columns, put_on_first(key)))
    for entry in _train(run, model, config, feed, validation, mesh, key, report):
        record_entry(run, entry, config)
        if checkpoint:
            checkpoint.save(run)
        if is_finished(run, config):
            break
    # Put on no particular device, so that callers may use them on any.
    params = jax.device_put(jax.tree.map(np.asarray, run.params))
    return MetaTrainingResult(params, int(run.state.step), run.history, run.resumed_from)


def _train(
    run: TrainingRun,
    model: ModelConfig,
    config: MetaTrainConfig,
    feed: Feed,
    validation: Feed | None,
    mesh: Mesh | None,
    key: Array,
    report: Callable[[TrainingProgress], None] | None,
) -> Iterator[LossEntry]:
    """Trains to the last step; yields an entry at every evaluation."""
    key, first_key = replicate(mesh, key), put_on_first(key)

    def measure() -> LossEntry:
        params = put_on_first(run.state.params)
        losses = [
            None if part is None else float(evaluate(model, config, part.evaluation(), params, first_key))
            for part in (feed, validation)
        ]
        return LossEntry(int(run.state.step), losses[0] or 0.0, losses[1])

    if not run.history:
        yield measure()
    if is_finished(run, config):
        return
    portions = list(_portions(config, int(run.state.step), feed.most))
    sources = feed.portions(portions)
    source = next(sources, None)
    state = spread(model, mesh, run.state)
    for step, count in portions:
        assert source is not None
        state, losses = train(model, config, source, state, key, count, mesh)
        source = next(sources, None)  # while the devices compute
        jax.block_until_ready(losses)  # so that no third portion's rows are there
        end = step + count
        if report:
            report(TrainingProgress(end, config.steps, float(np.mean(losses)), run.resumed_from))
        if end % config.evaluate_every == 0 or end == config.steps:
            run.state = collect(state)
            yield measure()


def _portions(config: MetaTrainConfig, step: int, most: int | None) -> Iterator[tuple[int, int]]:
    """Yields first step and number of steps of each portion; a portion ends at an evaluation at the latest."""
    while step < config.steps:
        count = next_portion(config, step, most)
        yield step, count
        step += count


def next_portion(config: MetaTrainConfig, step: int, most: int | None = None) -> int:
    """Returns the number of steps from ``step`` to the end of its portion, at most ``most``."""
    # The longest that divides the interval of evaluations, so that few programs are compiled.
    length = portion_length(config.evaluate_every, min(portion(config), most or config.steps))
    boundary = min(config.steps, step - step % config.evaluate_every + config.evaluate_every)
    return min(length, boundary - step)


def check_patience(config: MetaTrainConfig, space: SearchSpace) -> None:
    """Checks that a training with patience has validation tasks. Raises `DataError`."""
    if config.patience is not None and not space.validation:
        raise DataError(f"patience needs validation tasks, but search space {space.name!r} has none")


def is_finished(run: TrainingRun, config: MetaTrainConfig) -> bool:
    """Returns whether a training is at its last step, or out of patience."""
    is_patient = config.patience is None or run.evaluations_without_gain() < config.patience
    return int(run.state.step) >= config.steps or not is_patient


def record_entry(run: TrainingRun, entry: LossEntry, config: MetaTrainConfig) -> None:
    """Adds an entry, and stores the parameters if they are the best and `patience` is set."""
    is_best = config.patience is not None and entry.validation is not None and entry.validation < run.best_loss()
    run.history.append(entry)
    if is_best:
        run.best, run.best_step = run.state.params, entry.step
