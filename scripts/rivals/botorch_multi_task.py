"""BoTorch's multi-task process on all past trials, logarithmic expected improvement. On a table: over its rows."""

from collections.abc import Sequence

import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import MultiTaskGP
from botorch.models.transforms.outcome import StratifiedStandardize
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from gpytorch.mlls import ExactMarginalLogLikelihood

from dre_jax.space.space import Params
from rivals.problems import Problem


class MultiTaskProcess:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int) -> None:
        torch.manual_seed(seed)
        self.space, self.rows, self.task = problem.space, rows, len(problem.past)
        self.choices = None if rows is None else torch.tensor(self.space.encode_rows(rows))
        trials = [(trial, task) for task, study in enumerate(problem.past.values()) for trial in study]
        self.X = [[*self.space.encode(trial.params), task] for trial, task in trials]
        self.y = [[trial.value] for trial, _ in trials]

    def ask(self) -> Params:
        X, y = torch.tensor(self.X, dtype=torch.double), torch.tensor(self.y, dtype=torch.double)
        tasks = torch.arange(self.task + 1)
        model = MultiTaskGP(
            X, y, task_feature=-1, output_tasks=[self.task], outcome_transform=StratifiedStandardize(-1, tasks)
        )
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": 200}})  # else minutes with ten tasks
        improvement = LogExpectedImprovement(model, best_f=y[X[:, -1] == self.task].max())
        if self.choices is not None:
            avoid = X[X[:, -1] == self.task, :-1]
            best, _ = optimize_acqf_discrete(improvement, q=1, choices=self.choices, X_avoid=avoid)
        else:
            bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, X.shape[1] - 1)
            best, _ = optimize_acqf(improvement, bounds, q=1, num_restarts=4, raw_samples=256)
        return self.space.decode(best[0].numpy())

    def tell(self, params: Params, value: float) -> None:
        self.X.append([*self.space.encode(params), self.task])
        self.y.append([value])
