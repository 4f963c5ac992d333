"""`DREPruner`: stops trials of an Optuna study that will hardly become the best."""

from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from dre_jax.checks import check_share
from dre_jax.summaries import summary
from dre_jax.tuning.curves.study_curves import StudyCurves
from dre_jax.tuning.optuna.trials import POSTERIOR
from dre_jax.tuning.past.curves import PastCurves, as_curve, finished_curves


class DREPruner(BasePruner):
    """Pruner for Optuna studies with one objective: forecasts the final value of a trial from its intermediate values.

    A trial is pruned if its probability to become the best is below a bound. The bound is calibrated so that few of the
    best trials are pruned. With past studies of the same kind, a trial is also pruned if it is farther behind the
    others than their best trials were. `dre_jax.tuning.curves.forecast` describes the model. The largest step of
    complete trials is the horizon. The first six trials run to the end, three with past studies. The pruner has no
    state beside the study. It writes the posterior of the final value of a pruned trial, from which `DRESampler`
    learns. Optuna's trials cannot be resumed; `Optimizer` with a fidelity pauses trials and resumes the best ones.

    Example:
      >>> import optuna
      >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
      >>> def objective(trial):
      ...     x = trial.suggest_float("x", -1.0, 1.0)
      ...     for step in range(1, 10):
      ...         trial.report(x**2 + 1 / step, step)
      ...         if trial.should_prune():
      ...             raise optuna.TrialPruned
      ...     return x**2
      >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), pruner=DREPruner())
      >>> study.optimize(objective, n_trials=20)
      >>> len(study.get_trials(states=[optuna.trial.TrialState.PRUNED])) > 5
      True
    """

    def __init__(self, past: PastCurves | None = None, *, error: float = 0.05) -> None:
        """Creates a pruner.

        Args:
          past: learning curves of past studies, by `PastCurves.from_studies` for example.
          error: share of the best trials that may be pruned.

        Raises:
          ConfigError: for an error that is not between 0 and 1.
          DataError: for past curves that are not `PastCurves`.
        """
        check_share("error", error)
        self._curves = StudyCurves(past, error)
        self._past, self._error = past, error

    def __repr__(self) -> str:
        return summary(self, past=self._past, error=self._error)

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Returns whether to prune a trial of a study with one objective."""
        sign = 1.0 if study.direction.name == "MAXIMIZE" else -1.0
        ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
        curve = as_curve(trial.intermediate_values, sign)
        ended_curves = [as_curve(other.intermediate_values, sign) for other in ended if other.intermediate_values]
        forecast = self._curves.forecast(finished_curves(ended, sign), curve, trial.number + 1, ended_curves)
        if forecast is None or not forecast.stops:
            return False
        posterior = [sign * forecast.response, forecast.stderr]
        study._storage.set_trial_system_attr(trial._trial_id, POSTERIOR, posterior)
        return True
