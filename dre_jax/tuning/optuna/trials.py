"""Trials of an Optuna study as trials of this library."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_jax.space.space import Params
from dre_jax.tuning.optuna.distributions import Translation
from dre_jax.tuning.past.trial_attributes import cost_of, is_paused_trial, stderr_of
from dre_jax.tuning.trials.objectives import Objectives
from dre_jax.tuning.trials.trial import State, Trial

RETRIED = "dre_jax:retried"
"""User attribute of a failed trial: whether it says nothing of its configuration, which runs as another trial: its
process was lost, or another process was faster."""
IMPROVEMENT = "dre:improvement"
"""System attribute of a trial: the expected improvement of its suggestion; none where it is unknown."""
_KEY = "dre:relative_params"
POSTERIOR = "dre:posterior"
"""System attribute of a pruned trial: posterior mean and standard deviation of its final value, by `DREPruner`."""
_CHUNK = 2045
"""Maximum number of characters of an attribute in every storage."""
_HUGE = 1e300
"""Sums of larger numbers may overflow."""


STATES: dict[TrialState, State] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "stopped",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
}


class TrialReader:
    """Reads the trials of a storage in a translation; each finished trial is read only once."""

    def __init__(self, translation: Translation, storage: BaseStorage) -> None:
        self.translation = translation
        self.storage = storage
        self._finished_params: dict[int, Params | None] = {}

    def read(self, trial: FrozenTrial) -> Params | None:
        """Returns a trial's configuration: suggested and enqueued values, and those that `share_suggestion` wrote."""
        if trial._trial_id in self._finished_params:
            return self._finished_params[trial._trial_id]
        params = self.translation.read_params(values_of(trial, self.translation))
        if trial.state.is_finished():
            self._finished_params[trial._trial_id] = params
        return params


