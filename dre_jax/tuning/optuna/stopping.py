"""Ends a study of Optuna when little is left to gain, by the rule of `dre_jax.tuning.Optimizer.gain_is_below`."""

import math
from collections.abc import Sequence

from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_jax.checks import check_positive
from dre_jax.errors import ConfigError
from dre_jax.tuning.engine.stopping import gains_little
from dre_jax.tuning.optuna.sampler import DRESampler
from dre_jax.tuning.optuna.trials import IMPROVEMENT, numbers_of_retried
from dre_jax.tuning.past.trial_attributes import RESUMES


class StopWhenGainBelow:
    """Callback that stops a study once ten suggestions in a row were expected to gain less than a threshold.

    The rule is that of ``Optimizer.optimize(stop_when_gain_below=)``: the study never stops within ten trials of an
    improvement that large. The expected improvements are in the storage, so all processes of a study count together.

    Example:
      >>> import optuna
      >>> from dre_jax.tuning import Float, Space
      >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
      >>> study = optuna.create_study(sampler=DRESampler(Space({"x": Float(-1.0, 1.0)}), seed=0))
      >>> stop = StopWhenGainBelow(0.5)
      >>> study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=60, callbacks=[stop])
      >>> len(study.trials) < 60
      True
    """

    def __init__(self, threshold: float) -> None:
        """Creates a callback; the threshold is in units of the values. Raises `ConfigError` unless it is positive."""
        check_positive(**{"the threshold of the expected gain": threshold})
        self.threshold = threshold

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Stops a study of one objective, whose sampler is a `DRESampler`.

        Raises `ConfigError` for another sampler, several objectives, or a method that has no expected improvement.
        """
        sampler = study.sampler
        while not isinstance(sampler, DRESampler) and hasattr(sampler, "_base_sampler"):
            sampler = sampler._base_sampler  # of `PartialFixedSampler`
        if not isinstance(sampler, DRESampler):
            raise ConfigError(f"an expected gain needs a study with a DRESampler, but got {type(sampler).__name__}")
        sampler.require_improvement(len(study.directions))
        if gain_is_below(study.get_trials(deepcopy=False), study.direction.name.lower(), self.threshold):
            study.stop()


def gain_is_below(trials: Sequence[FrozenTrial], direction: str, threshold: float) -> bool:
    """Returns whether the latest suggestions of a study with one objective gain little; see `gains_little`."""
    retried, sign = numbers_of_retried(trials), -1.0 if direction == "maximize" else 1.0
    started = [trial for trial in trials if trial.state != TrialState.WAITING and trial.number not in retried]
    suggested = [trial for trial in started if RESUMES not in trial.user_attrs]
    improvements = [trial.system_attrs.get(IMPROVEMENT, math.inf) for trial in suggested]
    complete = [trial for trial in started if trial.state == TrialState.COMPLETE]
    losses = {
        trial.number: sign * trial.values[0]
        for trial in complete
        if all(value <= 0 for value in trial.constraints.values())
    }
    return gains_little(improvements, losses, started[-1].number + 1 if started else 0, threshold)
