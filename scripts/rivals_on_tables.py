"""Tuners of other libraries that learn from past studies, on tables: result files in HPO-B's format, and regrets.

    OPTUNAHUB_REGISTRY=FOLDER python scripts/rivals_on_tables.py --out DIR [--tuners multi-task-gp] [--tasks 5]

FOLDER is a clone of github.com/optuna/optunahub-registry. The environment needs torch==2.13.0 botorch==0.18.1
syne-tune==0.16.0 xgboost-cpu huggingface_hub optunahub==0.5.0 'optuna<5' pandas. The past of a search space is random
rows of some training tasks, the same for all tuners; every run begins with the initial design `test0`. Gaussian
processes choose among the rows that are left; the others suggest points of the cube, and get the nearest row.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from markdown_tables import markdown_table, mean_cell

from dre_jax.data import Results, Task, add_trace, bundled, read_results, write_results
from dre_jax.search.host import run_host
from dre_jax.search.suggester import Suggester
from dre_jax.tuning import Evaluated, Float, Space, Surrogate, past_of

_FLAGS = (0.0, 1.0)
AT = (0, 5, 10, 20, 30, 50)


def _standardised(y: np.ndarray) -> np.ndarray:
    return np.asarray((y - y.mean()) / max(float(y.std()), 1e-12))


class MultiTaskGP:
    """BoTorch's multi-task Gaussian process, log expected improvement of rows."""

    def __init__(self, past: Sequence[Task], seed: int) -> None:
        self._past, self._seed = past, seed

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any = None) -> int:
        import torch
        from botorch.acquisition import LogExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import MultiTaskGP as Model
        from gpytorch.mlls import ExactMarginalLogLikelihood

        torch.manual_seed(self._seed)
        parts = [(X_obs, _standardised(y_obs[:, 0])), *((one.X, _standardised(one.y)) for one in self._past)]
        rows = np.concatenate([np.column_stack([x, np.full(len(x), i)]) for i, (x, _) in enumerate(parts)])
        values = np.concatenate([y for _, y in parts])[:, None]
        data = torch.tensor(rows, dtype=torch.double), torch.tensor(values, dtype=torch.double)
        model = Model(*data, task_feature=-1, output_tasks=[0], outcome_transform=None)
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": 100}})
        improvement = LogExpectedImprovement(model, best_f=float(parts[0][1].max()))
        with torch.no_grad():
            return int(improvement(torch.tensor(X_pen, dtype=torch.double)[:, None]).argmax())


def is_flag(past: Sequence[Task]) -> np.ndarray:
    """Returns which columns have no other values than 0 and 1."""
    return np.asarray(np.isin(np.concatenate([one.X for one in past]), _FLAGS).all(axis=0))


