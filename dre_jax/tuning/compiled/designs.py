"""Random parts of studies, by their seeds, as arrays of the host: initial points, and the words of Sobol sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.search.method import Method
from dre_jax.space.sobol import scrambled_words
from dre_jax.space.space import Params, Space
from dre_jax.tuning.compiled.study import DesignPoints, StudyDesign
from dre_jax.tuning.engine.engine import Engine
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.engine.initial_design import InitialDesign, sequence_seed
from dre_jax.tuning.objectives.criterion import Surrogates
from dre_jax.tuning.objectives.single import DEFAULT_METHOD
from dre_jax.tuning.suggestion.beliefs import log_densities
from dre_jax.tuning.suggestion.space_filling import SEQUENCE
from dre_jax.tuning.suggestion.state import StudyConfig, state_capacity
from dre_jax.tuning.trials.encoding import ParamsEncoder
from dre_jax.tuning.trials.objectives import Objectives


def history_capacity(n: int) -> int:
    """Returns the slots of a study of n trials, as `Optimizer` has them."""
    return state_capacity(n, EngineConfig().max_history)


def program_engine(
    space: Any, objectives: Objectives, surrogate: Surrogates, method: str | Method, **settings: Any
) -> Engine:
    """Returns the engine that many studies share; settings are those of `EngineConfig`.

    Raises `ConfigError` and `DataError` as `Engine`, for a method by its name or the method itself.
    """
    name, own_method = (method, None) if isinstance(method, str) else (DEFAULT_METHOD, method)
    config = EngineConfig(method=name, **settings)
    return Engine(space, objectives, surrogate, config=config, method=own_method)


def program_config(engine: Engine) -> StudyConfig:
    """Returns what does not change during the studies of an engine, for programs, which report no improvements."""
    return replace(engine.study_config, reports=False)


@dataclass(frozen=True)
class StudyDesigns:
    """The random parts of the studies of a space, by their seeds.

    A program expands Sobol points from words, 200 bytes a trial. Points of a space with rules or likely values come
    from the host.
    """

    space: Space
    start: tuple[Params, ...] | None
    """The start design of surrogates; None without any."""
    n_candidates: int
    """Sobol points among the candidates of a trial, as `CandidateConfig.even`."""
    dtype: Any

    @cached_property
    def log_densities(self) -> np.ndarray | None:
        """Log densities f[P, K + 1] of likely values; None if no value is likely."""
        return None if self._densities is None else self._densities.astype(self.dtype)

    @cached_property
    def _densities(self) -> np.ndarray | None:
        return log_densities(self.space)

    @cached_property
    def _expands_words(self) -> bool:
        return not self.space.layout.rules and self._densities is None

    def studies(self, seeds: Sequence[int], blocks: range) -> StudyDesign:
        """Returns the designs of studies, one for each seed, with the studies in front of each array.

        ``blocks`` are the numbers of the Sobol sequences that fill the space.
        """
        initial = [self._initial_points(seed) for seed in seeds]
        size = max(map(len, initial))
        points: Any = np.zeros((len(seeds), size, len(self.space)), self.dtype)
        for row, initial_points in zip(points, initial, strict=True):
            row[: len(initial_points)] = np.reshape(initial_points, (-1, len(self.space)))
        keys: Any = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
        counts: Any = np.array(list(map(len, initial)), np.int32)
        return StudyDesign(keys, points, counts, stack([self.sequence(seed, blocks) for seed in seeds]))

    def sequence(self, seed: int, blocks: Iterable[int]) -> DesignPoints:
        """Returns the points of a study that fill the space, with the blocks in front.

        Points from the host are f[2, N, P] for each block: those of even and of odd trials.
        """
        if self._expands_words:
            return stack([scrambled_words(SEQUENCE, len(self.space), sequence_seed(seed, block)) for block in blocks])
        design = self._design(seed, 0)
        pairs = [[design.sequence_points(block, are_likely=likely) for likely in (True, False)] for block in blocks]
        return np.array(pairs, self.dtype)

    def candidates(self, seed: int, numbers: Iterable[int]) -> DesignPoints:
        """Returns the Sobol points among the candidates of trials of a study, with the trials in front."""
        if self._expands_words:
            size = self.n_candidates, len(self.space)
            return stack([scrambled_words(*size, sequence_seed(seed, number)) for number in numbers])
        points = [self._design(seed, number).candidate_points(self.n_candidates) for number in numbers]
        return np.array(points, self.dtype)

    def _design(self, seed: int, number: int) -> InitialDesign:
        nothing_fixed = np.full(len(self.space), np.nan)
        return InitialDesign(self.space, self.start, seed, self._densities, 0, number, nothing_fixed)

    def _initial_points(self, seed: int) -> list[np.ndarray]:
        """Returns the points of defaults and of a start design, as `Optimizer` evaluates them one after the other."""
        if not self.start and not any(parameter.has_default for parameter in self.space.values()):
            return []
        encode, identities, points = ParamsEncoder(self.space).encode, set[bytes](), list[np.ndarray]()
        while True:
            design = replace(self._design(seed, len(points)), start=self.start or ())
            encodings = map(encode, design.initial_configurations(len(points)))
            new = next((encoding for encoding in encodings if encoding.identity not in identities), None)
            if new is None:
                return points
            identities.add(new.identity)
            points.append(new.point)


def stack(trees: Sequence[Any]) -> Any:
    """Returns arrays of the host with another axis in front."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
