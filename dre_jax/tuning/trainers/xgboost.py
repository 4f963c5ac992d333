"""XGBoost: a callback of `xgboost.train`, `xgboost.cv` and its estimators."""

from typing import Any

from dre_jax.tuning.trainers.epochs import EpochReport, callback_class

TrainingCallback: Any = callback_class("TrainingCallback", "xgboost.callback")


class XGBoostReport(EpochReport, TrainingCallback):
    """Reports a metric of XGBoost to a trial after each boosting round.

    A training that `xgb_model` continues counts the rounds of that model too. `xgboost.cv` reports the mean over folds.

    Args:
      trial: as `Optimizer.ask` or `Optimizer.optimize` gave it.
      metric: names of a data set and a metric, as XGBoost prints them: "validation-logloss".
    """

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Reports the metric; returns whether the training ends. Raises `ConfigError` for an unknown metric."""
        values = {f"{data}-{name}": log[-1] for data, logs in evals_log.items() for name, log in logs.items()}
        means = {name: value[0] if isinstance(value, tuple) else value for name, value in values.items()}
        is_over = self._report(means, model.num_boosted_rounds())
        self._check()
        if is_over and hasattr(model, "cvfolds"):
            model.set_attr(best_iteration=str(epoch))  # `xgboost.cv` reads it after a callback that ends it
        return is_over
