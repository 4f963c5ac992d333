"""BoTorch's multi-task process as a method, to compare its regret: needs torch==2.13.0 and botorch==0.18.1.

dre-jax compare --data DIR --split validation --methods hedged-prior benchmarks/multi_task.py:MultiTask --trials 50
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array

from dre_jax.data import SearchSpace
from dre_jax.gp.response_scale import standardise
from dre_jax.methods.baselines.source_processes import SourceTasks, source_tasks
from dre_jax.search import Candidates, History
from dre_jax.search.acquisition import log_expected_improvement


@dataclass(frozen=True, kw_only=True)
class MultiTask:
    """`MultiTaskGP` of rows of the past tasks and the trials, fitted anew at each trial, with expected improvement."""

    rows: int = 40
    """Of a past task, drawn once."""
    steps: int = 100
    """Maximum number of steps of L-BFGS."""

    def fit(self, meta: SearchSpace, key: Array) -> SourceTasks:
        """Returns the rows."""
        return source_tasks(meta, self.rows, key)

    def acquire(self, params: SourceTasks, history: History, candidates: Candidates, key: Array) -> Array:
        """Returns the log expected improvement; BoTorch computes it on the host."""
        y = standardise(history.response, history.where).y
        shape = jax.ShapeDtypeStruct(candidates.where.shape, y.dtype)
        arguments = params, history.x, y, history.where, candidates.x
        return jax.pure_callback(self.values, shape, *arguments, vmap_method="sequential")

    def values(self, params: SourceTasks, x: Any, y: Any, where: Any, candidates: Any) -> np.ndarray:
        """Returns values f32[N] of candidates f32[N, D], given trials with standardised responses."""
        import torch
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MultiTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.set_num_threads(1)
        tasks, best = [*zip(*params, strict=True), (x, y, where)], float(np.asarray(y)[np.asarray(where)].max())
        rows, responses = [], []
        for i, (task_x, task_y, mask) in enumerate(tuple(map(np.asarray, task)) for task in tasks):
            rows.append(np.pad(task_x[mask], ((0, 0), (0, 1)), constant_values=i))
            responses.append(task_y[mask])
        torch.manual_seed(0)
        data = (torch.tensor(np.concatenate(part), dtype=torch.float64) for part in (rows, responses))
        own = len(tasks) - 1
        train_x, train_y = data
        model = MultiTaskGP(train_x, train_y[:, None], task_feature=-1, output_tasks=[own], outcome_transform=None)
        options = {"options": {"maxiter": self.steps}}
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs=options)
        with torch.no_grad():
            posterior = model.posterior(torch.tensor(np.asarray(candidates), dtype=torch.float64))
            mean, variance = posterior.mean.squeeze(-1).numpy(), posterior.variance.squeeze(-1).numpy()
        values = log_expected_improvement(-mean, np.sqrt(np.maximum(variance, 1e-12)), np.float64(-best), np)
        return np.asarray(values, np.float32)
