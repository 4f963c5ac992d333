"""Tuners of other libraries that learn from past studies; each call needs its library.

- `multi-task-gp`: BoTorch's multi-task Gaussian process, what Ax's transfer uses; responses standardised by study, log
  expected improvement, after the best configurations of two studies.
- `meta-tpe`: OptunaHub's `meta_learn_tpe`, from a copy of the registry that the variable OPTUNAHUB_REGISTRY names.
- `bounding-box`, `quantiles`: Syne Tune's bounding box around the best of each study, searched by its Gaussian process,
  and its copula Thompson sampling.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

from dre_jax.tuning import Evaluated, Float
from live.functions import Task

Studies = Mapping[str, Sequence[Evaluated]]
_METRIC = "loss"
_FIT_STEPS = 100  # of L-BFGS


def multi_task_gp(task: Task, n: int, studies: Studies, random: np.random.Generator) -> list[Evaluated]:
    """Returns the trials of BoTorch's multi-task Gaussian process."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import MultiTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(int(random.integers(2**31)))
    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.double).repeat(1, len(task.space))
    past = [_rows(task, trials, i + 1) for i, trials in enumerate(studies.values())]
    best = [min(trials, key=lambda one: one.value).params for trials in list(studies.values())[:2]]
    evaluations: list[Evaluated] = []
    while len(evaluations) < n:
        if len(evaluations) < len(best):
            params = dict(best[len(evaluations)])
        else:
            parts = [*past, _rows(task, evaluations, 0)]
            rows, values = (torch.tensor(np.concatenate(column)) for column in zip(*parts, strict=True))
            model = MultiTaskGP(rows, -values[:, None], task_feature=-1, output_tasks=[0], outcome_transform=None)
            likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
            fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": _FIT_STEPS}})
            improvement = LogExpectedImprovement(model, best_f=-values[rows[:, -1] == 0].min())
            point, _ = optimize_acqf(improvement, bounds, q=1, num_restarts=4, raw_samples=256)
            params = task.space.params(point[0].numpy())
        evaluations.append(Evaluated(params, task.evaluate(params, random)))
    return evaluations


def _rows(task: Task, trials: Sequence[Evaluated], number: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns points with the number of their study, f64[n, P + 1], and standardised values f64[n]."""
    points = np.array([[*task.space.point(one.params), number] for one in trials])
    values = np.array([one.value for one in trials])
    return points, (values - values.mean()) / max(float(values.std()), 1e-12)


def meta_tpe(task: Task, n: int, studies: Studies, random: np.random.Generator) -> list[Evaluated]:
    """Returns the trials of OptunaHub's `meta_learn_tpe`."""
    import optuna
    import optunahub

    from dre_jax.tuning.optuna.distributions import to_optuna
    from live.contestants import suggest

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    registry = os.path.join(os.environ["OPTUNAHUB_REGISTRY"], "package")
    package = optunahub.load_local_module("samplers/meta_learn_tpe", registry_root=registry)
    distributions, sources = to_optuna(task.space), []
    for trials in studies.values():
        sources.append(optuna.create_study(direction="minimize"))
        for one in trials:
            active = {name: distributions[name] for name in one.params}
            sources[-1].add_trial(
                optuna.trial.create_trial(params=dict(one.params), distributions=active, value=one.value)
            )
    sampler = package.MetaLearnTPESampler(source_studies=sources, seed=int(random.integers(2**31)))
    study = optuna.create_study(direction="minimize", sampler=sampler)
    study.optimize(lambda trial: task.evaluate(suggest(trial, task.space), random), n_trials=n)
    return [Evaluated(trial.params, float(trial.value)) for trial in study.trials if trial.value is not None]


def bounding_box(task: Task, n: int, studies: Studies, random: np.random.Generator) -> list[Evaluated]:
    """Returns the trials of Syne Tune's Gaussian process in the box of the best past configurations."""
    from syne_tune.optimizer.baselines import BOTorch
    from syne_tune.optimizer.schedulers.transfer_learning.bounding_box import BoundingBox

    def search(space: dict[str, Any], metric: str, do_minimize: bool, seed: int) -> Any:
        return BOTorch(space, metric, do_minimize, seed)

    space, past = _syne_tune(task, studies)
    seed = int(random.integers(2**31))
    scheduler = BoundingBox(search, space, _METRIC, past, do_minimize=True, random_seed=seed)
    return _scheduled(scheduler, task, n, random)


def quantiles(task: Task, n: int, studies: Studies, random: np.random.Generator) -> list[Evaluated]:
    """Returns the trials of Syne Tune's copula Thompson sampling."""
    from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
    from syne_tune.optimizer.schedulers.transfer_learning.quantile_based.quantile_based_searcher import (
        QuantileBasedSurrogateSearcher,
    )

    space, past = _syne_tune(task, studies)
    searcher = QuantileBasedSurrogateSearcher(space, past, random_seed=int(random.integers(2**31)))
    return _scheduled(SingleObjectiveScheduler(space, _METRIC, searcher=searcher), task, n, random)


def _syne_tune(task: Task, studies: Studies) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a space of real numbers and its past studies as Syne Tune's objects."""
    import pandas as pd
    from syne_tune.config_space import uniform
    from syne_tune.optimizer.schedulers.transfer_learning.transfer_learning_task_evaluation import (
        TransferLearningTaskEvaluations,
    )

    space = {name: uniform(part.low, part.high) for name, part in task.space.items() if isinstance(part, Float)}
    past = {
        name: TransferLearningTaskEvaluations(
            space,
            pd.DataFrame([one.params for one in trials]),
            [_METRIC],
            np.array([one.value for one in trials]).reshape(-1, 1, 1, 1),
        )
        for name, trials in studies.items()
    }
    return space, past


def _scheduled(scheduler: Any, task: Task, n: int, random: np.random.Generator) -> list[Evaluated]:
    """Returns the trials of a scheduler that evaluates one after the other."""
    from datetime import datetime

    from syne_tune.backend.trial_status import Trial

    evaluations: list[Evaluated] = []
    for number in range(n):
        params = scheduler.suggest().config
        evaluations.append(Evaluated(params, task.evaluate(params, random)))
        trial = Trial(number, params, datetime.now())
        scheduler.on_trial_add(trial)
        scheduler.on_trial_complete(trial, {_METRIC: evaluations[-1].value})
    return evaluations


RIVALS: dict[str, Callable[[Task, int, Studies, np.random.Generator], list[Evaluated]]] = {
    "multi-task-gp": multi_task_gp,
    "meta-tpe": meta_tpe,
    "bounding-box": bounding_box,
    "quantiles": quantiles,
}
"""By name."""


def run(rival: str, task: Task, n: int, studies: Studies, random: np.random.Generator) -> list[Evaluated]:
    """Returns the trials of a rival, without its messages."""
    with warnings.catch_warnings(), redirect_stdout(StringIO()):
        warnings.simplefilter("ignore")
        return RIVALS[rival](task, n, studies, random)
