"""One of many studies that share programs: its trials, with their points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dre_jax.tuning.compiled.designs import history_capacity
from dre_jax.tuning.compiled.study import StudyDesign
from dre_jax.tuning.engine.study_arrays import n_failed, study_state, total_cost
from dre_jax.tuning.study.study_record import StudyRecord
from dre_jax.tuning.suggestion.state import StudyState
from dre_jax.tuning.trials.encoding import EncodedTrials


class SuggestionProgram(NamedTuple):
    """What the program of a suggestion depends on."""

    capacity: int
    has_failures: bool
    """A program with the model of failures takes twice as long to compile."""
    n_constraints: int
    has_costs: bool


@dataclass
class ManagedStudy:
    """A study of `dre_jax.tuning.Optimizers`."""

    seed: int
    design: StudyDesign
    """With the block of the sequence that the next trial is in."""
    record: StudyRecord
    block: int = 0
    points: list[np.ndarray] = field(default_factory=list)
    """Points f64[P] of all trials."""

    @property
    def number(self) -> int:
        """Number of the next trial."""
        return len(self.points)

    def encode(self) -> tuple[SuggestionProgram, StudyState]:
        """Returns the program that suggests the next trial, and the trials as arrays."""
        trials, capacity, objectives = self.record.trials, history_capacity(self.number), self.record.objectives

        def points(state: str) -> np.ndarray:
            rows = [point for trial, point in zip(trials, self.points, strict=True) if trial.state == state]
            return np.reshape(rows, (-1, len(self.record.space)))

        complete = [trial for trial in trials if trial.state == "complete"]
        points_by_state = points("complete"), points("running"), points("failed")
        encoded = EncodedTrials(complete, *points_by_state, frozenset(), frozenset())
        state = study_state(encoded, objectives, capacity, capacity, spent=total_cost(trials))
        n_constraints = 0 if state.constraints is None else state.constraints.shape[1]
        has_failures = n_failed(encoded, objectives) > 0
        return SuggestionProgram(capacity, has_failures, n_constraints, state.costs is not None), state
