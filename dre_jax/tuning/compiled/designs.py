"""Random parts of studies, by their seeds, as arrays of the host: initial points, and the words of Sobol sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.search.method import Method
from dre_jax.space.sobol import ScrambledWords, scrambled_words
from dre_jax.space.space import Params, Space
from dre_jax.suggest.candidates import default_candidates
from dre_jax.suggest.pending import check_pending_strategy
from dre_jax.tuning.compiled.study import StudyDesign
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.engine.initial_design import InitialDesign, sequence_seed
from dre_jax.tuning.objectives.single import method_without_past, n_first_trials
from dre_jax.tuning.suggestion.space_filling import SEQUENCE
from dre_jax.tuning.suggestion.state import StudyConfig, state_capacity
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.encoding import ParamsEncoder


def history_capacity(n: int) -> int:
    """Returns the slots of a study of n trials, as `Optimizer` has them."""
    return state_capacity(n, EngineConfig().max_history)


def study_config(space: Space, method: str | Method, surrogate: Surrogate | None, pending_strategy: str) -> StudyConfig:
    """Returns the configuration that all studies of a space share; the method is the surrogate's if there is one.

    Raises `ConfigError` for a space with rules or likely values, a method that needs past tasks, or a strategy that the
    method does not support, and `DataError` for a surrogate of another space.
    """
    if surrogate is not None:
        method = surrogate.method
    elif isinstance(method, str):
        method = method_without_past(method)
    if pending_strategy in ("believer", "draw"):
        check_pending_strategy(method, pending_strategy)
    layout = space.layout
    if layout.rules or any(parameter.likely is not None for parameter in space.values()):
        rule = "many studies in one program need a space without rules and likely values"
        raise ConfigError(f"{rule}, but got {space!r}: use Optimizer")
    encoding = layout
    if surrogate is not None:
        surrogate.space.require_encodes(space)
        encoding = space.layout_in(surrogate.space)
    candidates = default_candidates(method, encoding, pending_strategy)
    defaults = EngineConfig()
    return StudyConfig(
        method,
        layout,
        encoding,
        candidates,
        has_past=surrogate is not None,
        n_start=n_first_trials(len(space)) if surrogate is None else 0,
        values_first_trial=surrogate is not None,
        max_history=defaults.max_history,
        failed_radius=defaults.failed_radius,
        failure_model=False,
    )


def study_designs(space: Space, surrogate: Surrogate | None, seeds: Sequence[int], dtype: Any) -> StudyDesign:
    """Returns the designs of studies, one for each seed, with the studies in front of each array."""
    n_parts, start = len(space), None if surrogate is None else surrogate.start
    initial = [_initial_points(space, start, seed) for seed in seeds]
    size = max(map(len, initial))
    points: Any = np.zeros((len(seeds), size, n_parts), dtype)
    for row, initial_points in zip(points, initial, strict=True):
        row[: len(initial_points)] = np.reshape(initial_points, (-1, n_parts))
    blocks = range(1 + (EngineConfig().max_history - 1) // SEQUENCE)
    keys: Any = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
    counts: Any = np.array(list(map(len, initial)), np.int32)
    sequence = stack_words([_words(SEQUENCE, n_parts, seed, blocks) for seed in seeds])
    return StudyDesign(keys, points, counts, sequence)


def candidate_words(config: StudyConfig, seed: int, numbers: Iterable[int]) -> ScrambledWords:
    """Returns the words of the candidates of trials of a study, with the trials in front."""
    return _words(config.candidates.even, config.layout.n_parts, seed, numbers)


def _words(n: int, n_parts: int, seed: int, numbers: Iterable[int]) -> ScrambledWords:
    return stack_words([scrambled_words(n, n_parts, sequence_seed(seed, number)) for number in numbers])


def stack_words(words: Sequence[ScrambledWords]) -> ScrambledWords:
    """Returns words with another axis in front."""
    return ScrambledWords(*(np.stack(arrays) for arrays in zip(*words, strict=True)))


def _initial_points(space: Space, start: tuple[Params, ...] | None, seed: int) -> list[np.ndarray]:
    """Returns the points of defaults and of a start design, as `Optimizer` evaluates them one after the other."""
    if not start and not any(parameter.has_default for parameter in space.values()):
        return []
    encode, identities, points = ParamsEncoder(space).encode, set[bytes](), list[np.ndarray]()
    nothing_fixed = np.full(len(space), np.nan)
    while True:
        design = InitialDesign(space, start or (), seed, None, 0, len(points), nothing_fixed)
        encodings = map(encode, design.initial_configurations(len(points)))
        new = next((encoding for encoding in encodings if encoding.identity not in identities), None)
        if new is None:
            return points
        identities.add(new.identity)
        points.append(new.point)
