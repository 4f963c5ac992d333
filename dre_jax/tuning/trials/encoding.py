"""Trials as points of the unit cube, and which configurations are the same."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dre_jax.space.space import Space
from dre_jax.tuning.trials.trial import Trial

_MAX_ENCODINGS = 100_000


class EncodedParams(NamedTuple):
    """A valid configuration, encoded."""

    identity: bytes
    """Equal for equal configurations, whose numbers may differ by a billionth of their range."""
    point: np.ndarray
    """f64[P], see `Space.point`."""


class ParamsEncoder:
    """Encodes configurations of a space, with a cache: every suggestion encodes all trials."""

    def __init__(self, space: Space) -> None:
        """Creates an encoder with an empty cache."""
        self._space = space
        self._cache: dict[tuple[Any, ...], EncodedParams] = {}

    @property
    def n_parts(self) -> int:
        """Number P of hyperparameters."""
        return len(self._space)

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


def with_value(trials: Iterable[Trial]) -> list[Trial]:
    """Returns the trials that have a value."""
    return [trial for trial in trials if trial.state in ("complete", "stopped")]


def encode_trials(
    encoder: ParamsEncoder, trials: Sequence[Trial], pending: Iterable[Mapping[str, Any]]
) -> EncodedTrials:
    """Returns the encoded trials; ``pending`` are configurations that will be evaluated beside those of running trials.

    Raises `DataError` for an invalid configuration.
    """
    observations = with_value(trials)
    running, failed = ([trial._params for trial in trials if trial.state == state] for state in ("running", "failed"))
    groups = [trial._params for trial in observations], [*running, *pending], failed
    encodings = [[encoder.encode(params) for params in group] for group in groups]
    points, pending_points, failed_points = (
        np.array([encoding.point for encoding in group]).reshape(-1, encoder.n_parts) for group in encodings
    )
    identities = [frozenset(encoding.identity for encoding in group) for group in encodings]
    all_identities = frozenset[bytes]().union(*identities)
    return EncodedTrials(observations, points, pending_points, failed_points, all_identities, identities[1])


def with_failed(study: EncodedTrials, mask: np.ndarray) -> EncodedTrials:
    """Returns the trials with the observations of a mask bool[n] as failed ones."""
    return study._replace(
        observations=[trial for trial, fails in zip(study.observations, mask, strict=True) if not fails],
        points=study.points[~mask],
        failed_points=np.vstack([study.failed_points, study.points[mask]]),
    )
