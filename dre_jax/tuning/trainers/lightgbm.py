"""LightGBM: a callback of `lightgbm.train`, `lightgbm.cv` and its estimators."""

from typing import Any

from dre_jax.tuning.trainers.epochs import EpochReport


class LightGBMReport(EpochReport):
    """Reports a metric of LightGBM to a trial after each boosting round.

    A training that `init_model` continues counts the rounds of that model too. `lightgbm.cv` reports the mean over
    folds.

    Args:
      trial: as `Optimizer.ask` or `Optimizer.optimize` gave it.
      metric: names of a data set and a metric with a hyphen between them: "valid_0-binary_logloss".
    """

    def __call__(self, env: Any) -> None:
        """Reports the metric.

        Raises `ConfigError` for an unknown metric, and `lightgbm.EarlyStopException`, which ends the training.
        """
        values = {f"{data}-{name}": value for data, name, value, *_ in env.evaluation_result_list or ()}
        is_over = self._report(values, env.iteration + 1)
        self._check()
        if is_over:
            from lightgbm import EarlyStopException

            raise EarlyStopException(env.iteration, env.evaluation_result_list)
