"""Trials as points of the unit cube, and which configurations are the same."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dre_jax.errors import DataError
from dre_jax.space.space import Space
from dre_jax.space.values import number_of
from dre_jax.tuning.trials.replicates import merge_repeats
from dre_jax.tuning.trials.trial import Trial

_MAX_ENCODINGS = 100_000
_BESIDE = 4e-6
"""Distance from a point that counts as another one; see `dre_jax.tuning.suggestion.state.SAME`."""


class EncodedParams(NamedTuple):
    """A valid configuration, encoded."""

    identity: bytes
    """Equal for equal configurations, whose numbers may differ by a billionth of their range."""
    point: np.ndarray
    """f64[P], see `Space.point`; near a configuration outside of the space, but the point of none."""
    outside: np.ndarray | None = None
    """f64[D], columns of a configuration outside of the space."""


class ParamsEncoder:
    """Encodes configurations of a space, with a cache: every suggestion encodes all trials."""

    def __init__(self, space: Space, wider: Space | None = None) -> None:
        """Creates an encoder with an empty cache; ``wider`` encodes configurations outside of the space as columns."""
        self._space, self._wider = space, wider or space
        self.n_parts = len(space)
        """Number P of hyperparameters."""
        self._cache: dict[tuple[Any, ...], EncodedParams] = {}
        self._outside: dict[tuple[Any, ...], EncodedParams | None] = {}  # a study gets no further ones

    def encode(self, params: Mapping[str, Any]) -> EncodedParams:
        """Returns an encoded configuration. Raises `DataError` if it is invalid."""
        # With the types: the choices 1, 1.0 and True are equal and differ.
        key = (*params.items(), *map(type, params.values()))
        try:
            encoded_params = self._cache.get(key)
        except TypeError:  # a list, for example: no configuration of any space
            return self._encode(params)
        if encoded_params is None:
            encoded_params = self._encode(params)
            if len(self._cache) >= _MAX_ENCODINGS:
                self._cache.clear()
            self._cache[key] = encoded_params
        return encoded_params

    def encode_trial(self, trial: Trial) -> EncodedParams | None:
        """Returns the encoded configuration of a trial; None if it is outside of the wider space, too.

        Raises `DataError` if a trial in the space has an invalid configuration.
        """
        if trial.in_space:
            return self.encode(trial._params)
        key = (*trial._params.items(), *map(type, trial._params.values()))
        if key not in self._outside:
            self._outside[key] = self._encode_outside(trial._params)
        return self._outside[key]

    def _encode_outside(self, params: Mapping[str, Any]) -> EncodedParams | None:
        try:
            columns = self._wider.encode(params)
        except DataError:
            return None
        point = nearest_point(self._space, params)
        point[0] += _BESIDE if point[0] < 0.5 else -_BESIDE
        return EncodedParams(np.round(columns, 9).tobytes(), point, columns)

    def _encode(self, params: Mapping[str, Any]) -> EncodedParams:
        point = self._space.point(params)
        return EncodedParams((np.round(point, 9) + 0.0).tobytes(), point)  # no zero with a sign


class EncodedTrials(NamedTuple):
    """The trials of a study: those with a value, and points f64[n, P] of these, of pending and of failed ones."""

    observations: list[Trial]
    points: np.ndarray
    pending_points: np.ndarray
    failed_points: np.ndarray
    identities: frozenset[bytes]
    """Identities of all configurations."""
    pending_identities: frozenset[bytes]
    outside: np.ndarray | None = None
    """f64[n, D], columns of the observations outside of the space, NaN for the others; None without any."""


def with_value(trials: Iterable[Trial]) -> list[Trial]:
    """Returns the trials that have a value; those that repeat an earlier one are merged into it."""
    return merge_repeats([trial for trial in trials if trial.state in ("complete", "stopped")])


def encode_trials(
    encoder: ParamsEncoder, trials: Sequence[Trial], pending: Iterable[Mapping[str, Any]]
) -> EncodedTrials:
    """Returns the encoded trials; ``pending`` are configurations that will be evaluated beside those of running trials.

    Of the trials outside of the space, those with a value count if the wider space of the encoder has them.

    Raises `DataError` for an invalid configuration.
    """
    encoded = [(trial, encoder.encode_trial(trial)) for trial in with_value(trials)]
    readable = [(trial, encoding) for trial, encoding in encoded if encoding is not None]
    running, failed = (
        [encoder.encode(trial._params) for trial in trials if trial.state == state and trial.in_space]
        for state in ("running", "failed")
    )
    encodings = [encoding for _, encoding in readable], [*running, *map(encoder.encode, pending)], failed
    points, pending_points, failed_points = (
        np.array([encoding.point for encoding in group]).reshape(-1, encoder.n_parts) for group in encodings
    )
    identities = [frozenset(encoding.identity for encoding in group) for group in encodings]
    all_identities = frozenset[bytes]().union(*identities)
    observations, outside = [trial for trial, _ in readable], outside_columns(encodings[0])
    return EncodedTrials(observations, points, pending_points, failed_points, all_identities, identities[1], outside)


def outside_columns(encodings: Sequence[EncodedParams]) -> np.ndarray | None:
    """Returns the columns f64[n, D] of configurations outside of the space, NaN for others; None without any."""
    columns = [encoding.outside for encoding in encodings]
    shape = next((array.shape for array in columns if array is not None), None)
    return (
        None if shape is None else np.array([np.full(shape, np.nan) if array is None else array for array in columns])
    )


def nearest_point(space: Space, params: Mapping[str, Any]) -> np.ndarray:
    """Returns the point f64[P] of values that are moved to the bounds of a space; 0.5 for those that it has not."""
    point = np.full(len(space), 0.5)
    for i, (name, part) in enumerate(zip(space.sequence, space.layout.parts, strict=True)):
        with contextlib.suppress(ValueError, TypeError):  # a choice that the space does not have
            if name in params:
                point[i] = part.coordinates(number_of(space[name], params[name]))
    return point.clip(0.0, 1.0)
