"""BoTorch's multi-task process on tables: needs torch==2.13.0 and botorch==0.18.1.

    python -m benchmarks.multi_task --data DIR [--split validation] [--seeds test0 test1] [--trials 10] --out FILE
    dre-jax report FILE COMPARISON/results/hedged-prior.json --at 3,5,10 --out REPORT

A `MultiTaskGP` of 40 rows of each past task and of the trials is fitted anew at each trial by at most 100 steps of
L-BFGS, and the row with the highest expected improvement is next. Writes results in HPO-B's format after each run. A
process of its own, because the worker processes of `dre-jax compare` wait for callbacks to the host for ever.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import numpy as np
from scipy.stats import zscore

from dre_jax.data import Results, Task, add_trace, list_spaces, load_space, write_results
from dre_jax.data.tasks import unit_scale
from dre_jax.gp.source_processes import SourceTasks
from dre_jax.methods.baselines.source_processes import source_tasks
from dre_jax.search.acquisition import log_expected_improvement

ROWS, STEPS = 40, 100


def main(arguments: list[str] | None = None) -> None:
    """Runs every task of a split with every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--split", choices=["validation", "test"], default="validation")
    parser.add_argument("--seeds", nargs="+", default=["test0", "test1"])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    results = Results()
    for name in list_spaces(options.data):
        space = load_space(options.data, name)
        past = jax.device_get(source_tasks(space, ROWS, jax.random.key(0)))
        for task_name, task in getattr(space, options.split).items():
            for seed in options.seeds:
                trace = search(past, task, space.designs[task_name][seed], options.trials)
                results = add_trace(results, f"{options.data.resolve().name}/{name}", task_name, seed, trace)
                write_results(options.out, results)
                print(task_name, seed, *np.round(1.0 - trace, 4), flush=True)


def search(past: SourceTasks, task: Task, design: np.ndarray, trials: int) -> np.ndarray:
    """Returns the incumbents f64[trials + 1], 0 for the worst row and 1 for the best."""
    rows, y = list(design), unit_scale(task.y.ravel())
    for _ in range(trials):
        values = improvement(past, np.asarray(task.X)[rows], np.nan_to_num(zscore(y[rows])), np.asarray(task.X))
        values[rows] = -np.inf
        rows.append(int(np.argmax(values)))
    return np.maximum.accumulate(y[rows])[len(design) - 1 :]


def improvement(past: SourceTasks, x: np.ndarray, y: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Returns the log expected improvement f64[N] of candidates f[N, D], given trials with standardised responses."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import MultiTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)  # small matrices: more threads wait for each other
    torch.manual_seed(0)
    tasks = [*((xs[where], ys[where]) for xs, ys, where in zip(*past, strict=True)), (x, y)]
    rows = [np.pad(task_x, ((0, 0), (0, 1)), constant_values=i) for i, (task_x, _) in enumerate(tasks)]
    train_x = torch.tensor(np.concatenate(rows), dtype=torch.float64)
    train_y = torch.tensor(np.concatenate([task_y for _, task_y in tasks]), dtype=torch.float64)
    own = [len(tasks) - 1]
    model = MultiTaskGP(train_x, train_y[:, None], task_feature=-1, output_tasks=own, outcome_transform=None)
    options = {"options": {"maxiter": STEPS}}
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs=options)
    with torch.no_grad():
        posterior = model.posterior(torch.tensor(candidates, dtype=torch.float64))
        mean, variance = posterior.mean.squeeze(-1).numpy(), posterior.variance.squeeze(-1).numpy()
    return np.array(log_expected_improvement(-mean, np.sqrt(np.maximum(variance, 1e-12)), np.float64(-y.max())))


if __name__ == "__main__":
    main()
