"""Trials of a study as the engine counts them: values, running trials, failures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_jax.tuning.engine import Observation
from dre_jax.tuning.optuna.distributions import Translation
from dre_jax.tuning.space.space import Params

_KEY = "dre:relative_params"
_CHUNK = 2045
"""Characters of an attribute that every storage takes."""
_HUGE = 1e300
"""Larger numbers overflow where they are added up."""
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


class Reading(NamedTuple):
    """A study's trials, those whose configuration can be read."""

    observed: list[Observation]
    pending: list[Params]
    failed: list[Params]

    def has(self, params: Params | None) -> bool:
        """Returns whether a configuration was tried, or is being tried."""
        return params in self.pending or params in self.failed or any(params == o.params for o in self.observed)


def read(trials: Iterable[FrozenTrial], translation: Translation, *, maximise: bool) -> Reading:
    """The trials that a sampler counts.

    A trial's configuration is what it suggested so far, what it was enqueued with, and what `share` wrote.
    """
    known = [(trial, translation.read(values_of(trial, translation))) for trial in trials]
    configured = [(trial, params) for trial, params in known if params is not None]
    told = [(trial, params) for trial, params in configured if trial.state in FINISHED]
    values = responses([trial for trial, _ in told], maximise=maximise)
    return Reading(
        [Observation(params, value) for (_, params), value in zip(told, values, strict=True)],
        [params for trial, params in configured if trial.state == TrialState.RUNNING],
        [params for trial, params in configured if trial.state == TrialState.FAIL],
    )


def values_of(trial: FrozenTrial, translation: Translation) -> dict[str, Any]:
    """All that is known of a trial's values: those suggested, enqueued, and written by `share`."""
    enqueued = trial.system_attrs.get("fixed_params", {})
    return {**translation.revived(_shared(trial)), **enqueued, **trial.params}


def share(study: Study, trial: FrozenTrial, values: Mapping[str, Any], translation: Translation) -> None:
    """Writes what a trial will be suggested, for the other workers: its own record gets it only bit by bit.

    In chunks, as Optuna's own samplers do; there is no public way to write a trial's attributes from a sampler.
    """
    text = json.dumps(translation.plain(values))
    for i in range(0, len(text), _CHUNK):
        study._storage.set_trial_system_attr(trial._trial_id, f"{_KEY}:{i // _CHUNK}", text[i : i + _CHUNK])


def _shared(trial: FrozenTrial) -> dict[str, float]:
    chunks: list[str] = []
    while (chunk := trial.system_attrs.get(f"{_KEY}:{len(chunks)}")) is not None:
        chunks.append(chunk)
    try:  # what follows is left over from a longer one
        return dict(json.JSONDecoder().raw_decode("".join(chunks))[0]) if chunks else {}
    except ValueError:  # another worker is writing it
        return {}


def responses(trials: Sequence[FrozenTrial], *, maximise: bool) -> list[float]:
    """Responses of finished trials, higher is better.

    - Complete ones have their value.
    - A trial that was pruned has no value that can be compared with others': its last report is of an earlier step. It
      was behind others, so it is set between their median and the worst: the later it was stopped the higher, and of
      those stopped at one step, by their last reports (the order is that of Optuna's TPE).
    - One that breaks constraints is below all that do not, by the sum of what they are broken by, as in TPE.
    """
    violations = [sum(value for value in trial.constraints.values() if value > 0) for trial in trials]
    feasible = [i for i, violation in enumerate(violations) if violation == 0]
    found = np.zeros(len(trials))
    sign = 1.0 if maximise else -1.0
    complete = [i for i in feasible if trials[i].state == TrialState.COMPLETE]
    for i in complete:
        value = trials[i].value
        assert value is not None
        found[i] = sign * value
    pruned = sorted(
        (i for i in feasible if trials[i].state == TrialState.PRUNED), key=lambda i: _progress(trials[i], sign)
    )
    found[pruned] = _below_the_median(found[complete], len(pruned))
    broken = [i for i, violation in enumerate(violations) if violation != 0]
    if broken:
        found[feasible], found[broken] = _below_all(found[feasible], np.array([violations[i] for i in broken]))
    return [float(value) for value in found]


def _progress(trial: FrozenTrial, sign: float) -> tuple[float, float]:
    """How far a pruned trial came, then how well it did there; the least is the best."""
    if not trial.intermediate_values:
        return math.inf, 0.0
    step, value = max(trial.intermediate_values.items())
    return -step, math.inf if math.isnan(value) else -sign * value


def _below_the_median(values: np.ndarray, n: int) -> np.ndarray:
    """n responses, falling, between the median of others and the worst; never level with the best."""
    finite = values[np.isfinite(values)].clip(-_HUGE, _HUGE)
    if not len(finite):
        return -1.0 - np.arange(n)
    best, top, bottom = finite.max(), np.median(finite), finite.min()
    if bottom == best:
        bottom = best - max(1.0, abs(best))
    if top == best:
        top = bottom
    return np.linspace(top, bottom, n)


def _below_all(values: np.ndarray, violations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Responses that are finite, and others below them, in the order of their violations."""
    if not len(values):
        return values, -violations
    finite = values[np.isfinite(values)].clip(-_HUGE, _HUGE)
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    span = max(high - low, 1e-9 * max(abs(low), abs(high))) or 1.0
    values = np.clip(values, low - span, high + span)
    rank = np.unique(violations, return_inverse=True)[1]
    return values, values.min() - span * (1.0 + rank / len(violations))
