"""TuRBO (Eriksson et al. 2019) with BoTorch: a process in a trust region, Thompson sampling. Without a past."""

from collections.abc import Sequence

import torch
from botorch.fit import fit_gpytorch_mll
from botorch.generation import MaxPosteriorSampling
from botorch.models import SingleTaskGP
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch.quasirandom import SobolEngine

from dre_jax.space.space import Params
from rivals.problems import Problem

_FIRST_LENGTH, _LEAST_LENGTH, _LARGEST_LENGTH = 0.8, 0.5**7, 1.6
_SUCCESSES = 3
_N_FIRST = 20  # random trials; twice the number of columns, as in the paper, are more than a whole search here


class TrustRegion:
    def __init__(self, problem: Problem, rows: Sequence[Params] | None, seed: int) -> None:
        torch.manual_seed(seed)
        self.space, self.sobol = problem.space, SobolEngine(len(problem.space), scramble=True, seed=seed)
        self.X: list[list[float]] = []
        self.y: list[float] = []
        self.first, self.length, self.successes, self.failures = 0, _FIRST_LENGTH, 0, 0

    def ask(self) -> Params:
        if len(self.y) - self.first < _N_FIRST:
            return self.space.decode(self.sobol.draw(1)[0].numpy())
        X = torch.tensor(self.X[self.first :], dtype=torch.double)
        y = torch.tensor(self.y[self.first :], dtype=torch.double)[:, None]
        n_columns = X.shape[1]
        kernel = ScaleKernel(MaternKernel(ard_num_dims=n_columns, lengthscale_constraint=Interval(0.005, 4.0)))
        likelihood = GaussianLikelihood(noise_constraint=Interval(1e-8, 1e-3))
        model = SingleTaskGP(X, (y - y.mean()) / y.std(), covar_module=kernel, likelihood=likelihood)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        weights = kernel.base_kernel.lengthscale.squeeze().detach()
        weights = weights / weights.log().mean().exp()
        best = X[y.argmax()]
        low, high = ((best + sign * weights * self.length / 2.0).clamp(0.0, 1.0) for sign in (-1.0, 1.0))
        n_points = min(5000, max(2000, 200 * n_columns))
        points = low + (high - low) * SobolEngine(n_columns, scramble=True).draw(n_points).double()
        is_changed = torch.rand(n_points, n_columns) <= min(20.0 / n_columns, 1.0)
        unchanged = torch.where(~is_changed.any(dim=1))[0]
        is_changed[unchanged, torch.randint(0, n_columns, (len(unchanged),))] = True
        candidates = torch.where(is_changed, points, best)
        with torch.no_grad():
            return self.space.decode(MaxPosteriorSampling(model, replacement=False)(candidates, 1)[0].numpy())

    def tell(self, params: Params, value: float) -> None:
        known = self.y[self.first :]
        self.X.append(self.space.encode(params).tolist())
        self.y.append(value)
        if len(known) < _N_FIRST:
            return
        best = max(known)
        is_better = value > best + 1e-3 * abs(best)
        self.successes, self.failures = (self.successes + 1, 0) if is_better else (0, self.failures + 1)
        if self.successes == _SUCCESSES:
            self.length, self.successes = min(2.0 * self.length, _LARGEST_LENGTH), 0
        elif self.failures == max(4, len(self.X[0])):
            self.length, self.failures = self.length / 2.0, 0
        if self.length < _LEAST_LENGTH:
            self.first, self.length, self.successes, self.failures = len(self.y), _FIRST_LENGTH, 0, 0
