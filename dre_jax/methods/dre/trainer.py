"""The loop of meta-training: portions of steps, losses on fixed lists, checkpoints, resumption."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh

from dre_jax import native
from dre_jax.data import SearchSpace, fingerprint
from dre_jax.data.columns import Column, differing_columns
from dre_jax.data.files import make_folder
from dre_jax.data.spaces import Task
from dre_jax.errors import CheckpointError, DataError, DataWarning
from dre_jax.methods.dre.ensemble import EnsembleParams
from dre_jax.methods.dre.mesh import collect, mesh_for, spread
from dre_jax.methods.dre.model_config import ModelConfig
from dre_jax.methods.dre.state import TrainState
from dre_jax.methods.dre.steps import evaluate, portion, start, train
from dre_jax.methods.dre.stream import Feed, ResidentFeed, StreamedFeed, must_stream
from dre_jax.methods.dre.training_config import MetaTrainConfig
from dre_jax.optim.schedule import portion_length


class LossEntry(NamedTuple):
    """A line of the loss history."""

    step: int
    train: float
    """Loss over fixed lists of the training tasks."""
    validation: float | None
    """Likewise of the validation tasks; None without any."""


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


@dataclass
class _TrainingRun:
    """The state of a training, with its loss history."""

    state: TrainState
    history: list[LossEntry] = field(default_factory=list)
    best: EnsembleParams | None = None
    best_step: int | None = None
    resumed_from: int | None = None

    def best_loss(self) -> float:
        losses = [entry.validation for entry in self.history if entry.step == self.best_step]
        return losses[0] if losses and losses[0] is not None else np.inf

    def evaluations_without_gain(self) -> int:
        return sum(entry.step > (self.best_step or 0) for entry in self.history)


def meta_train(
    space: SearchSpace,
    model: ModelConfig,
    config: MetaTrainConfig,
    *,
    key: Array,
    folder: str | Path | None = None,
    report: Callable[[TrainingProgress], None] | None = None,
    facts: Mapping[str, Any] | None = None,
    stream: bool | None = None,
) -> MetaTrainingResult:
    """Meta-trains an ensemble on the training tasks of a search space (the paper, Algorithm 1).

    With a folder, a checkpoint is written at every evaluation, and the same call resumes from the last one: a training
    that was killed ends with the same parameters as one that was not.

    Args:
      space: training tasks, and validation tasks for the loss history.
      model: sizes.
      config: what training does.
      key: PRNG key.
      folder: where checkpoints go; none are written without.
      report: called after every portion of steps.
      facts: JSON that checkpoints keep beside their own description.
      stream: whether tables stay on the host, of which the rows of drawn lists are sent to the devices ahead of their
        use, or lie on every device; None streams what takes too much of a device's memory. Results do not depend on it,
        and tasks may be mapped from files (`numpy.load` with ``mmap_mode``).

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
    if config.patience is not None and not space.validation:
        raise DataError(f"patience needs validation tasks, but search space {space.name!r} has none")
    keeper = None if folder is None else _CheckpointManager(space, model, config, key, folder, facts or {})
    validation = feed_of(space.validation) if space.validation else None
    run = keeper.resume() if keeper else None
    run = run or _TrainingRun(start(model, config, space.n_columns, key))
    for entry in _train(run, model, config, feed, validation, mesh, key, report):
        _record_entry(run, entry, config)
        if keeper:
            keeper.save(run)
        if config.patience is not None and run.evaluations_without_gain() >= config.patience:
            break
    params = run.state.params if run.best is None else run.best
    return MetaTrainingResult(params, int(run.state.step), run.history, run.resumed_from)


def _train(
    run: _TrainingRun,
    model: ModelConfig,
    config: MetaTrainConfig,
    feed: Feed,
    validation: Feed | None,
    mesh: Mesh | None,
    key: Array,
    report: Callable[[TrainingProgress], None] | None,
) -> Iterator[LossEntry]:
    """Trains to the last step; yields an entry at every evaluation."""

    def measure() -> LossEntry:
        losses = [
            None if one is None else float(evaluate(model, config, one.evaluation(), run.state.params, key))
            for one in (feed, validation)
        ]
        return LossEntry(int(run.state.step), losses[0] or 0.0, losses[1])

    if not run.history:
        yield measure()
    if config.patience is not None and run.evaluations_without_gain() >= config.patience:
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
        done = step + count
        if report:
            report(TrainingProgress(done, config.steps, float(jnp.mean(losses)), run.resumed_from))
        if done % config.evaluate_every == 0 or done == config.steps:
            run.state = collect(mesh, state)
            yield measure()


def _portions(config: MetaTrainConfig, step: int, most: int | None) -> Iterator[tuple[int, int]]:
    """Yields first step and number of steps of each portion; a portion ends at an evaluation at the latest."""
    length = _portion_length(config, most)
    while step < config.steps:
        boundary = min(config.steps, step - step % config.evaluate_every + config.evaluate_every)
        count = min(length, boundary - step)
        yield step, count
        step += count


