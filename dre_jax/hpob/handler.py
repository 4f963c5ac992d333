"""HPO-B's own handler, by its published interface: code written for `hpob_handler.HPOBHandler` runs with this one.

Written from the interface (Pineda Arango et al., HPO-B, NeurIPS 2021 Datasets and Benchmarks, and its repository), with
its incumbents to the last bit. What differs: search spaces are read at their first use; a wrong answer of a method
is an error that names the method; a task with a constant response gives 0.5 throughout instead of 0/0.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dre_jax.data import checks
from dre_jax.data.files import find_json, location
from dre_jax.data.hpob import DESIGNS, files_of, outline
from dre_jax.data.table_files import read_objects, read_tables
from dre_jax.errors import ConfigError, DataError
from dre_jax.hpob.continuous import Objective, read_ranges, run_continuous
from dre_jax.search.host import HostMethod, run_host
from dre_jax.summaries import summary

Datasets = dict[str, Any]


class LazySpaces(Mapping[str, Datasets]):
    """`{space: {dataset: ..}}` of files of tables laid over each other; the objects are those of the JSON.

    The first file decides which search spaces exist. If several files have a dataset, the last one counts. A search
    space is read and checked at the first access and then kept, so the memory is that of the spaces in use.

    Raises:
      DataError: at an access, for malformed content. An unknown search space is a KeyError, as in a dictionary.

    Example:
      >>> from dre_jax.data import bundled
      >>> tables = LazySpaces([bundled.path() / "meta-test-dataset.json.gz"])
      >>> list(tables)[0], sorted(next(iter(tables["svm"].values())))
      ('svm', ['X', 'y'])
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._read: dict[str, Datasets] = {}

    def __getitem__(self, space: str) -> Datasets:
        if space not in self._read:
            if space not in read_tables(self._paths[0]):
                raise KeyError(space)
            datasets: Datasets = {}
            for path in self._paths:
                for name, value in read_tables(path).get(space, {}).items():
                    checks.table(value, location(path, space, name))
                    arrays = value.items()
                    datasets[name] = {key: x.tolist() if isinstance(x, np.ndarray) else x for key, x in arrays}
            self._read[space] = datasets
        return self._read[space]

    def __iter__(self) -> Iterator[str]:
        return iter(read_tables(self._paths[0]))

    def __len__(self) -> int:
        return len(read_tables(self._paths[0]))


