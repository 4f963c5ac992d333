"""Blocks of searches: one after the other on each core of a CPU, or side by side on other devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from dre_jax.functions.program import SEARCHES, ProgramConfig, Searches, advance, no_progress
from dre_jax.functions.search_file import FinishedSearch, Place
from dre_jax.runtime import devices
from dre_jax.search.acquisition import undefined_values
from dre_jax.suggest.precision import precision_of, with_precision
from dre_jax.tuning.compiled.designs import history_capacity, study_designs
from dre_jax.tuning.suggestion_runtime import suggestion_runtime
from dre_jax.tuning.surrogate import Surrogate

FIRST_CAPACITY = history_capacity(1)
"""Slots of the shortest history."""
_ONE_BY_ONE, _SIDE_BY_SIDE = 16, 512  # searches of a call: on a core, and on each other device


@dataclass(frozen=True)
class SearchBlocks:
    """Searches of one call."""

    program: ProgramConfig
    surrogate: Surrogate | None
    params: Any
    tasks: Any
    noise_key: Array
    n_trials: int

    def run(self, places: Sequence[Place]) -> Iterator[list[tuple[Place, FinishedSearch]]]:
        """Yields the searches of blocks as these are finished.

        Raises:
          ConfigError: if the method's values of all candidates are NaN.
        """
        if not places:
            return
        mesh = self.program.mesh
        workers, size = (devices.cores(), _ONE_BY_ONE) if mesh is None else (1, _SIDE_BY_SIDE * mesh.size)
        size = size if mesh is None else min(size, -(-len(places) // mesh.size) * mesh.size)
        n_blocks = -(-len(places) // size)
        n_blocks = min(-(-n_blocks // workers) * workers, len(places))
        blocks = [[places[i] for i in part] for part in np.array_split(np.arange(len(places)), n_blocks)]
        with suggestion_runtime, ThreadPoolExecutor(workers) as executor:
            try:
                # Compiled first: two threads that need a program would both compile it.
                list(executor.map(lambda one: self._run_block(places[:1], size, [one]), self._parts(0)))
                futures = [executor.submit(self._run_block, block, size, self._parts()) for block in blocks]
                for future in as_completed(futures):
                    yield self._result(future)
            finally:
                executor.shutdown(cancel_futures=True)

    def _result(self, future: Future[list[tuple[Place, FinishedSearch]] | None]) -> Any:
        result = future.result()
        if result is None:
            raise undefined_values(self.program.study.method)
        return result

    @property
    def _capacity(self) -> int:
        return history_capacity(self.n_trials)

    def _parts(self, n_searches: int | None = None) -> list[_Part]:
        """Returns the parts of a search; of so many searches, all by default."""
        parts, batch, start = list[_Part](), self.program.batch, 0
        capacity = min(FIRST_CAPACITY, self._capacity)
        while start < self.n_trials // batch:
            stop = min((capacity - batch + 1) // batch + 1, self.n_trials // batch)
            if stop > start:
                parts.append(_Part(capacity, start, stop, n_searches))
            start, capacity = max(start, stop), history_capacity(capacity + 1)
        return parts

    def _run_block(
        self, places: Sequence[Place], size: int, parts: Sequence[_Part]
    ) -> list[tuple[Place, FinishedSearch]] | None:
        """Returns finished searches, which are padded to a size; None if the method's values were NaN."""
        study, mesh = self.program.study, self.program.mesh
        padded = [*places, *[places[-1]] * (size - len(places))]
        with precision_of(study.method) as dtype:
            searches = self._searches(padded, dtype)
            progress = no_progress(self.program, self._capacity, size, dtype)
            shared, own = (None, None) if mesh is None else _shardings(mesh)
            params = jax.device_put(with_precision(self.params, dtype), shared)
            searches, progress = jax.device_put((searches, progress), own)
            for capacity, start, stop, n_searches in parts:
                numbers = np.array([len(places) if n_searches is None else n_searches, start, stop], np.int32)
                bounds = jax.device_put(tuple(numbers), shared)
                progress = advance(self.program, params, searches, progress, *bounds, capacity=capacity)
            points, values, is_undefined = jax.device_get((progress.points, progress.values, progress.is_undefined))
        if is_undefined[: len(places)].any():
            return None
        arrays = (np.asarray(array, np.float64)[:, : self.n_trials] for array in (points, values))
        return [(place, FinishedSearch(*one)) for place, one in zip(places, zip(*arrays, strict=True), strict=False)]

    def _searches(self, places: Sequence[Place], dtype: Any) -> Searches:
        numbers, seeds = np.array([task for task, _ in places]), [seed for _, seed in places]
        # A design for each seed of the block, and room for the trials of the longest history.
        distinct = list(dict.fromkeys(seeds))
        trials = range(self._capacity)
        space = self.program.objective.space
        of_seeds = study_designs(self.program.study, space, self.surrogate, distinct, [trials] * len(distinct), dtype)
        rows = np.array([distinct.index(seed) for seed in seeds])
        design, even = jax.tree.map(lambda a: a[rows], of_seeds)

        def fold(task: Array, seed: Array) -> Array:
            return jax.random.fold_in(jax.random.fold_in(self.noise_key, task), seed)

        noise_keys = jax.vmap(fold)(jnp.asarray(numbers, jnp.uint32), jnp.asarray(seeds, jnp.uint32))
        return Searches(jax.tree.map(lambda a: a[numbers], self.tasks), design, even, noise_keys)


class _Part(NamedTuple):
    """Batches of trials that share a program."""

    capacity: int
    start: int
    stop: int
    n_searches: int | None
    """Of searches; None for all."""


def _shardings(mesh: Mesh) -> tuple[NamedSharding, NamedSharding]:
    return NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec(SEARCHES))
