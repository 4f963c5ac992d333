"""The next trial of a study, from its arrays.

A suggestion has five stations. The trials are *encoded* as a `StudyState`. A *design* has the points that fill the
space and the candidates of the method. What the trials say is *weighed*: the values' information, and the record of
trials that the method gets. The method *proposes* points. A new one of these, or one that fills the space, is *decoded*
to a configuration. The three stations in the middle are here; `dre_jax.tuning.engine` and `dre_jax.tuning.compiled`
encode and decode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Int

from dre_jax.runtime.arrays import AnyArray, branch, namespace
from dre_jax.suggest.proposals import Proposals
from dre_jax.tuning.suggestion.information import Information, information_of
from dre_jax.tuning.suggestion.record import StudyRecord, study_record
from dre_jax.tuning.suggestion.space_filling import first_allowed, is_known_point, space_filling_point
from dre_jax.tuning.suggestion.state import StudyConfig, StudyState


class PointSuggestion(NamedTuple):
    """The next point of a study."""

    point: Float[AnyArray, " P"]
    """A point of the unit cube."""
    is_new: Bool[AnyArray, ""]
    """Whether it has not been evaluated and is not pending."""
    fills_space: Bool[AnyArray, ""]
    """Whether the trial fills the space, whatever the method values."""
    is_undefined: Bool[AnyArray, ""]
    """Whether the method's values of all candidates are NaN."""
    information: Information
    proposals: Proposals | None
    """What the method proposes, with values of minus infinity where no new configuration is; None inside of programs,
    and where the method was not used."""


class _Choice(NamedTuple):
    """The new point that the method values most, if there is one."""

    point: Float[AnyArray, " P"]
    is_new: Bool[AnyArray, ""]
    is_undefined: Bool[AnyArray, ""]
    proposals: Proposals | None


def suggest_point(
    config: StudyConfig,
    state: StudyState,
    number: Int[AnyArray, ""],
    capacity: int,
    *,
    propose: Callable[[StudyRecord], Proposals],
    filling_points: Callable[[], Float[AnyArray, "N P"]],
    is_exact: Callable[[Any], bool] | None = None,
    fixed: Float[AnyArray, " P"] | None = None,
    is_start: Bool[AnyArray, ""] | bool = False,
) -> PointSuggestion:
    """Returns the next point of a study.

    Args:
      config: static.
      state: the trials.
      number: of the trial.
      capacity: slots of the trials that the method gets.
      propose: returns the proposals of the method for such trials, with the precision of NumPy on the host.
      filling_points: returns points that fill the space, the trial's first.
      is_exact: returns whether the rules allow the configuration at a point; see `first_allowed`.
      fixed: coordinates that are not searched, NaN for the others.
      is_start: whether the trial precedes those of the method.
    """
    information = information_of(state, has_past=config.has_past)
    xp = namespace(state.points)
    may_value = (state.n > 0) | xp.asarray(config.values_first_trial)
    quarter = (number % 4).astype(information.space_filling_share.dtype) / 4.0
    fills = is_start | ~may_value | (quarter < information.space_filling_share)
    reports = may_value & ~information.is_plateau if config.reports else xp.zeros((), bool)

    def ask_method() -> _Choice:
        proposals = propose(study_record(config, state, capacity))
        points = proposals.points
        if fixed is not None:
            points = xp.where(xp.isnan(fixed)[None, :], points, fixed[None, :])
        points = config.layout.round_to_values(points)
        is_new = (proposals.values > -xp.inf) & ~is_known_point(state, points)
        best, is_allowed = first_allowed(config, xp.where(is_new, 0, 1), points, is_exact)
        is_new = is_new & is_allowed
        details = proposals._replace(points=points, values=xp.where(is_new, proposals.values, -xp.inf))
        return _Choice(points[best], is_new[best], proposals.is_undefined, details if config.reports else None)

    def ask_nothing() -> _Choice:
        return _Choice(state.points[0], xp.zeros((), bool), xp.zeros((), bool), None)

    choice = branch(~fills | reports, ask_method, ask_nothing)

    def fill() -> tuple[Any, Any]:
        avoids_failures = fills & ~xp.asarray(is_start)
        points = filling_points()
        return space_filling_point(config, state, points, is_exact, fixed, avoids_failures=avoids_failures)

    point, is_new = branch(choice.is_new & ~fills, lambda: (choice.point, choice.is_new), fill)
    return PointSuggestion(point, is_new, fills, choice.is_undefined, information, choice.proposals)