def read_trials(trials: Iterable[FrozenTrial], reader: TrialReader, objectives: Objectives) -> list[Trial]:
    """Returns the trials of a study whose configuration can be read.

    With several objectives, a pruned trial has no values, so it counts as failed; a paused one, whose values are not
    final, is left out. So is a trial of a lost process that runs again as another trial: it says nothing of its
    configuration.
    """
    trials = list(trials)
    again, several, sign = numbers_of_retried(trials), len(objectives) > 1, objectives[0].sign
    started_trials = (
        (trial, reader.read(trial))
        for trial in trials
        if trial.state != TrialState.WAITING and trial.number not in again and not (several and is_paused_trial(trial))
    )
    readable = [(trial, params) for trial, params in started_trials if params is not None]
    finished_trials = [trial for trial, _ in readable if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    values = iter(() if several else responses(finished_trials, maximise=sign > 0))
    trials_read = []
    for trial, params in readable:
        state, fields = STATES[trial.state], dict[str, Any]()
        if several and state == "complete":
            fields = value_fields(trial, objectives)
        elif several and state == "stopped":
            state = "failed"
        elif state in ("complete", "stopped"):
            stderr = stderr_of(trial) if state == "complete" else _posterior(trial)[1]
            fields = {"value": sign * next(values), "stderr": stderr}
        fields["cost"] = None if state == "running" else cost_of(trial)
        trials_read.append(Trial(trial.number, params, state, constraints=trial.constraints, **fields))
    return trials_read


def value_fields(trial: FrozenTrial, objectives: Objectives) -> dict[str, Any]:
    """Returns the value of a trial and its standard error, or the values of several objectives, as fields of `Trial`.

    Those of a trial without values are None, and none.
    """
    if len(objectives) == 1:
        return {"value": trial.value, "stderr": stderr_of(trial)}
    names = (objective.name for objective in objectives)
    return {"values": dict(zip(names, trial.values or (), strict=False))}


def numbers_of_retried(trials: Iterable[FrozenTrial]) -> set[int]:
    """Returns the numbers of failed trials that run again: by `dre-jax tune`, or by a callback of Optuna."""
    retried: set[int] = set()
    for trial in trials:
        retried.update(trial.system_attrs.get("retry_history", ()))  # by `RetryHeartbeatStaleTrialCallback`
        if is_retried(trial):
            retried.add(trial.number)
    return retried


def is_retried(trial: FrozenTrial) -> bool:
    """Returns whether `dre-jax tune` runs a failed trial again."""
    return trial.state == TrialState.FAIL and bool(trial.user_attrs.get(RETRIED, False))


def latest_distributions(trials: Sequence[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Returns each hyperparameter's distribution in the latest trial that has it: an objective may change its range."""
    latest: dict[str, BaseDistribution] = {}
    for trial in reversed(trials):
        if not trial.distributions.keys() <= latest.keys():
            latest = trial.distributions | latest
    return latest


def common_names(trials: Iterable[FrozenTrial]) -> set[str]:
    """Returns the hyperparameters that all complete trials have; those of the longest pruned trial if none is complete.

    A pruned trial may end before the objective has suggested all.
    """
    names: set[str] | None = None
    pruned_names: set[str] = set()
    for trial in trials:
        if trial.state == TrialState.COMPLETE:
            if names is None:
                names = set(trial.distributions)
            elif not names <= trial.distributions.keys():
                names &= trial.distributions.keys()
        elif trial.state == TrialState.PRUNED and len(trial.distributions) > len(pruned_names):
            pruned_names = set(trial.distributions)
    return pruned_names if names is None else names


def values_of(trial: FrozenTrial, translation: Translation) -> dict[str, Any]:
    """Returns a trial's values: those suggested, enqueued, and written by `share_suggestion`."""
    enqueued_values = trial.system_attrs.get("fixed_params", {})
    return {**translation.from_numbers(_shared(trial)), **enqueued_values, **trial.params}


def share_suggestion(study: Study, trial: FrozenTrial, values: Mapping[str, Any], translation: Translation) -> None:
    """Writes a trial's suggestion for the other workers: its own record gets the values one by one.

    In chunks, as Optuna's own samplers do; there is no public way to write a trial's attributes from a sampler.
    """
    text = json.dumps(translation.to_numbers(values))
    for i in range(0, len(text), _CHUNK):
        study._storage.set_trial_system_attr(trial._trial_id, f"{_KEY}:{i // _CHUNK}", text[i : i + _CHUNK])


def _shared(trial: FrozenTrial) -> dict[str, float]:
    chunks: list[str] = []
    while (chunk := trial.system_attrs.get(f"{_KEY}:{len(chunks)}")) is not None:
        chunks.append(chunk)
    try:  # trailing characters belong to an earlier, longer text
        return dict(json.JSONDecoder().raw_decode("".join(chunks))[0]) if chunks else {}
    except ValueError:  # another worker is writing it
        return {}


def responses(trials: Sequence[FrozenTrial], *, maximise: bool) -> list[float]:
    """Responses of finished trials of a study with one objective, higher is better.

    - Complete ones have their value.
    - A trial that `DREPruner` pruned has the posterior mean of its final value.
    - Any other pruned trial has no comparable value: its last report is of an earlier step. It was behind others, so it
      is set between the median and the worst of the feasible ones. The order is that of Optuna's TPE: trials that were
      stopped later are higher, and the last reports order those of one step.
    """
    result = np.zeros(len(trials))
    sign = 1.0 if maximise else -1.0
    complete = [i for i, trial in enumerate(trials) if trial.state == TrialState.COMPLETE]
    all_pruned = [i for i, trial in enumerate(trials) if trial.state == TrialState.PRUNED]
    forecast = [i for i in all_pruned if POSTERIOR in trials[i].system_attrs]
    result[forecast] = [sign * _posterior(trials[i])[0] for i in forecast]
    for i in complete:
        result[i] = sign * trials[i].values[0]
    feasible = [i for i in complete if all(value <= 0 for value in trials[i].constraints.values())]
    pruned_indices = sorted(
        (i for i in all_pruned if POSTERIOR not in trials[i].system_attrs),
        key=lambda i: _progress(trials[i], sign),
    )
    result[pruned_indices] = _below_the_median(result[feasible or complete], len(pruned_indices))
    return [float(value) for value in result]


def _posterior(trial: FrozenTrial) -> tuple[float, float]:
    """Returns the posterior mean and standard deviation of a trial that `DREPruner` pruned; zeros for other trials."""
    mean, deviation = trial.system_attrs.get(POSTERIOR, (0.0, 0.0)) if trial.state == TrialState.PRUNED else (0.0, 0.0)
    return float(mean), float(deviation)


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
