"""The tools of the server: functions of plain values, which return JSON. Their docstrings are read by agents."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

from dre_jax.errors import ConfigError, DataError
from dre_jax.report.style import write_to
from dre_jax.space.json_format import from_json
from dre_jax.tuning.engine.explanation import Explanation
from dre_jax.tuning.mcp.study_folder import StudyFolder
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.study.study_file import Study, trial_record
from dre_jax.tuning.trials.objectives import Objectives, best_trials
from dre_jax.tuning.trials.trial import Trial

_ANSWERS = {True: "yes", None: "unclear", False: "no"}


class StudyTools:
    """Tools that work on the studies of a folder."""

    def __init__(self, folder: StudyFolder) -> None:
        """Creates tools; they keep nothing that is not in the folder."""
        self._folder = folder

    def create_study(
        self,
        study: str,
        space: dict[str, Any],
        direction: str = "minimize",
        directions: dict[str, str] | None = None,
        past: list[str] | None = None,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Create a study, which searches for the best configuration of some hyperparameters.

        study: name of the study, such as "svc" or "runs/svc". Its file is NAME.json in the server's folder.
        space: the hyperparameters by name. Each is an object with a type:
          {"type": "float", "low": 1e-5, "high": 0.1, "log": true}, {"type": "int", "low": 1, "high": 8},
          {"type": "categorical", "choices": ["rbf", "poly"]} or {"type": "bool"}. A "default" is tried first. A
          hyperparameter that is active for some choices of another one has "when": {"kernel": "poly"}.
        direction: "minimize" or "maximize" the value.
        directions: in place of direction, those of several objectives by name: {"error": "minimize", "speed":
          "maximize"}. The study then searches for the best trade-offs.
        past: what the study learns from: names of past studies in the folder; or one checkpoint of a surrogate, or one
          table runs.csv with the columns task, value and the hyperparameters. To learn may take a minute.
        seed: the same seed and the same values give the same suggestions.
        """
        search_space = from_json(space)
        if past and directions:
            raise ConfigError("past studies need a study of one objective, but got directions of several")
        options: dict[str, Any] = {"direction": direction, "directions": directions, "seed": seed}
        Optimizer(search_space, **options)  # raises before a surrogate learns
        with self._folder.creating(study):
            surrogate = self._folder.surrogate(study, search_space, past, direction) if past else None
            optimizer = Optimizer(search_space, surrogate, **options)
            self._folder.save_new(study, optimizer)
        n_past = 0 if surrogate is None else len(surrogate.facts.get("tasks", ()))
        return {"study": study, "objectives": dict(optimizer.objectives), "past_studies": n_past}

    def ask(self, study: str, n: int = 1) -> dict[str, Any]:
        """Get the next trials of a study: configurations to evaluate.

        Evaluate each configuration, then call tell with the number of its trial. Several trials may run in parallel.
        The first call may take half a minute, as it compiles.

        study: name of the study.
        n: number of trials.
        """
        with self._folder.open(study) as optimizer:
            trials = optimizer.ask(n)
        return {"trials": [_describe(trial) for trial in trials]}

    def tell(
        self,
        study: str,
        trial: int,
        value: float | None = None,
        values: dict[str, float] | None = None,
        failed: bool = False,
        stderr: float | None = None,
        cost: float | None = None,
    ) -> dict[str, Any]:
        """Report how a trial ended: its value, or that it failed. A trial is told once.

        study: name of the study.
        trial: number of the trial, as ask returned it.
        value: of the objective.
        values: of several objectives, by name.
        failed: true if the trial crashed or gave no value. Later trials avoid such configurations.
        stderr: standard error of the value, for example over folds of a cross-validation.
        cost: of the trial, in any unit, such as seconds. Later trials are then chosen by their gain per cost.
        """
        outcome = values if value is None else value
        if (value is not None) + (values is not None) + failed != 1:
            raise DataError(f"tell needs one of value, values and failed, but got {value=}, {values=} and {failed=}")
        with self._folder.open(study) as optimizer:
            if outcome is None:
                ended = optimizer.tell_failed(trial, cost=cost)
            else:
                ended = optimizer.tell(trial, outcome, stderr=stderr, cost=cost)
            best = best_trials(optimizer.trials, optimizer.objectives)
        return {"told": _describe(ended), "best": list(map(_describe, best))}

    def explain(self, study: str, trial: int | None = None) -> dict[str, Any]:
        """Explain why a trial has its configuration, and what was expected of it.

        The answer has the reason, the expected improvement on the best value, the value that was expected with its 90 %
        interval, and how far each past study agrees with the trials. The origin is "initial" for trials that precede
        those of the method, "space-filling" while the trials do not show yet where better values are, "method", or
        "given" if other trials have ended since the suggestion.

        study: name of the study.
        trial: number of the trial; by default the latest one.
        """
        optimizer = self._folder.load(study)
        if not optimizer.trials:
            raise DataError("a study has explanations once it has trials, but it has none: call ask")
        return _explanation(optimizer.explain(len(optimizer.trials) - 1 if trial is None else trial))

    def list_studies(self) -> dict[str, Any]:
        """List the studies in the server's folder, with their numbers of trials and their best trials."""
        return {"studies": [self._summary(name) for name in self._folder.names()]}

    def list_trials(self, study: str, last: int = 20) -> dict[str, Any]:
        """List the trials of a study, the latest ones and the best ones.

        Running trials are those that nobody has told yet.

        study: name of the study.
        last: number of the latest trials.
        """
        content = self._folder.read(study)
        latest = content.trials[-last:] if last > 0 else ()
        return {**_progress(content), "trials": [_describe(trial) for trial in latest]}

    def importance(self, study: str, objective: str | None = None) -> dict[str, Any]:
        """Get how far each hyperparameter decides which trials are the best: shares of 1, the largest first.

        study: name of the study.
        objective: which of several.
        """
        return {"importance": self._folder.load(study).importance(objective=objective)}

    def figure(self, study: str, heading: str | None) -> tuple[str, bytes]:
        """Returns the heading of a figure of a study, and the figure as PNG; by default the first figure."""
        figures = self._folder.load(study).figures()
        chosen = next(iter(figures)) if heading is None else heading
        if chosen not in figures:
            raise ConfigError(f"the figures of {study!r} are {', '.join(figures)}, but got {chosen!r}")
        with io.BytesIO() as file:
            write_to(file, figures[chosen])
            return chosen, file.getvalue()

    def _summary(self, name: str) -> dict[str, Any]:
        try:
            return {"study": name, **_progress(self._folder.read(name))}
        except DataError as error:
            return {"study": name, "error": str(error)}


