"""Methods on families of test functions: result files in the format of HPO-B's, which `dre-jax report` compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dre_jax.data.results import Results, write_results
from dre_jax.errors import ConfigError
from dre_jax.functions.families import FAMILIES, Family, FamilyTask, stack_tasks
from dre_jax.functions.optimize import FunctionSearches, optimize_functions
from dre_jax.methods.registry import find, real_name
from dre_jax.methods.storage.provenance import versions
from dre_jax.search.batch import run_id
from dre_jax.tuning.past.tasks import Evaluated, Past, past_of
from dre_jax.tuning.surrogates.surrogate import Surrogate


@dataclass(frozen=True, kw_only=True)
class BenchConfig:
    """Searches of each method and family."""

    n_tasks: int = 5
    n_seeds: int = 5
    n_trials: int = 50
    n_past_studies: int = 3
    n_past_trials: int = 20


def find_family(name: str) -> Family:
    """Returns the family of a name, with or without its hyphens. Raises `ConfigError`; the message has all names.

    Example:
      >>> find_family("hartmann6").name
      'hartmann-6'
    """
    by_letters = {known.replace("-", ""): family for known, family in FAMILIES.items()}
    try:
        return by_letters[name.replace("-", "")]
    except KeyError:
        raise ConfigError(f"a family must be one of {', '.join(FAMILIES)}, but got {name!r}") from None


def run_bench(
    method: str,
    families: Sequence[Family],
    folder: Path,
    config: BenchConfig,
    *,
    quiet: bool = True,
) -> Results:
    """Runs a method on families, and writes ``METHOD.json``; an interrupted call continues after the finished searches.

    The incumbents of a run are 1 minus the regret of the trial with the best value so far: 1 at the optimum, 0 at the
    median random point or beyond, and before the first trial. A method that learns from past tasks is fitted to random
    past studies of other tasks of each family.
    """
    name = real_name(method)
    traces: dict[str, Mapping[str, Mapping[str, np.ndarray]]] = {}
    for family in families:
        tasks = [family.draw(random(family.name, "task", i)) for i in range(config.n_tasks)]
        options: dict[str, Any] = {"method": name}
        if find(name).transfer:
            options = {"surrogate": Surrogate.fit(draw_past(family, config), method=name, quiet=quiet)}
        searches = search_tasks(
            family,
            tasks,
            n_trials=config.n_trials,
            seeds=config.n_seeds,
            path=folder / "searches" / f"{name}-{family.name}.jsonl",
            quiet=quiet,
            **options,
        )
        rows = incumbents(family, tasks, searches)
        traces[family.name] = {
            str(i): {str(seed): trace for seed, trace in enumerate(of_task)} for i, of_task in enumerate(rows)
        }
    protocol = {"benchmark": "test functions", "past": f"{config.n_past_studies}x{config.n_past_trials}"}
    results = Results(traces, {"method": name, "protocol": protocol, "versions": versions()})
    write_results(folder / f"{name}.json", results)
    return results


def search_tasks(family: Family, tasks: Sequence[FamilyTask], **options: Any) -> FunctionSearches:
    """Returns searches of tasks of a family in float64, with its noise; options as `optimize_functions`."""
    key = jax.random.key(0) if family.noise else None
    with jax.enable_x64(True):
        return optimize_functions(family.loss, stack_tasks(tasks), family.space, key=key, **options)


def incumbents(family: Family, tasks: Sequence[FamilyTask], searches: FunctionSearches) -> np.ndarray:
    """Returns f64[tasks, seeds, T + 1]: 1 minus the regret without noise of the trial with the best value so far."""
    rows = np.clip(1.0 - regrets(family, tasks, searches), 0.0, 1.0)
    # With noise, a better value may be that of a worse point; a trace does not fall.
    best: np.ndarray = np.maximum.accumulate(np.pad(rows, ((0, 0), (0, 0), (1, 0))), axis=2)
    return best


def regrets(family: Family, tasks: Sequence[FamilyTask], searches: FunctionSearches) -> np.ndarray:
    """Returns f64[tasks, seeds, T]: the regret without noise of the trial with the best value so far."""
    *n_searches, n_trials, n_parts = searches.points.shape
    pairs = zip(tasks, searches.points, strict=True)
    rows = [family.regret(task, family.losses(task, points.reshape(-1, n_parts))) for task, points in pairs]
    return at_best(searches.values, np.reshape(rows, (*n_searches, n_trials)))


def at_best(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Returns the number, of f64[..., T], of the trial with the lowest value so far.

    Example:
      >>> at_best(np.array([3.0, 4.0, 2.0]), np.array([0.5, 0.1, 0.7])).tolist()
      [0.5, 0.5, 0.7]
    """
    is_best = values <= np.minimum.accumulate(values, axis=-1)
    latest = np.maximum.accumulate(np.where(is_best, np.arange(values.shape[-1]), 0), axis=-1)
    return np.take_along_axis(numbers, latest, axis=-1)


def draw_past(family: Family, config: BenchConfig) -> Past:
    """Returns random studies of other tasks of a family."""
    studies = {}
    for i in range(config.n_past_studies):
        rng = random(family.name, "past", i)
        task = family.draw(rng, refine=False)
        points = rng.random((config.n_past_trials, family.n_columns))
        noise = float(task.noise) * rng.standard_normal(len(points))
        values = family.losses(task, points) + noise
        pairs = zip(map(family.space.params, points), values.tolist(), strict=True)
        studies[f"study {i}"] = [Evaluated(params, value) for params, value in pairs]
    return past_of(family.space, studies, direction="minimize")


def random(*names: object) -> np.random.Generator:
    """Returns a random generator that depends only on names."""
    return np.random.default_rng([run_id(str(name)) for name in names])
