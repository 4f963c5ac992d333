"""Searches a second: ``python -m benchmarks.many [--only many many-mixture loop botorch optuna-gp optuna-tpe ask]``.

Prints, for searches of 50 trials of Hartmann's function of six columns without past studies: the wall and processor
time of a search and the mean of the best values, for ``optimize_functions``, a loop of ``Optimizer``, BoTorch's
``SingleTaskGP`` with ``LogExpectedImprovement``, and Optuna's samplers with one process a core. Then the suggestions a
second of ``Optimizers`` beside a loop of ``Optimizer`` (``ask``).

``--branin 1 10 100`` measures as many searches of 30 trials of Branin's function, each number in one call, and the
memory of the process so far: rows of docs/how-to/many-searches.md, which ``scripts/draw_figures.py growth`` draws.
Programs are compiled before the clock starts; ``--cold`` starts it before. BoTorch and Optuna's ``GPSampler`` need
torch==2.13.0.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax import Optimizer, Optimizers, optimize_functions
from dre_jax.functions import unit_space
from dre_jax.functions.formulas import branin, hartmann
from dre_jax.hpob.workers import end_with_parent
from dre_jax.runtime.devices import cores
from dre_jax.tuning import EngineConfig

TRIALS, COLUMNS = 50, 6
SPACE = unit_space(COLUMNS)
_CORNER, _WIDTH = np.array([-5.0, 0.0], np.float32), np.float32(15.0)


def hartmann_task(_: Any, x: jax.Array) -> jax.Array:
    """The function of all contestants."""
    return hartmann(x)


def branin_task(_: Any, x: jax.Array) -> jax.Array:
    """On the unit square."""
    return branin(jnp.asarray(_CORNER, x.dtype) + x * _WIDTH)


_evaluate = jax.jit(hartmann)


def value(point: Any) -> float:
    """The loss at a point of the unit cube, for loops in Python."""
    return float(_evaluate(np.asarray(point, np.float32)))


def many(method: str, n: int) -> np.ndarray:
    """`optimize_functions`."""
    return optimize_functions(hartmann_task, None, COLUMNS, n_trials=TRIALS, seeds=n, method=method).best[0, :, -1]


def single(seed: int) -> Optimizer:
    """An `Optimizer` by `gp`, as the others."""
    return Optimizer(SPACE, seed=seed, config=EngineConfig(method="gp"))


def loop(n: int) -> np.ndarray:
    """One `Optimizer` after the other."""
    best = []
    for seed in range(n):
        optimizer = single(seed)
        optimizer.optimize(lambda trial: value([trial[name] for name in SPACE]), TRIALS)
        best.append(optimizer.best.value)
    return np.array(best, np.float64)


def botorch(n: int) -> np.ndarray:
    """Four Sobol points, then the maxima of LogEI: 10 restarts from 512 points."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    bounds, best = torch.tensor([[0.0] * COLUMNS, [1.0] * COLUMNS], dtype=torch.double), []
    for seed in range(n):
        torch.manual_seed(seed)
        x = torch.quasirandom.SobolEngine(COLUMNS, scramble=True, seed=seed).draw(4, dtype=torch.double)
        y = torch.tensor([[-value(row)] for row in x.tolist()], dtype=torch.double)
        while len(x) < TRIALS:
            model = SingleTaskGP(x, (y - y.mean()) / y.std())
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            acquisition = LogExpectedImprovement(model, ((y - y.mean()) / y.std()).max())
            point, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
            x, y = torch.cat([x, point]), torch.cat([y, torch.tensor([[-value(point[0].tolist())]])])
        best.append(-float(y.max()))
    return np.array(best)


def optuna(sampler: str, n: int) -> np.ndarray:
    """One process a core."""
    with multiprocessing.get_context("spawn").Pool(cores(), end_with_parent) as pool:
        result = np.array(pool.map(partial(_optuna_search, sampler), range(n)))
        pool.close()
        pool.join()
    return result


