"""SAAS (Eriksson and Jankowiak 2021) with BoTorch: a sparse prior of length scales, by MCMC. Without a past."""

from collections.abc import Sequence

import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.fit import fit_fully_bayesian_model_nuts
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from torch.quasirandom import SobolEngine

from dre_jax.space.space import Params
from rivals.problems import Problem

_N_FIRST = 10


class SparseAxes:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int) -> None:
        torch.manual_seed(seed)
        self.space, self.sobol = problem.space, SobolEngine(len(problem.space), scramble=True, seed=seed)
        self.X: list[list[float]] = []
        self.y: list[float] = []

    def ask(self) -> Params:
        if len(self.y) < _N_FIRST:
            return self.space.decode(self.sobol.draw(1)[0].numpy())
        X, y = torch.tensor(self.X, dtype=torch.double), torch.tensor(self.y, dtype=torch.double)[:, None]
        model = SaasFullyBayesianSingleTaskGP(X, y, outcome_transform=Standardize(1))
        fit_fully_bayesian_model_nuts(model, warmup_steps=256, num_samples=128, thinning=16, disable_progbar=True)
        improvement = qLogExpectedImprovement(model, best_f=y.max())
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double).expand(2, X.shape[1])
        best, _ = optimize_acqf(improvement, bounds, q=1, num_restarts=5, raw_samples=512)
        return self.space.decode(best[0].numpy())

    def tell(self, params: Params, value: float) -> None:
        self.X.append(self.space.encode(params).tolist())
        self.y.append(value)
