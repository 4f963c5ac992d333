"""The trials of a study as arrays, for a method's compiled programs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from dre_jax.data.tasks import spaced_rows, tie_levels
from dre_jax.errors import DataError
from dre_jax.search.history import History, make_history
from dre_jax.space.space import Space
from dre_jax.suggest.precision import Dtype
from dre_jax.suggest.proposals import TrialRecord
from dre_jax.tuning.trials.responses import relative_errors
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
        # By the identity of the configuration, whose entry keeps it from being reused.
        self._cache: dict[int, tuple[Mapping[str, Any], EncodedParams]] = {}

    @property
    def n_parts(self) -> int:
        """Number P of hyperparameters."""
        return len(self._space)

    def encode(self, params: Mapping[str, Any]) -> EncodedParams:
        """Returns an encoded configuration, which must not change. Raises `DataError` if it is invalid."""
        entry = self._cache.get(id(params))
        if entry is not None:
            return entry[1]
        point = self._space.point(params)
        encoded_params = EncodedParams((np.round(point, 9) + 0.0).tobytes(), point)  # no zero with a sign
        if len(self._cache) >= _MAX_ENCODINGS:
            self._cache.clear()
        self._cache[id(params)] = params, encoded_params
        return encoded_params


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


def select_trials(responses: np.ndarray, room: int) -> np.ndarray:
    """Returns indices of the trials that a method gets: all, or the best quarter, and others evenly spaced in time.

    With the better half and the latest, most trials of a long search are at the optimum, where they differ by little,
    and the likelihood of a Gaussian process has its maximum at length scales that fit none of the early trials.

    Raises `DataError` for NaN.
    """
    if np.isnan(responses).any():
        raise DataError("a response must be a number, but got NaN")
    if len(responses) <= room:
        return np.arange(len(responses))
    top = np.argsort(-responses, kind="stable")[: max(room // 4, 1)]
    other_rows = np.setdiff1d(np.arange(len(responses)), top)
    return np.sort(np.concatenate([top, other_rows[spaced_rows(len(other_rows), room - len(top))]]))


def history_of(
    columns: np.ndarray, responses: np.ndarray, scaled: np.ndarray, errors: np.ndarray, capacity: int, dtype: Dtype
) -> History:
    """Returns the history of n trials in an array of a capacity.

    Args:
      columns: f[n, D].
      responses: f64[n], which order the trials.
      scaled: f64[n], on the scale of the history.
      errors: f64[n], standard errors on that scale, 0 where there is none.
      capacity: number of slots.
      dtype: of floats.
    """
    history = make_history(columns, scaled, capacity, dtype)
    fields = {"level": tie_levels(responses)}
    if errors.any():
        fields["noise_var"] = (relative_errors(errors, scaled) ** 2).astype(dtype)
    padded_fields = {name: np.pad(values, (0, capacity - len(responses))) for name, values in fields.items()}
    return history._replace(**jax.device_put(padded_fields))


def trial_record(
    history: History, points: np.ndarray, pending_points: np.ndarray, avoid: np.ndarray, slots: int, radius: float
) -> TrialRecord:
    """Returns the completed and the pending trials of a study; the history has slots for both.

    ``avoid`` f64[a, P] are points that are not proposed again. Nor is any point within the radius in every coordinate.
    """
    capacity, dtype = len(history.where), history.response.dtype
    n, n_filled = len(points), len(points) + len(pending_points)
    return TrialRecord(
        history,
        *jax.device_put(
            (
                _pad_rows(np.vstack([points, pending_points]), capacity).astype(dtype),
                (np.arange(capacity) >= n) & (np.arange(capacity) < n_filled),
                _pad_rows(avoid, slots).astype(dtype),
                np.where(np.arange(slots) < len(avoid), radius, -1.0).astype(dtype),
            )
        ),
    )


def _pad_rows(rows: np.ndarray, slots: int) -> np.ndarray:
    return np.pad(rows, ((0, slots - len(rows)), (0, 0)))
