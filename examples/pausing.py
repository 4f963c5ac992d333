"""Trainings that pause: a search resumes the best ones from their checkpoints, also after it was killed.

The model is a small network in Flax on scikit-learn's digits, with checkpoints by Orbax. A trial trains a configuration
until ``trial.budget`` epochs; ``trial.resumes`` says whether there is a checkpoint to continue from. The study is saved
after every step. The first process is killed in the middle of a trial; the second one reads the study, finishes that
trial and goes on.

The script prints how many epochs were spent, and whether the best training, which was paused and resumed, equals one
that trains to the end at once, to the bit. It draws the trainings as ``pausing.png``: each configuration is a line,
with a dot where it paused.

``python examples/pausing.py [--out FOLDER] [--quick]``; needs ``'dre_jax[optuna,sklearn]'``
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from gallery import options, run
from sklearn import datasets

from dre_jax.tuning import Categorical, Fidelity, Float, Optimizer, Space, Trial

EPOCHS = Fidelity("epochs", 1, 32)
SPACE = Space(
    {
        "lr": Float(1e-4, 1.0, log=True),
        "momentum": Float(0.0, 0.99),
        "decay": Float(1e-6, 1e-1, log=True),
        "width": Categorical([16, 64]),
    }
)
BATCH = 64


class Network(nn.Module):
    """Two hidden layers."""

    width: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(10)(x)


def digits() -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    """Returns images and labels for training and for validation."""
    x, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = jnp.asarray(x[order] / 16.0, jnp.float32), jnp.asarray(y[order], jnp.int32)
    return (x[:1200], y[:1200]), (x[1200:], y[1200:])


def optimiser(lr: Any, momentum: Any, decay: Any) -> optax.GradientTransformation:
    """Returns stochastic gradient descent with momentum and weight decay."""
    return optax.chain(optax.add_decayed_weights(decay), optax.sgd(lr, momentum))


@partial(jax.jit, static_argnames="width")
def train_epoch(state: Any, epoch: Any, numbers: Mapping[str, Any], x: Any, y: Any, *, width: int) -> Any:
    """Returns the state after an epoch, whose batches depend on its number alone."""
    network, optimise = Network(width), optimiser(**numbers)
    order = jax.random.permutation(jax.random.fold_in(jax.random.key(1), epoch), len(x))
    batches = order[: len(x) // BATCH * BATCH].reshape(-1, BATCH)

    def loss(weights: Any, rows: Any) -> Any:
        logits = network.apply(weights, x[rows])
        return optax.softmax_cross_entropy_with_integer_labels(logits, y[rows]).mean()

    def step(state: Any, rows: Any) -> tuple[Any, None]:
        weights, moments = state
        updates, moments = optimise.update(jax.grad(loss)(weights, rows), moments, weights)
        return (optax.apply_updates(weights, updates), moments), None

    return jax.lax.scan(step, state, batches)[0]


def train(params: Mapping[str, Any], epochs: int, folder: Path) -> tuple[float, Any]:
    """Returns the validation loss after a number of epochs, and the weights; from the latest checkpoint on, if any."""
    (x, y), (test, labels) = digits()
    numbers = {name: jnp.float32(params[name]) for name in ("lr", "momentum", "decay")}
    network = Network(params["width"])
    weights = network.init(jax.random.key(0), x[:1])
    state = weights, optimiser(**numbers).init(weights)
    with ocp.CheckpointManager(folder.absolute(), options=ocp.CheckpointManagerOptions(max_to_keep=1)) as checkpoints:
        start = checkpoints.latest_step() or 0
        if start:
            state = checkpoints.restore(start, args=ocp.args.StandardRestore(state))
        for epoch in range(start, epochs):
            state = train_epoch(state, jnp.int32(epoch), numbers, x, y, width=params["width"])
        if epochs > start:
            checkpoints.save(epochs, args=ocp.args.StandardSave(state))
    losses = optax.softmax_cross_entropy_with_integer_labels(network.apply(state[0], test), labels)
    return float(losses.mean()), state[0]


def search(folder: Path, n_trials: int, dies_at: int | None = None) -> Optimizer:
    """Continues the study in a folder, or starts one, up to a number of trials; may die in the middle of a trial."""
    file = folder / "study.json"
    optimizer = Optimizer.load(file) if file.exists() else Optimizer(SPACE, fidelity=EPOCHS, seed=0)

    def objective(trial: Trial) -> float:
        optimizer.save(file)
        if trial.number == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        assert trial.checkpoint is not None
        assert trial.budget is not None
        return train(trial.params, int(trial.budget), trial.checkpoint)[0]

    finish_running(optimizer, folder / "checkpoints")
    optimizer.optimize(objective, n_trials - len(optimizer.trials), checkpoints=folder / "checkpoints")
    optimizer.save(file)
    return optimizer


def finish_running(optimizer: Optimizer, checkpoints: Path) -> None:
    """Trains what a killed process was training."""
    for trial in optimizer.trials:
        if trial.state == "running":
            resumed = optimizer.with_checkpoint(trial, checkpoints)
            optimizer.tell(trial, train(trial.params, int(trial.budget or 0), resumed.checkpoint or checkpoints)[0])


def main() -> None:
    """Runs the study in two processes, and draws its trainings."""
    args = options(__doc__, "a shorter study").parse_args()
    logging.getLogger("absl").setLevel(logging.ERROR)
    n = 24 if args.quick else 60
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = multiprocessing.get_context("spawn").Process(target=search, args=(folder, n, n // 2))
        first.start()
        first.join()
        optimizer = search(folder, n)
        trials, best = optimizer.trials, optimizer.best
        print(f"the first process was killed in trial {n // 2}, the study has {len(trials)} trials")
        n_configurations = sum(trial.resumes is None for trial in trials)
        full = n_configurations * EPOCHS.highest
        print(f"{n_configurations} configurations, {optimizer.total_budget} epochs; without pauses {full}")
        resumed = optimizer.with_checkpoint(best, folder / "checkpoints")
        _, weights = train(best.params, int(EPOCHS.highest), resumed.checkpoint or folder)
        loss, at_once = train(best.params, int(EPOCHS.highest), folder / "at once")
        is_equal = all(map(np.array_equal, jax.tree.leaves(weights), jax.tree.leaves(at_once)))
        print(f"best loss {best.value:.4f}; trained at once {loss:.4f}, the same weights: {is_equal}")
        optimizer.figures()["Trainings"].savefig(picture := args.out / "pausing.png", dpi=160)
        print(f"picture: {picture}")


if __name__ == "__main__":
    run(main)
