"""BoTorch's contextual multi-task process on all past trials: the covariance of two tasks depends on their features.

Before the first trial of the new task, it suggests the row of the highest posterior mean; then logarithmic expected
improvement. Values of a past task are standardised. Those of the new task are divided by the mean deviation of past
tasks, since a few trials have no scale. Features are scaled to the unit cube, as BoTorch expects of inputs.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement, PosteriorMean
from botorch.fit import fit_gpytorch_mll
from botorch.models import MultiTaskGP
from botorch.models.contextual_multioutput import LCEMGP
from botorch.optim import optimize_acqf_discrete
from gpytorch.constraints import Interval
from gpytorch.kernels import RBFKernel
from gpytorch.mlls import ExactMarginalLogLikelihood

from dre_jax.space.space import Params
from rivals.problems import Problem

_FIRST_STEPS, _STEPS = 200, 10  # of the fit; the later ones start from the hyperparameters before


class FeatureProcess(LCEMGP):
    """`LCEMGP` with a kernel of as many columns as it embeds; that of BoTorch 0.18.1 rejects features."""

    def __init__(self, *args: Any, context_emb_feature: torch.Tensor, **options: Any) -> None:
        super().__init__(*args, context_emb_feature=context_emb_feature, **options)
        bounds = Interval(0.0, 2.0, transform=None, initial_value=1.0)
        n_columns = self._task_embeddings().shape[1]
        kernel = RBFKernel(ard_num_dims=n_columns, lengthscale_constraint=bounds)
        self.task_covar_module_base = kernel.to(context_emb_feature)

    def eval(self) -> Self:
        return super(MultiTaskGP, self).eval()  # that of `MultiTaskGP` changes a kernel that `LCEMGP` replaces


class ContextualProcess:
    """A rival for tables. ``features`` are those of the past tasks, f64[T, P], and of the new one, f64[P]."""

    def __init__(
        self, problem: Problem, rows: Sequence[Params], seed: int, *, features: tuple[np.ndarray, np.ndarray]
    ) -> None:
        torch.manual_seed(seed)
        self.space, self.task = problem.space, len(problem.past)
        self.choices = torch.tensor(self.space.encode_rows(rows))
        z = torch.tensor(np.vstack(features))
        low, high = z.amin(dim=0), z.amax(dim=0)
        self.features = (z - low) / torch.where(high > low, high - low, 1.0)
        trials = [(trial, task) for task, study in enumerate(problem.past.values()) for trial in study]
        self.X = [[*self.space.encode(trial.params), task] for trial, task in trials]
        values = [np.array([trial.value for trial in study]) for study in problem.past.values()]
        self.past_y = np.concatenate([(y - y.mean()) / y.std() for y in values])
        self.deviation = np.mean([y.std() for y in values])
        self.y = list[float]()
        self.hyperparameters: dict[str, torch.Tensor] | None = None

    def ask(self) -> Params:
        new = (np.array(self.y) - np.mean(self.y or 0.0)) / self.deviation
        X, y = torch.tensor(self.X, dtype=torch.double), torch.tensor(np.r_[self.past_y, new])[:, None]
        model, is_new = self._fit(X, y), X[:, -1] == self.task
        if is_new.any():
            value = LogExpectedImprovement(model, best_f=y[is_new].max())
        else:
            value = PosteriorMean(model)
        best, _ = optimize_acqf_discrete(value, q=1, choices=self.choices, X_avoid=X[is_new, :-1])
        return self.space.decode(best[0].numpy())

    def tell(self, params: Params, value: float) -> None:
        self.X.append([*self.space.encode(params), self.task])
        self.y.append(value)

    def _fit(self, X: torch.Tensor, y: torch.Tensor) -> "FeatureProcess":
        """Returns the process. All tasks are of one category: that of the new task would be a random number."""
        tasks = list(range(self.task + 1))
        model = FeatureProcess(
            X,
            y,
            task_feature=-1,
            context_cat_feature=torch.zeros(len(tasks), 1, dtype=torch.long),
            context_emb_feature=self.features,
            all_tasks=tasks,
            output_tasks=[self.task],
            outcome_transform=None,
        )
        if self.hyperparameters is not None:
            model.load_state_dict(self.hyperparameters, strict=False)
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        steps = _FIRST_STEPS if self.hyperparameters is None else _STEPS
        fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": steps}})
        self.hyperparameters = {name: value.detach().clone() for name, value in model.named_parameters()}
        return model
