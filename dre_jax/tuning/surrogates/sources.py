"""Which past studies helped: their weights, their agreement with the trials, and the weight of the past as a whole."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from dre_jax.checks import one_of
from dre_jax.data.tasks import spaced_rows
from dre_jax.errors import ConfigError, DataError, DataWarning
from dre_jax.runtime.cache import suggestion_runtime
from dre_jax.runtime.float_errors import with_default_float_errors
from dre_jax.search.history import capacity_for, make_history
from dre_jax.search.method import Method, PastWeighingMethod
from dre_jax.space.space import Params, Space
from dre_jax.suggest.precision import precision_of, with_precision
from dre_jax.summaries import summary
from dre_jax.tuning.past.studies import Comparison, PastStudies, compare_studies, weigh_past
from dre_jax.tuning.trials.objectives import DIRECTIONS, Objectives
from dre_jax.tuning.trials.responses import clip_responses, rank_infeasible_last, violation_of
from dre_jax.tuning.trials.selection import select_trials
from dre_jax.tuning.trials.trial import Trial, outcome_of

_SUBSTANTIAL, _STRONG = math.log(3.0), math.log(10.0)  # log evidence (Jeffreys 1961)
_ANSWERS = {True: "yes", None: "unclear", False: "no"}
_MAX_TRIALS, _MAX_WEIGHTS = 192, 51
_FIRST_CHECK, _CHECK_GROWTH = 8, 1.5  # numbers of complete trials at which past studies are compared with them


class Evaluation(Protocol):
    """A configuration and its value: a `Trial`, an `Evaluated`, or a trial of Optuna."""

    @property
    def params(self) -> Mapping[str, Any]:
        """Values by name."""
        ...

    @property
    def value(self) -> float | None:
        """The objective's value; None without one."""
        ...


class _Surrogate(Protocol):
    """The part of `dre_jax.tuning.Surrogate` that this file reads; the surrogate's file imports this one."""

    @property
    def space(self) -> Space: ...
    @property
    def method(self) -> Method: ...
    @property
    def params(self) -> Any: ...
    @property
    def studies(self) -> PastStudies | None: ...
    @property
    def constrained(self) -> bool: ...


class SourceStudy(NamedTuple):
    """A past study, compared with the trials of the current study."""

    name: str
    """The study's name, as `past_of` got it."""
    weight: float
    """Probability, among the past studies and no study, that the trials follow the study's predictions."""
    agreement: float
    """Kendall's rank correlation of the study's predictions and the values of the trials, in [-1, 1]."""
    agreement_error: float
    """Standard deviation of the agreement of unrelated functions; infinite before the second trial."""
    gain: float
    """Log predictive density of the trials, one step ahead, with the study minus that without past studies."""

    @property
    def helped(self) -> bool | None:
        """Whether the study predicts the trials better than they do themselves; None if the evidence is below 3:1."""
        return None if abs(self.gain) < _SUBSTANTIAL else self.gain > 0