class NearestRow:
    """A tuner that suggests points of the cube: the pending row nearest to its suggestion is evaluated."""

    def observe_and_suggest(self, X_obs: Any, y_obs: Any, X_pen: Any = None) -> int:
        point = self.suggest(X_obs, -y_obs[:, 0])
        return int(((X_pen - point) ** 2).sum(1).argmin())

    def suggest(self, x: np.ndarray, loss: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class MetaTPE(NearestRow):
    """OptunaHub's `meta_learn_tpe`."""

    def __init__(self, past: Sequence[Task], seed: int) -> None:
        import optunahub

        self._is_flag = is_flag(past)
        registry = os.path.join(os.environ["OPTUNAHUB_REGISTRY"], "package")
        package = optunahub.load_local_module("samplers/meta_learn_tpe", registry_root=registry)
        self._sampler = package.MetaLearnTPESampler(
            source_studies=[self._study(one.X, -one.y, None) for one in past], seed=seed
        )

    def _study(self, x: np.ndarray, loss: np.ndarray, sampler: Any) -> Any:
        import optuna

        study = optuna.create_study(direction="minimize", sampler=sampler)
        number, choice = (
            optuna.distributions.FloatDistribution(0.0, 1.0),
            optuna.distributions.CategoricalDistribution(_FLAGS),
        )
        parts: dict[str, Any] = {f"x{d}": choice if flag else number for d, flag in enumerate(self._is_flag)}
        for row, value in zip(x.astype(float), loss, strict=True):
            params = dict(zip(parts, row.tolist(), strict=True))
            study.add_trial(optuna.trial.create_trial(params=params, distributions=parts, value=float(value)))
        return study

    def suggest(self, x: np.ndarray, loss: np.ndarray) -> np.ndarray:
        trial = self._study(x, loss, self._sampler).ask()
        return np.array(
            [
                trial.suggest_categorical(f"x{d}", _FLAGS) if flag else trial.suggest_float(f"x{d}", 0.0, 1.0)
                for d, flag in enumerate(self._is_flag)
            ]
        )


class SyneTune(NearestRow):
    """A scheduler of Syne Tune, which gets its own suggestions with the values of the nearest rows."""

    def __init__(self, past: Sequence[Task], seed: int) -> None:
        import pandas as pd
        from syne_tune.config_space import choice, uniform
        from syne_tune.optimizer.schedulers.transfer_learning.transfer_learning_task_evaluation import (
            TransferLearningTaskEvaluations,
        )

        names = [f"x{d}" for d in range(past[0].n_columns)]
        self._seed, self._rows = seed, past
        self._space = {
            name: choice(list(_FLAGS)) if flag else uniform(0.0, 1.0)
            for name, flag in zip(names, is_flag(past), strict=True)
        }
        self._past = {
            one.name: TransferLearningTaskEvaluations(
                self._space, pd.DataFrame(one.X.astype(float), columns=names), ["loss"], -one.y.reshape(-1, 1, 1, 1)
            )
            for one in past
        }
        self._scheduler: Any = None
        self._configs: list[dict[str, Any]] = []

    def scheduler(self, first: list[dict[str, Any]]) -> Any:
        """Returns a scheduler that suggests configurations of the initial design first, if it can."""
        raise NotImplementedError

    def suggest(self, x: np.ndarray, loss: np.ndarray) -> np.ndarray:
        if self._scheduler is None:
            inside = self.accepts(x)
            first = [dict(zip(self._space, row.tolist(), strict=True)) for row in x[inside].astype(float)]
            self._scheduler = self.scheduler(first)
            for value in loss[inside]:
                self._configs.append(self._scheduler.suggest().config)
                self._complete(value)
        else:
            self._complete(loss[-1])
        self._configs.append(self._scheduler.suggest().config)
        return np.array([self._configs[-1][name] for name in self._space])

    def accepts(self, x: np.ndarray) -> np.ndarray:
        """Returns which rows of the initial design the scheduler gets."""
        return np.zeros(len(x), bool)

    def _complete(self, loss: float) -> None:
        from syne_tune.backend.trial_status import Trial

        trial = Trial(len(self._configs) - 1, self._configs[-1], datetime.now())
        self._scheduler.on_trial_add(trial)
        self._scheduler.on_trial_complete(trial, {"loss": float(loss)})


class BoundingBox(SyneTune):
    """Syne Tune's bounding box around the best of each study, searched by its Gaussian process."""

    def accepts(self, x: np.ndarray) -> np.ndarray:
        best = np.array([one.X[one.y.argmax()] for one in self._rows])
        return np.asarray(((x >= best.min(axis=0)) & (x <= best.max(axis=0))).all(axis=1))

    def scheduler(self, first: list[dict[str, Any]]) -> Any:
        from syne_tune.optimizer.baselines import BOTorch
        from syne_tune.optimizer.schedulers.transfer_learning.bounding_box import BoundingBox as Scheduler

        def search(space: dict[str, Any], metric: str, do_minimize: bool, seed: int) -> Any:
            return BOTorch(space, metric, do_minimize, seed, points_to_evaluate=first or None)

        return Scheduler(search, self._space, "loss", self._past, do_minimize=True, random_seed=self._seed)


class Quantiles(SyneTune):
    """Syne Tune's copula Thompson sampling, which samples from the past alone."""

    def scheduler(self, first: list[dict[str, Any]]) -> Any:
        from syne_tune.optimizer.schedulers.single_objective_scheduler import SingleObjectiveScheduler
        from syne_tune.optimizer.schedulers.transfer_learning.quantile_based.quantile_based_searcher import (
            QuantileBasedSurrogateSearcher,
        )

        searcher = QuantileBasedSurrogateSearcher(self._space, self._past, random_seed=self._seed)
        return SingleObjectiveScheduler(self._space, "loss", searcher=searcher)


def ours(name: str) -> Callable[[Sequence[Task], int], Any]:
    """Returns a suggester of `recommended`, or of `gp` without a past."""

    def create(past: Sequence[Task], seed: int) -> Any:
        if name == "gp":
            from dre_jax.methods.baselines.gp import GaussianProcess

            return Suggester(GaussianProcess(), None, seed=seed)
        space = Space({f"x{d}": Float(0.0, 1.0) for d in range(past[0].n_columns)})
        studies = {
            one.name: [
                Evaluated(dict(zip(space, row.tolist(), strict=True)), float(value))
                for row, value in zip(one.X.astype(float), one.y, strict=True)
            ]
            for one in past
        }
        surrogate = Surrogate.fit(past_of(space, studies, direction="maximize"), quiet=True)
        return Suggester(surrogate.method, surrogate.params, seed=seed)

    return create


TUNERS: dict[str, Callable[[Sequence[Task], int], Any]] = {
    "recommended": ours("recommended"),
    "gp": ours("gp"),
    "multi-task-gp": MultiTaskGP,
    "bounding-box": BoundingBox,
    "quantiles": Quantiles,
    "meta-tpe": MetaTPE,
}


def past_rows(tasks: Sequence[Task], n_tasks: int, n_rows: int) -> list[Task]:
    """Returns random rows of some tasks."""
    random = np.random.default_rng(0)
    some = spread(tasks, n_tasks)
    rows = [random.permutation(one.n_rows)[:n_rows] for one in some]
    return [Task(one.name, one.X[part], one.y[part]) for one, part in zip(some, rows, strict=True)]


def spread(tasks: Sequence[Task], n: int) -> list[Task]:
    """Returns n tasks of a list, evenly spaced, since tasks of one origin are neighbours."""
    return [tasks[i] for i in np.linspace(0, len(tasks) - 1, min(n, len(tasks))).round().astype(int)]


def main() -> None:
    """Runs what the files do not have, and prints regrets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tuners", nargs="+", choices=TUNERS, default=list(TUNERS))
    parser.add_argument("--past", default="5x20", help="tasks x rows")
    parser.add_argument("--tasks", type=int, default=4, help="test tasks of each search space")
    parser.add_argument("--trials", type=int, default=50)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    n_tasks, n_rows = map(int, args.past.split("x"))
    regrets = {}
    for tuner in args.tuners:
        path = args.out / f"{tuner} {args.past}.json"
        results = read_results(path) if path.exists() else Results()
        for name in bundled.spaces():
            space = bundled.load(name)
            past = past_rows(list(space.train.values()), n_tasks, n_rows)
            for task in spread(list(space.test.values()), args.tasks):
                if task.name in results.traces.get(name, {}):
                    continue
                with redirect_stdout(StringIO()):
                    method = TUNERS[tuner](past, 0)
                    trace = run_host(method, task.X, task.y, space.designs[task.name]["test0"], args.trials)
                results = add_trace(results, name, task.name, "test0", trace)
                write_results(path, results)
                print(tuner, name, task.name, f"{1 - trace[-1]:.4f}", flush=True)
        regrets[tuner] = np.array(
            [1.0 - run[-1][: args.trials + 1] for run in sorted(results.runs(), key=lambda run: run[:2])]
        )
    at = [t for t in AT if t <= args.trials]
    rows = [[name, *(mean_cell(values[:, t]) for t in at)] for name, values in regrets.items()]
    print(f"\n{len(next(iter(regrets.values())))} tasks, past {args.past}\n")
    print(markdown_table(["tuner", *(f"regret at {t}" for t in at)], rows))
    first = next(iter(regrets))
    rows = [[f"{name} - {first}", *(mean_cell((v - regrets[first])[:, t]) for t in at)] for name, v in regrets.items()]
    print("\n" + markdown_table(["paired", *(f"at {t}" for t in at)], rows[1:]))


if __name__ == "__main__":
    main()
