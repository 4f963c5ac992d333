"""Past evaluations in the layout of Syne Tune's blackbox repository (extra `parquet`).

A folder a benchmark: `configspace.json`, `metadata.json` with the names of tasks and objectives, and the evaluations,

- of the same configurations on all tasks (LCBench, FCNet, NAS-Bench-201, TabRepo): `hyperparameters.parquet`, and
  `objectives_evaluations.npy`, (tasks, configurations, seeds, fidelities, objectives);
- of each task's own (PD1, HPO-B): `TASK-hyperparameters.parquet` and `TASK-objectives_evaluations.npy`, without the
  first axis;
- or a row each (XGBoost and DeepAR of Salinas et al. 2020): `data-TASK.parquet`.

Its YAHPO has no evaluations, only networks that imitate them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dre_jax.data.files import read_json
from dre_jax.errors import ConfigError, DataError, MissingExtraError
from dre_jax.tuning.past.tasks import PastTasks, PastTrial, collect_past_tasks
from dre_jax.tuning.space.parameters import Categorical, Float, Int, Parameter
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.table_cells import read_cells

_DEFAULT_METRIC = "metric_default"


def from_syne_tune(
    folder: str | os.PathLike[str],
    space: Space | None = None,
    *,
    direction: str,
    objective: str | None = None,
    tasks: Sequence[str] | None = None,
) -> PastTasks:
    """Past evaluations in a folder of Syne Tune's blackbox repository.

    A configuration's value is the mean over the seeds of the last number of its curve, as a curve that stopped early is
    filled up with NaN.

    Args:
      folder: the benchmark's.
      space: what they are configurations of; by default what the folder says, `past.space`.
      direction: whether the objective is minimised or maximised: the folder does not say.
      objective: its name; by default the folder's own choice.
      tasks: their names; by default all.

    Raises:
      DataError: for a folder that is none of these, or an objective or task that is not in it.
      ConfigError: for an unknown direction.
      MissingExtraError: without pyarrow.
    """
    folder = Path(folder)
    metadata = read_json(folder / "metadata.json")
    if not isinstance(metadata, dict):
        raise DataError(f"{folder / 'metadata.json'} must hold a JSON object, but does not")
    space = read_config_space(folder / "configspace.json") if space is None else space
    known, objectives = _names(folder, metadata, "task_names"), _names(folder, metadata, "objectives_names")
    name = _objective(folder, objective, metadata, objectives)
    wanted = known if tasks is None else list(tasks)
    unknown = [task for task in wanted if task not in known]
    if unknown:
        raise DataError(f"{folder}: tasks are {', '.join(known)}, but got {unknown[0]!r}")
    evaluated = _evaluated(folder, space, wanted, known, objectives, name)
    return collect_past_tasks(space, dict(evaluated), direction=direction)


def read_config_space(path: str | os.PathLike[str]) -> Space:
    """The space in a `configspace.json` of Syne Tune's.

    Finite ranges and ordinals are ordered categoricals; constants are left out.

    Raises:
      DataError: for a file that holds none; the message names the hyperparameter.
    """
    given = read_json(path)
    if not isinstance(given, dict):
        raise DataError(f"{path} must hold a JSON object, but does not")
    try:
        return Space({name: _parameter(name, domain) for name, domain in given.items() if isinstance(domain, Mapping)})
    except ConfigError as error:
        raise DataError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{path} must hold domains as Syne Tune writes them, but: {error!r}") from error


def _parameter(name: str, domain: Mapping[str, Any]) -> Parameter:
    kind, given = domain["domain_cls"], domain["domain_kwargs"]
    log = "Log" in str(domain.get("sampler_cls", ""))
    if kind == "Float":
        return Float(given["lower"], given["upper"], log=log and given["lower"] > 0)
    if kind == "Integer":
        return Int(given["lower"], given["upper"], log=log and given["lower"] > 0)
    if kind == "FiniteRange":
        return Categorical(tuple(dict.fromkeys(_finite_range(**given))), ordered=True)
    if kind in ("Categorical", "Ordinal", "OrdinalNearestNeighbor"):
        return Categorical(tuple(given["categories"]), ordered=kind != "Categorical")
    raise ConfigError(f"{name} must be a domain of Syne Tune's, but got {kind!r}")


def _finite_range(
    lower: float, upper: float, size: int, log_scale: bool = False, cast_int: bool = False
) -> list[float | int]:
    values = np.geomspace(lower, upper, size) if log_scale else np.linspace(lower, upper, size)
    return [int(np.rint(value)) if cast_int else float(value) for value in values]


def _evaluated(
    folder: Path, space: Space, tasks: Sequence[str], known: Sequence[str], objectives: Sequence[str], name: str
) -> Iterator[tuple[str, list[PastTrial]]]:
    """The trials of each task."""
    at = objectives.index(name)
    shared = folder / "hyperparameters.parquet"
    if shared.exists():
        configurations = _configurations(shared, space)
        path = folder / "objectives_evaluations.npy"
        table = _array(path, 5)
        if table.shape[0] != len(known):
            raise DataError(f"{path} must hold {len(known)} tasks, but holds {table.shape[0]}")
        for task in tasks:
            yield task, _trials(path, configurations, table[known.index(task)], at)
        return
    for task in tasks:
        path = folder / f"{task}-objectives_evaluations.npy"
        rows = folder / f"data-{task}.parquet"
        if path.exists():
            configurations = _configurations(folder / f"{task}-hyperparameters.parquet", space)
            yield task, _trials(path, configurations, _array(path, 4), at)
        elif rows.exists():
            yield task, _rows(rows, space, name)
        else:
            raise DataError(f"{folder} must hold evaluations of {task!r}, but has neither {path.name} nor {rows.name}")


def _trials(path: Path, configurations: Sequence[Mapping[str, Any]], table: np.ndarray, at: int) -> list[PastTrial]:
    """Trials from an array (configurations, seeds, fidelities, objectives)."""
    if len(table) != len(configurations) or at >= table.shape[-1]:
        raise DataError(f"{path} must hold {len(configurations)} configurations, but is of shape {table.shape}")
    values = _final(np.asarray(table[..., at], np.float64))
    return [PastTrial(params, float(value)) for params, value in zip(configurations, values, strict=True)]


def _final(curves: np.ndarray) -> np.ndarray:
    """The mean over seeds of the last number of curves f64[n, seeds, fidelities]; NaN where there is none."""
    has = ~np.isnan(curves)
    last = curves.shape[-1] - 1 - np.argmax(has[..., ::-1], axis=-1)
    ends = np.take_along_axis(curves, last[..., None], axis=-1)[..., 0]
    seeds = ~np.isnan(ends)
    count = seeds.sum(axis=-1)
    return np.where(count > 0, np.where(seeds, ends, 0.0).sum(axis=-1) / np.maximum(count, 1), np.nan)


def _rows(path: Path, space: Space, name: str) -> list[PastTrial]:
    """Trials from a table of a row an evaluation: of each configuration the mean where it was trained longest."""
    at = path.parent / "fidelityspace.json"
    fidelities = list(read_json(at)) if at.exists() else []
    columns = _columns(path, [*space, *fidelities, name])
    found: dict[str, tuple[Any, dict[str, Any], list[float]]] = {}
    for cells in zip(*columns.values(), strict=True):
        row = dict(zip(columns, cells, strict=True))
        value, trained = row[name], tuple(row[fidelity] for fidelity in fidelities)
        if value is None or np.isnan(value):
            continue
        params = read_cells(space, row)
        longest, _, values = found.get(repr(params), (trained, params, []))
        if trained >= longest:
            found[repr(params)] = (trained, params, [value] if trained > longest else [*values, value])
    return [PastTrial(params, float(np.mean(values))) for _, params, values in found.values()]


def _configurations(path: Path, space: Space) -> list[dict[str, Any]]:
    columns = _columns(path, list(space))
    return [read_cells(space, dict(zip(columns, cells, strict=True))) for cells in zip(*columns.values(), strict=True)]


def _columns(path: Path, names: Sequence[str]) -> dict[str, list[Any]]:
    """Columns of a parquet file as Python values."""
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    try:
        table = parquet.read_table(path)
    except (ArrowException, OSError) as error:
        raise DataError(f"{path} must be a parquet file, but: {str(error).splitlines()[0]}") from error
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise DataError(f"{path} must have the columns {', '.join(names)}, but has no {missing[0]!r}")
    return {name: table.column(name).to_pylist() for name in names}


def _array(path: Path, n_axes: int) -> np.ndarray:
    try:
        found = np.load(path, allow_pickle=False, mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} must be an array as NumPy writes it, but: {str(error).splitlines()[0]}") from error
    if not isinstance(found, np.ndarray) or found.ndim != n_axes or found.dtype.kind not in "fiu":
        raise DataError(f"{path} must be an array of numbers of {n_axes} axes, but is not")
    return found


def _names(folder: Path, metadata: Mapping[str, Any], key: str) -> list[str]:
    names = metadata.get(key)
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise DataError(f"{folder / 'metadata.json'} must list {key}, but does not")
    return names


def _objective(folder: Path, given: str | None, metadata: Mapping[str, Any], objectives: Sequence[str]) -> str:
    name = (
        given if given is not None else metadata.get(_DEFAULT_METRIC, objectives[0] if len(objectives) == 1 else None)
    )
    if name not in objectives:
        raise DataError(f"{folder}: the objective must be one of {', '.join(objectives)}, but got {name!r}")
    return str(name)