def _optuna_search(sampler: str, seed: int) -> Any:
    import optuna as library

    library.logging.set_verbosity(library.logging.ERROR)
    if sampler == "gp":
        import torch

        torch.set_num_threads(1)  # of a core
    kind: Any = library.samplers.GPSampler if sampler == "gp" else library.samplers.TPESampler
    study = library.create_study(sampler=kind(seed=seed))
    study.optimize(lambda trial: value([trial.suggest_float(name, 0.0, 1.0) for name in SPACE]), n_trials=TRIALS)
    return study.best_value


CONTESTANTS: dict[str, tuple[Callable[[int], np.ndarray], int]] = {
    "many": (partial(many, "gp"), 1000),
    "many-mixture": (partial(many, "gp-mixture"), 100),
    "loop": (loop, 10),
    "botorch": (botorch, 2),
    "optuna-gp": (partial(optuna, "gp"), 4),
    "optuna-tpe": (partial(optuna, "tpe"), 20),
}
"""Functions of a number of searches, and how many are measured."""


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.many", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=[*CONTESTANTS, "ask"], default=[*CONTESTANTS, "ask"])
    parser.add_argument(
        "--searches",
        type=int,
        help="of each contestant, in place of those in `CONTESTANTS`",
    )
    parser.add_argument("--branin", type=int, nargs="+", metavar="N", help="measure N searches of Branin's function")
    parser.add_argument("--cold", action="store_true", help="count the compilation")
    options = parser.parse_args(arguments)
    if options.branin:
        print("| searches | seconds | searches a second | mean regret | GiB at most |\n|---:|---:|---:|---:|---:|")
        for n in options.branin:
            run = partial(optimize_functions, branin_task, None, 2, n_trials=30, method="gp")
            if not options.cold:
                run(seeds=1)
            searches, wall, _ = clock(partial(run, seeds=n))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            regret = np.mean(searches.best[0, :, -1]) - 0.397887
            print(f"| {n:,} | {wall:.1f} | {n / wall:.0f} | {regret:.1e} | {peak:.2f} |", flush=True)
        return
    print("| contestant | searches | wall, s | processor, s | searches a second | processor s a search | best |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in options.only:
        print("\n".join(ask_rows()) if name == "ask" else contest(name, options), flush=True)


def contest(name: str, options: argparse.Namespace) -> str:
    """The row of a contestant."""
    run, n = CONTESTANTS[name]
    n = options.searches or n
    if name in ("many", "many-mixture", "loop") and not options.cold:
        run(1)
    best, wall, processor = clock(lambda: run(n))
    error = best.std() / np.sqrt(n)
    numbers = f"{wall:.1f} | {processor:.1f} | {n / wall:.3f} | {processor / n:.3f}"
    return f"| {name} | {n} | {numbers} | {best.mean():.4f} ± {error:.4f} |"


def ask_rows() -> Iterator[str]:
    """Suggestions of 64 studies after 12 trials of each, 4 of each study."""
    n, before, measured = 64, 12, 4
    studies = Optimizers(SPACE, n, method="gp")
    singles = [single(seed) for seed in range(n)]

    def step(_: int) -> None:
        trials = studies.ask()
        studies.tell(trials, [value(list(trial.params.values())) for trial in trials])

    def step_singles(_: int) -> None:
        for optimizer in singles:
            trial = optimizer.ask()
            optimizer.tell(trial, value(list(trial.params.values())))

    for name, run in (("Optimizers", step), ("a loop of Optimizer", step_singles)):
        for i in range(before):
            run(i)
        _, wall, processor = clock(partial(list, map(run, range(measured))))
        rate = n * measured / wall
        yield f"{name}: {rate:.0f} suggestions a second, {1e3 * processor / n / measured:.1f} ms of processors each"


def clock(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """A result, seconds, and seconds of processors, of child processes too."""
    processors = [resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN]

    def used() -> float:
        return sum(sum(resource.getrusage(one)[:2]) for one in processors)

    start, before = time.monotonic(), used()
    result = run()
    return result, time.monotonic() - start, used() - before


if __name__ == "__main__":
    main()
