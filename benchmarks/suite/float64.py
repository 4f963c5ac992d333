"""Fine-tuning in float64 on a CPU, to hold that of a device against: ``python -m benchmarks.suite.float64 FILE``.

It is the library's scan over epochs, which tests hold against PyTorch and loops in NumPy; not the kernel of any device.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.suite.ours import default_model, parameters
from dre_jax.methods.dre.fine_tuning import fine_tune
from dre_jax.methods.dre.model.ensemble import EnsembleParams, Support, scores
from dre_jax.methods.dre.model.model_config import ModelConfig
from dre_jax.methods.dre.training_config import PAPER_FINE_TUNING

COLUMNS, ROWS = 16, 300


class Problem(NamedTuple):
    """A history to fine-tune on, and rows to score then."""

    params: EnsembleParams
    """Where fine-tuning starts."""
    x: Any
    """f[n, D], best first."""
    response: Any
    """f[n]"""
    rows: Any
    """f[m, D]"""


class Outcome(NamedTuple):
    """What fine-tuning comes to."""

    params: EnsembleParams
    scores: Any
    """f[M, m] of the rows, each member's mean taken off: the loss does not see a constant."""


class Errors(NamedTuple):
    """How far an outcome is from that in float64."""

    params: float
    """Mean over all parameters, absolute."""
    scores: float
    """Root of the mean square, in standard deviations of the scores in float64."""


def make_problem(model: ModelConfig, history: int) -> Problem:
    """Returns a random problem in NumPy arrays of float32."""
    rng = np.random.default_rng(0)
    x, rows = (rng.random((n, COLUMNS), np.float32) for n in (history, ROWS))
    response = np.linspace(1.0, 0.0, history, dtype=np.float32)
    return Problem(jax.tree.map(np.asarray, parameters(model, COLUMNS)), x, response, rows)


def solve(model: ModelConfig, problem: Problem, epochs: int) -> Outcome:
    """Returns the outcome on this process's device, in the precision of the problem."""
    n = len(problem.x)
    level, where = jax.device_put((np.arange(n, dtype=np.int32), np.ones(n, bool)))
    tune = jax.jit(partial(fine_tune, model, replace(PAPER_FINE_TUNING, epochs=epochs)))
    params, x, response, rows = jax.device_put(problem)
    tuned = tune(params, x, response, level, where, jax.random.key(1))
    result = np.asarray(jax.jit(partial(scores, model))(tuned, Support(x, response, where), rows))
    return Outcome(jax.tree.map(np.asarray, tuned), result - result.mean(axis=1, keepdims=True))


def solve_in_float64(members: int, problem: Problem, epochs: int) -> Outcome:
    """Returns the outcome of a process that sees the CPU alone, in float64."""
    variables = {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1",
        "JAX_NUMPY_DTYPE_PROMOTION": "standard",  # step sizes are float32 whatever the parameters are
        "DRE_JAX_NATIVE": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arrays.npz"
        np.savez(path, *jax.tree.leaves(problem), sizes=np.array([members, epochs]))
        command = [sys.executable, "-m", "benchmarks.suite.float64", str(path)]
        process = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
        if process.returncode:
            raise RuntimeError(f"float64 on the CPU must succeed, but {process.stderr.strip().splitlines()[-1]}")
        return _read(path, Outcome(problem.params, 0))


def errors(outcome: Outcome, exact: Outcome) -> Errors:
    """Returns the errors of an outcome."""
    params, exact_params = (
        np.concatenate([leaf.ravel() for leaf in jax.tree.leaves(tree)]) for tree in (outcome.params, exact.params)
    )
    scores_error = np.sqrt(np.square(outcome.scores - exact.scores).mean()) / exact.scores.std()
    return Errors(float(np.abs(params - exact_params).mean()), float(scores_error))


def _read(path: Path, like: Any) -> Any:
    """Returns the arrays of a file in the structure of a tree."""
    with np.load(path) as arrays:
        leaves = [arrays[f"arr_{i}"] for i in range(len(arrays.files) - ("sizes" in arrays.files))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def main(path: Path) -> None:
    """Replaces the problem in a file by its outcome."""
    with np.load(path) as arrays:
        members, epochs = map(int, arrays["sizes"])
    model = default_model(members)
    shapes = jax.eval_shape(lambda: parameters(model, COLUMNS))
    problem = _read(path, Problem(shapes, 0, 0, 0))
    outcome = solve(model, jax.tree.map(lambda a: a.astype(np.float64), problem), epochs)
    assert {leaf.dtype for leaf in jax.tree.leaves(outcome)} == {np.dtype(np.float64)}
    np.savez(path, *jax.tree.leaves(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
