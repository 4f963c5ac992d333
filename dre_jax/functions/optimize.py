"""Many searches of functions in JAX: tasks x seeds. Each search is a study as `Optimizer` runs it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.checks import check_counts, check_seed
from dre_jax.data.checks import show
from dre_jax.errors import ConfigError, DataError
from dre_jax.functions.blocks import SearchBlocks
from dre_jax.functions.objective import Objective, digest
from dre_jax.functions.program import ProgramConfig
from dre_jax.functions.search_file import FinishedSearch, SearchFile
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.runtime.progress import Bar
from dre_jax.search.execution import ExecutionConfig, mesh_of
from dre_jax.search.method import Method
from dre_jax.space.json_format import to_json
from dre_jax.space.parameters import Float, Parameter
from dre_jax.space.space import Space
from dre_jax.suggest.hypervolume import dominates, hypervolume
from dre_jax.suggest.pending import PendingStrategy
from dre_jax.suggest.precision import supports_double
from dre_jax.summaries import summary
from dre_jax.tuning.compiled.designs import program_config, program_engine
from dre_jax.tuning.objectives.criterion import Surrogates
from dre_jax.tuning.objectives.single import DEFAULT_METHOD
from dre_jax.tuning.trials.objectives import Objectives, objectives_of, value_or_mapping

MAX_TRIALS = 4096
"""Maximum number of trials of a search: a program has room for all of them."""


class FunctionSearches(NamedTuple):
    """The trials of A tasks x B seeds searches, T each."""

    points: np.ndarray
    """f64[A, B, T, P], of the unit cube; `Space.params` has the configuration of a point."""
    values: np.ndarray
    """f64[A, B, T], NaN where a trial failed; of several objectives f64[A, B, T, M]."""
    best: np.ndarray
    """f64[A, B, T]: the best value of the feasible trials so far, NaN before the first; of each of several objectives,
    f64[A, B, T, M]."""
    front: np.ndarray | None = None
    """bool[A, B, T]: the Pareto-optimal trials of several objectives; None for one."""
    hypervolume: np.ndarray | None = None
    """f64[A, B], between the front and the reference point; None without one."""
    constraints: Mapping[str, np.ndarray] = MappingProxyType({})
    """f64[A, B, T] by name, NaN where unknown."""
    costs: np.ndarray | None = None
    """f64[A, B, T], NaN where unknown; None without costs."""

    def __repr__(self) -> str:
        n_tasks, n_seeds, n_trials = self.values.shape[:3]
        return summary(self, n_tasks=n_tasks, n_seeds=n_seeds, n_trials=n_trials, n_coordinates=self.points.shape[-1])


def unit_space(n: int) -> Space:
    """Returns the space of n numbers from 0 to 1, x0, x1 and so on: that of functions of an array.

    Example:
      >>> list(unit_space(2))
      ['x0', 'x1']
    """
    return Space({f"x{i}": Float(0.0, 1.0) for i in range(n)})


@with_default_float_errors
def optimize_functions(
    function: Callable[..., Any],
    tasks: Any,
    space: Space | Mapping[str, Parameter] | int,
    *,
    n_trials: int,
    seeds: int | Sequence[int] = 1,
    method: str | Method = DEFAULT_METHOD,
    surrogate: Surrogates = None,
    direction: str = "minimize",
    directions: Mapping[str, str] | None = None,
    key: Array | None = None,
    batch_size: int = 1,
    pending_strategy: PendingStrategy = "mean",
    failure_model: bool = True,
    budget: float | None = None,
    reference_point: Any = None,
    path: str | os.PathLike[str] | None = None,
    execution: ExecutionConfig | None = None,
    quiet: bool = True,
) -> FunctionSearches:
    """Optimises a function in JAX on many tasks, with many seeds each, in one compiled program.

    A search evaluates what an `Optimizer` of the same seed does, up to the rounding of float64. The search for
    candidates has maxima of almost equal value, so late trials of a few searches differ.

    Searches run one by one on each core of a CPU, and side by side on all other devices.

    Args:
      function: of a task and a point of the unit cube, f[D], or of hyperparameters by name: a choice is its position,
        and one that is not active has any value. Returns the value, a scalar: a number, or true or false for 1 or 0;
        NaN is a failure. With several objectives, returns a mapping of them to values, or values in their order; with
        constraints or costs, a `Measurement`. Computes in float64 if this process has set `jax_enable_x64` and the
        method does so too, else in float32.
      tasks: arrays with the tasks in front; the function gets one entry. None for a function without tasks.
      space: number of coordinates of the point, or a search space (or its hyperparameters by name).
      n_trials: T, at most 4096, and a multiple of the batch size.
      seeds: the seeds of each task's searches; a number stands for the seeds 0, 1 and so on.
      method: without past tasks, by its name or the method itself.
      surrogate: knowledge of past tasks, in place of a method. With several objectives, a mapping of them to
        surrogates or None.
      direction: of the values, "minimize" or "maximize".
      directions: of several objectives, by name, in place of ``direction``.
      key: key of the noise. The function's third argument is then a key of task, seed and trial.
      batch_size: trials that are suggested before any of them is evaluated.
      pending_strategy: as `EngineConfig.pending_strategy`.
      failure_model: as `EngineConfig.failure_model`. The model is compiled once a trial fails.
      budget: as `EngineConfig.budget`, of each search.
      reference_point: as `EngineConfig.reference_point`.
      path: file of finished searches, one line each, from which an interrupted call continues.
      execution: how devices are used.
      quiet: show no progress.

    Raises:
      ConfigError: for a function that JAX cannot trace, that calls the host or returns anything but numbers, and
        for settings that are out of range.
      DataError: for tasks of different numbers, a surrogate of another space, or a file of other searches.

    Example:
      >>> def bowl(centre, x):
      ...     return ((x - centre) ** 2).sum()
      >>> searches = optimize_functions(bowl, np.array([0.2, 0.7]), 2, n_trials=3, seeds=2, method="random")
      >>> searches.points.shape, searches.best.shape
      ((2, 2, 3, 2), (2, 2, 3))
    """
    objectives = objectives_of(direction, directions)
    takes_point = isinstance(space, (int, np.integer))
    if isinstance(space, (int, np.integer)):
        check_counts(1, space=space)
        space = unit_space(space)
    elif not isinstance(space, Space):
        space = Space(space)
    seeds = _seed_list(seeds)
    _check_trials(n_trials, batch_size)
    if not isinstance(key, Array | None):
        raise ConfigError(f"key must be a key as of jax.random.key(0), but got {key!r}")
    engine = program_engine(
        space,
        objectives,
        surrogate,
        method,
        pending_strategy=pending_strategy,
        failure_model=failure_model,
        budget=budget,
        reference_point=reference_point,
    )
    study = program_config(engine)
    # A program in float32 has no numbers in float64.
    double = bool(jax.config.jax_enable_x64) and supports_double(study.method)  # type: ignore[attr-defined]
    with jax.enable_x64(double):
        tasks, n_tasks = _read_tasks(tasks)
    objective = Objective(function, space, takes_point, key is not None, double, objectives)
    noise_key = jax.random.key(0) if key is None else key
    trace = objective.check(_first(tasks), noise_key)
    program = ProgramConfig(study, objective, trace.shape, batch_size, mesh_of(execution))
    search = SearchBlocks(program, engine, tasks, noise_key, n_trials)
    fingerprints = {name: None if fitted is None else fitted.fingerprint for name, fitted in engine.surrogates.items()}
    origin = {
        "space": None if path is None else to_json(space),  # a formula may be a function, which no file keeps
        "method": repr(study.method),
        "surrogate": value_or_mapping(fingerprints),
        "direction": direction,
        "directions": None if directions is None else dict(directions),
        "budget": budget,
        "reference_point": study.reference,
        "n_trials": n_trials,
        "batch": [batch_size, pending_strategy],
        "failure_model": failure_model,
        "function": [trace.digest, double],
        "tasks": digest(*jax.tree.leaves(tasks), jax.random.key_data(noise_key)),
    }
    file = SearchFile(None if path is None else Path(path), origin)
    search_ids = [(task, seed) for task in range(n_tasks) for seed in seeds]
    missing = [search_id for search_id in search_ids if search_id not in file.finished]
    with Bar("searches", len(search_ids), quiet=quiet, start=len(search_ids) - len(missing)) as bar:
        for finished in search.run(missing):
            file.add(finished)
            bar.advance_to(len(file.finished))
    shape = n_tasks, len(seeds), n_trials
    results = [file.finished[search_id] for search_id in search_ids]
    arrays: FinishedSearch = jax.tree.map(lambda *rows: np.reshape(rows, (*shape, *np.shape(rows)[2:])), *results)
    return _summarise(arrays, objectives, trace.constraints, study.reference)


def _summarise(
    searches: FinishedSearch, objectives: Objectives, names: Sequence[str], reference: tuple[float, ...] | None
) -> FunctionSearches:
    """Returns the results of searches, whose arrays have tasks and seeds in front, with the best trials."""
    points, values, constraints, costs = searches
    by_name = {} if constraints is None else {name: constraints[..., i] for i, name in enumerate(names)}
    columns = values.reshape(*points.shape[:3], len(objectives))
    counts = ~np.isnan(columns).any(axis=-1)
    if constraints is not None:
        counts &= np.all(constraints <= 0.0, axis=-1)
    columns = np.where(counts[..., None], columns, np.nan)
    best = np.stack([best_so_far(columns[..., i], direction) for i, (_, direction) in enumerate(objectives)], axis=-1)
    if len(objectives) == 1:
        return FunctionSearches(points, values, best[..., 0], constraints=by_name, costs=costs)
    responses = np.array([objective.sign for objective in objectives]) * columns
    front, volumes = np.zeros(counts.shape, bool), None if reference is None else np.zeros(counts.shape[:2])
    for i in np.ndindex(counts.shape[:2]):
        front[i] = counts[i] & ~dominates(responses[i]).any(axis=0)
        if volumes is not None:
            volumes[i] = hypervolume(responses[i][front[i]], np.array(reference))
    return FunctionSearches(points, values, best, front, volumes, by_name, costs)


def best_so_far(values: np.ndarray, direction: str) -> np.ndarray:
    """Returns the best of values f64[..., T] after each trial; NaN before the first.

    Example:
      >>> best_so_far(np.array([np.nan, 2.0, 3.0, np.nan, 1.0]), "minimize").tolist()
      [nan, 2.0, 2.0, 2.0, 1.0]
    """
    best: np.ndarray = (np.fmin if direction == "minimize" else np.fmax).accumulate(values, axis=-1)
    return best


def _seed_list(seeds: Any) -> list[int]:
    if not isinstance(seeds, Iterable):
        check_counts(1, seeds=seeds)
        seeds = range(seeds)
    result = list(seeds)
    for seed in result:
        check_seed(seed)
    if not result:
        raise ConfigError("searches need at least one seed, but got none")
    return [int(seed) for seed in result]


def _check_trials(n_trials: int, batch_size: int) -> None:
    check_counts(1, n_trials=n_trials, batch_size=batch_size)
    if n_trials > MAX_TRIALS:
        raise ConfigError(f"1 <= n_trials <= {MAX_TRIALS} must hold, but got n_trials={n_trials}")
    if n_trials % batch_size:
        raise ConfigError(f"n_trials must be a multiple of batch_size, but got {n_trials} and {batch_size}")


def _read_tasks(tasks: Any) -> tuple[Any, int]:
    """Returns tasks as arrays of JAX, and their number."""
    try:
        tasks = jax.tree.map(jnp.asarray, tasks)
    except TypeError as error:
        raise DataError(f"tasks must be arrays of numbers, or None, but got {show(tasks)}") from error
    shapes = [leaf.shape for leaf in jax.tree.leaves(tasks)]
    counts = {shape[:1] for shape in shapes}
    if len(counts) > 1 or () in counts or (0,) in counts:
        rule = "tasks must be arrays with the same number of tasks in front, at least one"
        raise DataError(f"{rule}, but have the shapes {', '.join(map(str, shapes))}")
    return tasks, shapes[0][0] if shapes else 1


def _first(tasks: Any) -> Any:
    return jax.tree.map(lambda a: a[0], tasks)