@dataclass(frozen=True, repr=False)
class Sources:
    """Past studies of a surrogate, compared with trials. `print(sources)` prints a table.

    Example:
      >>> week_1 = SourceStudy("week 1", 0.9, 0.71, 0.2, 4.2)
      >>> print(Sources((week_1,), {0: 0.8, 12: 0.95}, 1))
      past study  weight  agreement     helped
      week 1      0.90    +0.71 ± 0.20  yes
      weight of the past: 0.95 after 12 trials, 0.80 before the first
    """

    studies: tuple[SourceStudy, ...]
    """The highest weight first, then the highest agreement."""
    past_weights: dict[int, float]
    """Weight of the hypotheses that use past tasks, by the number of trials; empty if the method does not weigh
    them."""
    n_past: int
    """Number of past studies that the surrogate learned from; `studies` has at most 50 of them."""

    @property
    def mislead(self) -> bool:
        """Whether the past studies together predict the trials worse than nothing does, and mostly in reverse order.

        The evidence is above 10 to 1, and the mean over studies of the agreement in units of its error is below -1.
        """
        z_scores = [source.agreement / source.agreement_error for source in self.studies]
        return bool(self.studies) and self.gain < -_STRONG and float(np.mean(z_scores)) < -1.0

    @property
    def gain(self) -> float:
        """Log predictive density of the mean over the past studies, minus that without; 0 without studies."""
        gains = [source.gain for source in self.studies]
        return float(np.logaddexp.reduce(gains) - math.log(len(gains))) if gains else 0.0

    def __repr__(self) -> str:
        weights: dict[int, float] = {n: round(weight, 3) for n, weight in sorted(self.past_weights.items())[-1:]}
        names = [source.name for source in self.studies]
        return summary(self, studies=names, n_past=self.n_past, past_weights=weights, mislead=self.mislead)

    def __str__(self) -> str:
        """The table."""
        return "\n".join(self.lines())

    def lines(self, most: int | None = None) -> list[str]:
        """Returns the lines of the table.

        Args:
          most: maximum number of past studies; None for all.
        """
        rows = [("past study", "weight", "agreement", "helped")]
        for source in self.studies[:most]:
            agreement = f"{source.agreement:+.2f} ± {source.agreement_error:.2f}"
            rows.append((source.name, f"{source.weight:.2f}", agreement, _ANSWERS[source.helped]))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows] if self.studies else []
        if len(lines) - 1 < self.n_past and lines:
            lines.append(f"and {self.n_past - len(lines) + 1} more")
        if not self.studies:
            lines.append("the surrogate holds no past studies to compare, as those that ship or learned from tables")
        if self.past_weights:
            n, last = max(self.past_weights.items())
            lines.append(
                f"weight of the past: {last:.2f} after {n} trials, {self.past_weights[0]:.2f} before the first"
            )
        return lines

    def plot(self, *paths: Path, most: int = 20) -> None:
        """Draws the agreement of the studies and the weight of the past, as PNG or SVG by each path's suffix.

        Args:
          paths: the files.
          most: maximum number of past studies.

        Raises:
          DataError: if a file cannot be written, or there are no past studies.
        """
        from matplotlib.ticker import MaxNLocator

        from dre_jax.report.style import COLOURS, display_name, new_figure

        if not self.studies:
            raise DataError("a plot needs past studies, but the surrogate holds none")
        looks = {True: (COLOURS[0], "o"), None: ("#8C8C8C", "s"), False: (COLOURS[1], "X")}
        past = sorted(self.studies[:most], key=lambda source: source.agreement)
        with new_figure((7.6, 1.8 + 0.17 * max(len(past), 6)), *paths) as figure:
            panels = figure.subplots(1, 2 if self.past_weights else 1, squeeze=False)[0]
            for helped, (colour, marker) in looks.items():
                rows = [i for i, source in enumerate(past) if source.helped is helped]
                errors = [min(past[i].agreement_error, 9.0) for i in rows]
                look: dict[str, Any] = {"color": colour, "fmt": marker, "markersize": 5, "elinewidth": 1.2}
                panels[0].errorbar([past[i].agreement for i in rows], rows, xerr=errors, label=_ANSWERS[helped], **look)
            panels[0].axvline(0.0, color="#8C8C8C", linewidth=0.8, zorder=0)
            panels[0].set_yticks(range(len(past)), [display_name(source.name, 20) for source in past])
            panels[0].set(xlim=(-1.05, 1.05), xlabel="agreement with the trials")
            panels[0].legend(title="helped", frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
            if self.past_weights:
                panels[1].plot(*zip(*self.past_weights.items(), strict=True), color=COLOURS[0], linewidth=1.8)
                panels[1].set(ylim=(0.0, 1.0), xlabel="trials", ylabel="weight of the past")
                panels[1].xaxis.set_major_locator(MaxNLocator(integer=True))
            for axes in panels:
                axes.spines[["top", "right"]].set_visible(False)


@with_default_float_errors
def compare_sources(
    surrogate: _Surrogate, trials: Iterable[Evaluation], direction: str | None, *, weigh: bool = True
) -> Sources:
    """Returns the past studies of a surrogate compared with trials; see `Surrogate.sources`.

    Without ``weigh``, `past_weights` is empty.
    """
    if direction is None:
        raise ConfigError("the surrogate has no direction: pass direction='minimize' or 'maximize'")
    one_of("direction", direction, DIRECTIONS)
    studies, (x, values, violations) = surrogate.studies, _encode_trials(surrogate.space, trials)
    responses = values if direction == "maximize" else -values
    responses = rank_infeasible_last(responses, violations) if surrogate.constrained else responses
    responses = clip_responses(responses) if len(values) else values
    rows = select_trials(responses, _MAX_TRIALS)
    x, responses = x[rows], responses[rows]
    source_studies: tuple[SourceStudy, ...] = ()
    with suggestion_runtime:
        if studies is not None:
            with jax.enable_x64(False):
                source_studies = weighted_studies(studies.names, compare_studies(studies, x, responses))
        weights = _past_weights(surrogate.method, surrogate.params, x, responses, rows) if weigh else {}
    return Sources(source_studies, weights, 0 if studies is None else len(studies.all_names))


class PastCheck:
    """Compares past studies with the complete trials of a study, whenever these have grown by a half."""

    def __init__(self, n_checked: int = 0) -> None:
        """Creates a check; earlier sessions have checked the first ``n_checked`` complete trials."""
        self._next_check = max(_FIRST_CHECK, _CHECK_GROWTH * n_checked)
        self._warned_objectives: set[str] = set()

    def warn_if_misleading(
        self,
        trials: Sequence[Trial],
        objectives: Objectives,
        surrogates: Mapping[str, _Surrogate | None],
    ) -> None:
        """Warns the caller's caller, once for each objective, if the past studies of its surrogate mislead."""
        if len(trials) < self._next_check:
            return  # without a walk over the trials, for every suggestion of a long study
        complete = [trial for trial in tuple(trials) if trial.state == "complete"]
        if len(complete) < self._next_check:
            return
        self._next_check = _CHECK_GROWTH * len(complete)
        for name, direction in objectives:
            surrogate = surrogates[name]
            if surrogate is None or surrogate.studies is None or name in self._warned_objectives:
                continue
            values = [trial.with_objective(name) for trial in complete]
            sources = compare_sources(surrogate, values, direction, weigh=False)
            if sources.mislead:
                self._warned_objectives.add(name)
                owner = f" of {name!r}" if len(objectives) > 1 else ""
                fault = f"they predict the {len(complete)} trials worse than these do by themselves"
                rule = f"the past studies{owner} mislead: {fault}"
                evidence = f"with evidence of {min(math.exp(-sources.gain), 1e6):.0f} to 1"
                remedy = "surrogate.sources(trials) compares them; check the direction of the past values"
                warnings.warn(f"{rule}, {evidence}: {remedy}", DataWarning, stacklevel=3)


def weighted_studies(names: Sequence[str], comparison: Comparison) -> tuple[SourceStudy, ...]:
    """Returns studies with weights; before the first trial, half of the weight is on no study.

    The weights are proportional to the predictive densities of the trials, as in Bayesian model averaging.
    """
    gain = np.asarray(comparison.gain, np.float64)
    log_weight = gain - math.log(len(names))
    weights = np.exp(log_weight - np.logaddexp.reduce([0.0, *log_weight]))
    fields = zip(names, weights, comparison.agreement, comparison.agreement_error, gain, strict=True)
    studies = [SourceStudy(name, *map(float, numbers)) for name, *numbers in fields]
    return tuple(sorted(studies, key=lambda source: (-round(source.weight, 2), -source.agreement)))


def _encode_trials(space: Space, trials: Iterable[Evaluation]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the columns f64[n, D], the values f64[n] and the violations f64[n] of the trials that have a value."""
    configurations, values, violations = list[Params](), list[float](), list[float]()
    for trial in trials:
        is_complete = outcome_of(trial) == "complete"
        if is_complete and isinstance(trial, Trial) and trial.values:
            raise DataError(
                "trials must have one value: pass trial.with_objective(name) of trials of several objectives"
            )
        is_outside = isinstance(trial, Trial) and not trial.in_space
        if not is_complete or is_outside or trial.value is None or math.isnan(trial.value):
            continue
        params = {name: value for name, value in trial.params.items() if name in space}
        try:
            configurations.append(space.check(space.active_part(params), rules=False))
        except DataError as error:
            raise DataError(f"trials must have the hyperparameters of the surrogate: {error}") from error
        values.append(float(trial.value))
        violations.append(violation_of(trial))
    return space.encode_rows(configurations), np.array(values, np.float64), np.array(violations, np.float64)


def _past_weights(
    method: Method, params: Any, x: np.ndarray, responses: np.ndarray, rows: np.ndarray
) -> dict[int, float]:
    """Returns the weight of the past by the number of trials; empty if the method does not weigh it."""
    if not isinstance(method, PastWeighingMethod):
        return {}
    n = len(responses)
    with precision_of(method) as dtype:
        history = make_history(x, responses, min(max(capacity_for(n), 32), _MAX_TRIALS), dtype)
        params = jax.device_put(with_precision(params, dtype))
        counts = spaced_rows(n + 1, _MAX_WEIGHTS)
        weights = [float(weigh_past(method, params, history, count)) for count in counts.tolist()]
    numbers = np.concatenate([[0], rows + 1])[counts]
    return dict(zip(numbers.tolist(), weights, strict=True))