def _describe(trial: Trial) -> dict[str, Any]:
    """Returns a trial as JSON."""
    return {"trial": trial.number, **trial_record(trial)}


def _progress(study: Study) -> dict[str, Any]:
    """Returns what a list says of a study."""
    objectives: Objectives = study.objectives
    return {
        "objectives": dict(objectives),
        "hyperparameters": list(study.space),
        "n_trials": dict(Counter(trial.state for trial in study.trials)),
        "best": [_describe(trial) for trial in best_trials(study.trials, objectives)],
    }


def _explanation(explanation: Explanation) -> dict[str, Any]:
    """Returns an explanation as JSON, without the fields that are unknown."""
    facts: dict[str, Any] = {
        **_describe(explanation.trial),
        "origin": explanation.origin,
        "reason": str(explanation).splitlines()[0],
    }
    if explanation.improvement is not None:
        facts["expected_improvement"] = explanation.improvement
    if explanation.past_weight is not None:
        facts["weight_of_past"] = explanation.past_weight
    if explanation.expected_values:
        facts["expected_values"] = {name: value._asdict() for name, value in explanation.expected_values.items()}
    for sources in explanation.sources.values():
        rows = ((past.name, past.weight, past.agreement, _ANSWERS[past.helped]) for past in sources.studies)
        facts["past_studies"] = [
            dict(zip(("study", "weight", "agreement", "helped"), row, strict=True)) for row in rows
        ]
        facts["past_misleads"] = sources.mislead
    return facts
