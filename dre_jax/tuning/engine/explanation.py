"""Why a trial has its configuration, and what the method expected of it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning.engine.engine import Engine, Origin
from dre_jax.tuning.engine.study_arrays import total_cost
from dre_jax.tuning.surrogates.sources import Sources
from dre_jax.tuning.trials.trial import VALUE, Trial

_QUANTILES = (0.05, 0.5, 0.95)
_REASONS: Mapping[str, str] = {
    "given": "was given by the caller, or suggested while other trials were known",
    "initial": "precedes those of the method: a default, a good configuration of past studies, or a Sobol point",
    "space-filling": "fills the space, because the trials do not show yet where better values are",
    "method": "has the best score of the method",
}


class Standing(NamedTuple):
    """The value of a paused trial, or its values of several objectives, among all trainings at its budget."""

    trial: int
    """Its number."""
    budget: float
    rank: int
    """1 for the best value."""
    n: int
    """Number of trainings."""


class ExpectedValue(NamedTuple):
    """The value that the method expected of a trial."""

    low: float
    """5 % of the predicted values are below."""
    median: float
    high: float
    """5 % of the predicted values are above."""


@dataclass(frozen=True)
class Explanation:
    """Why a trial has its configuration. `print(explanation)` prints it.

    Example:
      >>> print(Explanation(Trial(7, {"x": 0.5}), "method", 0.2, 0.9, {"value": ExpectedValue(1.0, 2.0, 4.0)}))
      trial 7 has the best score of the method
      expected improvement of the best value: 0.2
      expected value: 2, and with 90 % probability between 1 and 4
      weight of the past: 0.90
    """

    trial: Trial
    """As it is now."""
    origin: Origin | Literal["resumed"]
    """What decided on the configuration. "given" if the trials before this one, as they are now, suggest another;
    "resumed" if this trial continues the training of another one."""
    improvement: float | None = None
    """Expected improvement on the best value, in units of the values; None if the method did not decide or has none."""
    past_weight: float | None = None
    """Weight of the hypotheses that use past studies; None if the method did not decide, or does not weigh them."""
    expected_values: dict[str, ExpectedValue] = field(default_factory=dict)
    """By objective, "value" for the only one, as predicted from the trials before this one. Empty before two of them
    have different values, and for a method that does not predict values."""
    sources: dict[str, Sources] = field(default_factory=dict)
    """The past studies of each surrogate that has some, compared with the trials before this one."""
    standing: Standing | None = None
    """That of the trial whose training this one continues; None for a new configuration."""

    def __str__(self) -> str:
        """A few lines."""
        lines = [f"trial {self.trial.number} {self._reason()}"]
        if self.improvement is not None:
            lines.append(f"expected improvement of the best value: {self.improvement:.4g}")
        for name, value in self.expected_values.items():
            objective = "value" if name == VALUE else f"value of {name}"
            interval = f"and with 90 % probability between {value.low:.4g} and {value.high:.4g}"
            lines.append(f"expected {objective}: {value.median:.4g}, {interval}")
        if self.past_weight is not None and not self.sources:
            lines.append(f"weight of the past: {self.past_weight:.2f}")
        for sources in self.sources.values():
            lines += sources.lines(5)
        return "\n".join(lines)

    def _reason(self) -> str:
        if self.origin != "resumed" or self.standing is None:
            return _REASONS.get(self.origin, "")
        trial, budget, rank, n = self.standing
        values = "values" if self.trial.values or len(self.expected_values) > 1 else "value"
        return f"resumes trial {trial}, whose {values} at budget {budget:g} ranked {rank} of {n}"


def explain_trial(
    engine: Engine,
    trials: Sequence[Trial],
    trial: Trial,
    observe: Callable[[Sequence[Trial]], Sequence[Trial]] = tuple,
    standing: Standing | None = None,
) -> Explanation:
    """Returns why a trial of a study has its configuration, from the trials before it, as they are now.

    With a fidelity, ``observe`` returns the trainings of trials, with their final values, and ``standing`` is that of
    the trial that this one resumes.
    """
    spent, earlier = total_cost(trials[: trial.number]), observe(trials[: trial.number])
    if standing is not None:
        values, sources = _expected_values(engine, earlier, trial), _sources(engine, earlier)
        return Explanation(trial, "resumed", expected_values=values, sources=sources, standing=standing)
    suggestion = engine.propose(earlier, number=trial.number, spent=spent)
    origin: Origin = suggestion.origin if suggestion.params == trial.params else "given"
    improvement = suggestion.improvement if origin == "method" else None
    return Explanation(
        trial,
        origin,
        None if improvement is None or not math.isfinite(improvement) else improvement,
        suggestion.past_weight if origin == "method" else None,
        _expected_values(engine, earlier, trial),
        _sources(engine, earlier),
    )


def _expected_values(engine: Engine, earlier: Sequence[Trial], trial: Trial) -> dict[str, ExpectedValue]:
    values, point = dict[str, ExpectedValue](), engine.space.point(trial.params)[None]
    for name, _ in engine.objectives:
        observations = [other.with_objective(name) for other in earlier]
        with contextlib.suppress(ConfigError, DataError):  # no predictions: of this method, or yet
            prediction = engine.of_objective(name).predict(observations, point, np.array(_QUANTILES), noise=True)
            values[name] = ExpectedValue(*prediction.quantiles[:, 0].tolist())
    return values


def _sources(engine: Engine, earlier: Sequence[Trial]) -> dict[str, Sources]:
    return {
        name: surrogate.sources([other.with_objective(name) for other in earlier], direction=direction)
        for name, direction in engine.objectives
        if (surrogate := engine.surrogates[name]) is not None and surrogate.studies is not None
    }