def _portion_length(config: MetaTrainConfig, most: int | None) -> int:
    """Returns the longest portion that divides the evaluation interval, so that few programs are compiled."""
    return portion_length(config.evaluate_every, min(portion(config), most or config.steps))


def _record_entry(run: _TrainingRun, entry: LossEntry, config: MetaTrainConfig) -> None:
    """Adds an entry, and stores the parameters if they are the best and `patience` is set."""
    is_best = config.patience is not None and entry.validation is not None and entry.validation < run.best_loss()
    run.history.append(entry)
    if is_best:
        # A copy: the state's own arrays are given away to the next steps.
        run.best, run.best_step = jax.tree.map(jnp.copy, run.state.params), entry.step


class _CheckpointManager:
    """Saves and resumes a training."""

    def __init__(
        self,
        space: SearchSpace,
        model: ModelConfig,
        config: MetaTrainConfig,
        key: Array,
        folder: str | Path,
        facts: Mapping[str, Any],
    ) -> None:
        # Orbax takes a second to import: only those who save pay for it.
        from dre_jax.methods.dre.checkpoint import Checkpoint, describe

        make_folder(folder)
        self.checkpoint = Checkpoint(folder)
        self.config = config
        self.columns = space.columns
        self.facts = {"schema": None if space.columns is None else [list(c) for c in space.columns], **facts}
        self.backends = native.with_backend([])
        self.description = describe(
            space=space.name,
            n_columns=space.n_columns,
            model=model,
            config=config,
            key=key,
            fingerprint=fingerprint(space),
        )

    def save(self, run: _TrainingRun) -> None:
        facts: dict[str, Any] = {
            "history": [list(entry) for entry in run.history],
            "best_step": run.best_step,
            "versions": versions(),
            "backends": self.backends,
        }
        self.checkpoint.save(run.state, run.best, {**self.description, **self.facts, **facts})

    def resume(self) -> _TrainingRun | None:
        """Returns the last saved training; None without a checkpoint."""
        from dre_jax.methods.dre.checkpoint import differences, model_config, training_config

        if self.checkpoint.latest_step() is None:
            return None
        metadata = self.checkpoint.metadata()
        ours = dict(self.description)
        theirs = training_config(metadata)
        if self.config.schedule == "constant" and self.config.steps >= metadata["step"]:
            # At a constant learning rate the number of steps is only where training ends: it may be moved.
            ours["training"] = {**ours["training"], "steps": theirs.steps}
        # A checkpoint of an older version lacks the options that came since: it was trained with their defaults.
        diffs = differences(ours, {**metadata, "model": asdict(model_config(metadata)), "training": asdict(theirs)})
        if self.columns and metadata.get("schema"):
            diffs += differing_columns(self.columns, [Column(*column) for column in metadata["schema"]])
        if diffs:
            raise CheckpointError(
                f"{self.checkpoint.folder} holds another training: {'; '.join(diffs)}; give another folder or remove it"
            )
        saved = self.checkpoint.load()
        self.backends = native.with_backend(metadata.get("backends", []))
        if metadata["step"] < self.config.steps:
            warn_of_backends(self.backends, self.checkpoint.folder)
        history = [LossEntry(*entry) for entry in metadata["history"]]
        return _TrainingRun(saved.state, history, saved.best, metadata["best_step"], metadata["step"])


def last_step(folder: str | Path) -> int | None:
    """Returns the step of the last complete checkpoint in a folder; None without one."""
    if not (Path(folder) / "steps").is_dir():
        return None
    from dre_jax.methods.dre.checkpoint import Checkpoint

    return Checkpoint(folder).latest_step()


def warn_of_backends(backends: list[dict[str, str]], origin: Path) -> None:
    """Warns with a `DataWarning` where a result is continued by another backend: rounding may differ.

    Args:
      backends: of the result, see `dre_jax.native.with_backend`.
      origin: the result's file or folder.
    """
    mine = native.backend()
    others = [" on ".join(one.values()) for one in backends if one != mine]
    if others:
        here = " on ".join(mine.values())
        message = f"{origin} was computed by {', '.join(others)}, and goes on by {here}: rounding may differ"
        warnings.warn(message, DataWarning, stacklevel=3)


def versions(*more: str) -> dict[str, str]:
    """Returns the versions of the packages that a result depends on, and of more packages."""
    packages = ("dre_jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy", *more)
    versions_by_package = {"python": platform.python_version()}
    for name in packages:
        try:
            versions_by_package[name] = version(name)
        except PackageNotFoundError:  # run from a source tree that is not installed
            versions_by_package[name] = "not installed"
    return versions_by_package