class HPOBHandler:
    """The benchmark's tables, surrogates, and two loops that evaluate a method.

    Example:
      >>> from dre_jax.data import bundled
      >>> from dre_jax import RandomSearch, Suggester
      >>> handler = HPOBHandler(root_dir=bundled.path(), mode="v3-test")
      >>> space = handler.get_search_spaces()[0]
      >>> trace = handler.evaluate(Suggester(RandomSearch()), space, handler.get_datasets(space)[0], "test0", 10)
      >>> len(trace), trace == sorted(trace)
      (11, True)
    """

    seeds = ("test0", "test1", "test2", "test3", "test4")

    meta_test_data: Mapping[str, Any]
    """`{space: {dataset: {"X": [[..]], "y": [[..]]}}}`; in the modes v1 and v2 all splits together."""
    meta_train_data: Mapping[str, Any] | None
    """The same of the training split; None in the modes v1 and v2, not there in v3-test."""
    meta_validation_data: Mapping[str, Any] | None
    """The same of the validation split."""
    bo_initializations: Mapping[str, Any]
    """`{space: {dataset: {seed: [rows]}}}`"""

    def __init__(
        self,
        root_dir: str | os.PathLike[str] = "hpob-data/",
        mode: str = "v3-test",
        surrogates_dir: str | os.PathLike[str] = "saved-surrogates/",
    ) -> None:
        """Opens a view of HPO-B's files; nothing large is read yet.

        Args:
          root_dir: their folder.
          mode: v1, v2, v3, v3-test or v3-train-augmented, see `dre_jax.data.load_space`.
          surrogates_dir: folder of the surrogates; needed for `evaluate_continuous` only.

        Raises:
          ConfigError, DataError: for an unknown mode, or missing files.
        """
        self.mode = mode
        self.surrogates_dir = str(surrogates_dir)
        self._root = Path(root_dir)
        for split, stems in files_of(mode).items():
            paths = [find_json(root_dir, stem) for stem in stems]
            setattr(self, f"meta_{split}_data", LazySpaces(paths) if paths else None)
        self.bo_initializations = read_objects(find_json(root_dir, DESIGNS))  # checked beside the table

    def __repr__(self) -> str:
        return summary(self, root_dir=str(self._root), mode=self.mode)

    def __getattr__(self, name: str) -> Any:
        if name in ("meta_train_data", "meta_validation_data"):
            raise AttributeError(f"mode {self.mode} has no {name}; mode='v3' has")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @cached_property
    def search_space_dims(self) -> dict[str, int]:
        """The number of columns by search space."""
        return {name: space.n_columns for name, space in outline(self._root, "test", self.mode).items()}

    @cached_property
    def surrogates_stats(self) -> Mapping[str, Mapping[str, float]]:
        """The range of the response by surrogate, `surrogate-<space>-<dataset>` -> `y_min`, `y_max`."""
        return read_ranges(self.surrogates_dir)

    def get_search_spaces(self) -> list[str]:
        """The search spaces' ids."""
        return list(self.meta_test_data)

    def get_datasets(self, search_space: str) -> list[str]:
        """The test datasets' ids of a search space."""
        return list(_entry(self.meta_test_data, search_space, "the search space"))

    def get_seeds(self) -> list[str]:
        """The names of the initial designs."""
        return list(self.seeds)

    def get_search_space_dim(self, search_space: str) -> int:
        """The number of columns of a search space."""
        return int(_entry(self.search_space_dims, search_space, "the search space"))

    def normalize(self, y: Any, y_min: float | None = None, y_max: float | None = None) -> Any:
        """Min-max scaling, with the values' own range unless one is given; constant values become 0.5."""
        y = np.asarray(y)
        low = np.min(y) if y_min is None else y_min
        high = np.max(y) if y_min is None or y_max is None else y_max
        return (y - low) / (high - low) if high > low else np.full(y.shape, 0.5)

    def evaluate(
        self,
        bo_method: HostMethod | None = None,
        search_space_id: str | None = None,
        dataset_id: str | None = None,
        seed: str | None = None,
        n_trials: int = 10,
    ) -> list[float]:
        """Runs a method on a task's table: n_trials + 1 incumbents, the design's best and the best after each trial.

        Raises `ConfigError` and `DataError` for unknown ids, and as `dre_jax.search.host.run_host` does.
        """
        method = _method(bo_method)
        x, y, design = self._task(search_space_id, dataset_id, seed)
        return run_host(method, x, y, design, n_trials).tolist()

    def evaluate_continuous(
        self,
        bo_method: HostMethod | None = None,
        search_space_id: str | None = None,
        dataset_id: str | None = None,
        seed: str | None = None,
        n_trials: int = 10,
        counting: str = "hpob",
    ) -> list[float]:
        """Runs a method in [0, 1]^D on a task's surrogate, from the design's rows of the table: T + 1 incumbents.

        `bo_method` has `observe_and_suggest(x_obs, y_obs)`, which returns a vector; `counting` is one of
        `dre_jax.hpob.continuous.COUNTINGS`. Raises as `evaluate`, and as `Objective.load` and `run_continuous` do.
        """
        method = _method(bo_method)
        x, y, design = self._task(search_space_id, dataset_id, seed)
        surrogate = Objective.load(
            self.surrogates_dir,
            str(search_space_id),
            str(dataset_id),
            n_columns=x.shape[1],
            ranges=self.surrogates_stats,
        )
        return run_continuous(method, surrogate, x[design], y[design], n_trials, counting=counting).tolist()

    def _task(self, space: str | None, dataset: str | None, seed: str | None) -> tuple[np.ndarray, ...]:
        task = _entry(_entry(self.meta_test_data, space, "the search space"), dataset, "the dataset")
        y = np.array(task["y"], np.float64).reshape(-1)
        designs = self.bo_initializations.get(str(space), {}).get(str(dataset), {})
        where = f"{self._root}: space {space!r}, dataset {dataset!r}, seed {seed!r}"
        rows = checks.design_rows(_entry(designs, seed, "the seed"), len(y), where)
        return np.array(task["X"], np.float64), y, rows


def _method(method: HostMethod | None) -> HostMethod:
    if not callable(getattr(method, "observe_and_suggest", None)):
        raise ConfigError(f"the method must be an object with observe_and_suggest, but got {method!r}")
    assert method is not None
    return method


def _entry(table: Mapping[str, Any], name: str | None, what: str) -> Any:
    try:
        return table[name]  # type: ignore[index]
    except KeyError:
        names = ", ".join(list(table)[:20]) or "none"
        raise DataError(f"{what} must be one of {names}, but got {name!r}") from None
