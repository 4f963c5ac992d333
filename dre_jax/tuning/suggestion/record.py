"""The trials of a study as a method reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from dre_jax.runtime.arrays import AnyArray, namespace
from dre_jax.search.history import History, min_max_scale
from dre_jax.space.layout import SpaceLayout
from dre_jax.suggest.proposals import TrialRecord
from dre_jax.tuning.suggestion.state import SAME, StudyConfig, StudyState, state_capacity
from dre_jax.tuning.trials.responses import clip_responses, relative_errors
from dre_jax.tuning.trials.selection import select_rows


class StudyRecord(NamedTuple):
    """The trials that a method gets."""

    trials: TrialRecord
    rows: Int[AnyArray, " S"]
    """Their slots in the study, those with a value first."""
    n: Int[AnyArray, ""]
    """Number of those with a value."""
    spread: Float[AnyArray, ""]
    """Range of their responses, without far outliers: 1 on the scale of the history."""


def study_record(config: StudyConfig, state: StudyState, capacity: int) -> StudyRecord:
    """Returns the trials of a study that a method gets, in a number of slots: see `select_rows`; and pending ones."""
    xp, numbers = namespace(state.points), np.arange(capacity, dtype=np.int32)
    has_value, has_failed = state.where, state.has_failed
    selects = len(state.points) > config.max_history
    rows, n = numbers, state.n
    if selects:
        selected, n = select_rows(state.responses, has_value, history_room(config.max_history, state.n_pending))
        rows = xp.where(numbers < n, selected[numbers], state.n + numbers - n)
    rows = xp.minimum(rows, len(state.points) - 1)
    where, pending = numbers < n, (numbers >= n) & (numbers < n + state.n_pending)
    points, responses = state.points[rows], xp.where(where, state.responses[rows], 0.0)
    # Several objectives are ordered by their front, which has no errors; their method reads those of each value.
    errors = None
    if state.errors is not None and state.objectives is None:
        errors = excess_errors(state.errors[rows, 0], where)
    columns = known_columns(config.encoding, points, None if state.outside is None else state.outside[rows])
    scaled = clip_responses(responses, where)
    history = study_history(columns, responses, scaled, errors, where)
    if state.comparable is not None:
        history = history._replace(comparable=state.comparable[rows])
    # Where all coordinates have few values, a neighbour is another configuration.
    avoid, radius = state.failures, xp.where(has_failed, SAME if config.is_finite else config.failed_radius, -1.0)
    if selects:
        avoid = xp.concatenate([avoid, state.points])
        radius = xp.concatenate([radius, xp.where(has_value, SAME, -1.0)])
    high, low = xp.max(xp.where(where, scaled, -xp.inf)), xp.min(xp.where(where, scaled, xp.inf))
    trials = TrialRecord(history, points, pending, avoid, radius.astype(points.dtype))
    return StudyRecord(trials, rows, n, xp.maximum(high - low, 0.0))


def record_capacity(state: StudyState, max_history: int) -> int:
    """Returns the slots of the trials of a study, in arrays of NumPy, that a method gets."""
    n = min(state.n, history_room(max_history, state.n_pending)) + state.n_pending
    return state_capacity(int(n), max_history)


def history_room(max_history: int, n_pending: Any) -> Any:
    """Returns how many trials with a value a method gets beside the pending ones: at least half of its history."""
    return (max_history - n_pending).clip(min=max_history // 2)


def study_history(
    columns: Float[AnyArray, "C D"],
    responses: Float[AnyArray, " C"],
    scaled: Float[AnyArray, " C"],
    errors: Float[AnyArray, " C"] | None,
    where: Bool[AnyArray, " C"],
) -> History:
    """Returns the history of trials in C slots.

    Args:
      columns: as the method knows them.
      responses: they order the trials.
      scaled: finite numbers that increase with the responses.
      errors: standard errors of these numbers; None without any.
      where: the filled slots.
    """
    xp = namespace(responses)
    above = where[None, :] & (responses[None, :] > responses[:, None])
    level = xp.where(where, xp.sum(above, axis=1, dtype=np.int32), 0)
    columns = xp.where(where[:, None], columns, 0.0)
    noise_var = None if errors is None else relative_errors(errors, scaled, where) ** 2
    return History(columns, min_max_scale(scaled, None, level, where), level, where, noise_var)


def excess_errors(errors: Float[AnyArray, " C"], where: Bool[AnyArray, " C"]) -> Float[AnyArray, " C"]:
    """Returns standard errors without the part that all trials have in common, the least variance.

    The method estimates the noise that all responses have. Searches that were told the common part, too, explored more
    and left more regret in the first trials.
    """
    xp = namespace(errors)
    least = xp.min(xp.where(where, errors, xp.inf))
    least = xp.where(xp.any(where), least, 0.0)
    larger = xp.maximum(errors, least)
    share = least / xp.where(larger > 0.0, larger, 1.0)
    return errors * xp.sqrt(1.0 - share**2)  # squares of the errors may be too large


def known_columns(
    encoding: SpaceLayout, points: Float[AnyArray, "C P"], outside: Float[AnyArray, "C D"] | None
) -> Float[AnyArray, "C D"]:
    """Returns the columns of points, or those of ``outside`` where these are numbers."""
    columns, xp = encoding.columns(points), namespace(points)
    return columns if outside is None else xp.where(xp.isnan(outside), columns, outside)
