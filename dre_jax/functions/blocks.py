"""Blocks of searches: one after the other on each core of a CPU, or side by side on other devices."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dre_jax.functions.program import ProgramConfig, Progress, Searches, advance, no_progress
from dre_jax.functions.search_file import FinishedSearch, SearchId
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.search.acquisition import undefined_values
from dre_jax.search.execution import put, run_blocks
from dre_jax.suggest.precision import precision_of, with_precision
from dre_jax.tuning.compiled.designs import StudyDesigns, history_capacity, stack
from dre_jax.tuning.compiled.study import SharedArrays
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.suggestion.space_filling import SEQUENCE
from dre_jax.tuning.suggestion.state import TrialOutcomes

FIRST_CAPACITY = history_capacity(1)
"""Slots of the shortest history."""
_TRIALS = 64
"""The candidates of searches are made for a multiple of so many trials."""


@dataclass(frozen=True)
class SearchBlocks:
    """Searches of one call."""

    program: ProgramConfig
    engine: Engine
    tasks: Any
    noise_key: Array
    n_trials: int
    _compiles_model: threading.Lock = field(default_factory=threading.Lock, init=False, compare=False)

    def run(self, search_ids: Sequence[SearchId]) -> Iterator[list[tuple[SearchId, FinishedSearch]]]:
        """Yields the searches of blocks as these are finished.

        Raises `ConfigError` if the method's values of all candidates are NaN.
        """
        if not search_ids:
            return
        with suggestion_runtime:
            for finished in run_blocks(self.program.mesh, search_ids, self._parts(), self._run_block):
                if finished is None:
                    raise undefined_values(self.program.study.method)
                yield finished

    @property
    def _capacity(self) -> int:
        return history_capacity(self.n_trials)

    def _parts(self) -> list[_Part]:
        parts, batch, start = list[_Part](), self.program.batch, 0
        capacity = min(FIRST_CAPACITY, self._capacity)
        while start < self.n_trials // batch:
            stop = min((capacity - batch + 1) // batch + 1, self.n_trials // batch)
            if stop > start:
                parts.append(_Part(capacity, start, stop))
            start, capacity = max(start, stop), history_capacity(capacity + 1)
        return parts

    def _run_block(
        self, search_ids: Sequence[SearchId], size: int, parts: Sequence[_Part], count: int
    ) -> list[tuple[SearchId, FinishedSearch]] | None:
        """Returns finished searches, for `run_blocks`; None if the method's values were NaN."""
        study, mesh = self.program.study, self.program.mesh
        padded = [*search_ids, *[search_ids[-1]] * (size - len(search_ids))]
        with precision_of(study.method) as dtype:
            progress = no_progress(self.program, self._capacity, size, dtype)
            past, space = self.engine.past, self.engine.space
            designs = StudyDesigns(space, None if past is None else past.start, study.candidates.even, dtype)
            block = self._searches(padded, designs), progress
            params = None if past is None else with_precision(past.params, dtype)
            past_cost = self.engine.past_cost if self.program.shape.has_costs else None
            of_all = SharedArrays(params, designs.log_densities, past_cost)
            shared, (searches, progress) = put(mesh, of_all, block)
            for capacity, start, stop in parts:
                bounds, _ = put(mesh, tuple(np.array([count, start, stop], np.int32)), ())
                progress = self._advance(shared, searches, progress, bounds, capacity)
            points, outcomes, is_undefined = jax.device_get((progress.points, progress.outcomes, progress.is_undefined))
        if is_undefined[: len(search_ids)].any():
            return None
        return [
            (search_id, self._finished_search(*jax.tree.map(lambda a, i=i: a[i], (points, outcomes))))
            for i, search_id in enumerate(search_ids)
        ]

    def _finished_search(self, points: np.ndarray, outcomes: TrialOutcomes) -> FinishedSearch:
        """Returns the trials of a search, whose arrays have empty slots at their ends."""
        objectives = self.engine.objectives
        arrays: Any = jax.tree.map(lambda a: np.asarray(a, np.float64)[: self.n_trials], (points, outcomes))
        points, (responses, constraints, costs) = arrays
        values = np.array([objective.sign for objective in objectives]) * responses
        return FinishedSearch(points, values if len(objectives) > 1 else values[:, 0], constraints, costs)

    def _advance(
        self, shared: Any, searches: Searches, progress: Progress, bounds: tuple[Array, ...], capacity: int
    ) -> Progress:
        """Returns the progress after a part, by the program without a model of failures if no trial has failed.

        The model takes as long to compile as the rest, and most functions never fail. If a trial of the part fails, the
        part is done again.
        """
        if not self.program.study.failure_model:
            return advance(self.program, shared, searches, progress, *bounds, capacity=capacity)
        if not _has_failures(progress):
            start = jax.tree.map(jnp.copy, progress)  # programs overwrite the progress
            without_model = replace(self.program, study=replace(self.program.study, failure_model=False))
            ahead = advance(without_model, shared, searches, progress, *bounds, capacity=capacity)
            if not _has_failures(ahead):
                return ahead
            progress = start
        if self.program.mesh is None:  # two threads that need a program would both compile it, so one first calls it
            with self._compiles_model:
                none, _ = put(None, np.int32(0), ())
                progress = advance(self.program, shared, searches, progress, none, *bounds[1:], capacity=capacity)
        return advance(self.program, shared, searches, progress, *bounds, capacity=capacity)

    def _searches(self, search_ids: Sequence[SearchId], designs: StudyDesigns) -> Searches:
        numbers, seeds = np.array([task for task, _ in search_ids]), [seed for _, seed in search_ids]
        distinct = list(dict.fromkeys(seeds))
        trials = range(min(self._capacity, -(-self.n_trials // _TRIALS) * _TRIALS))  # few programs
        blocks = range(-(-len(trials) // SEQUENCE))
        candidates = stack([designs.candidates(seed, trials) for seed in distinct])
        rows = np.array([distinct.index(seed) for seed in seeds])
        design, candidates = jax.tree.map(lambda a: a[rows], (designs.studies(distinct, blocks), candidates))

        def fold(task: Array, seed: Array) -> Array:
            return jax.random.fold_in(jax.random.fold_in(self.noise_key, task), seed)

        noise_keys = jax.vmap(fold)(jnp.asarray(numbers, jnp.uint32), jnp.asarray(seeds, jnp.uint32))
        return Searches(jax.tree.map(lambda a: a[numbers], self.tasks), design, candidates, noise_keys)


class _Part(NamedTuple):
    """Batches of trials that share a program."""

    capacity: int
    start: int
    stop: int


def _has_failures(progress: Progress) -> bool:
    return bool(np.any([progress.has_failures, progress.state.n_failed > 0]))
