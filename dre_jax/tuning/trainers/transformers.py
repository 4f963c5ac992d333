"""Hugging Face Transformers: a callback of its `Trainer`."""

from collections.abc import Mapping
from typing import Any

from dre_jax.tuning.trainers.epochs import EpochReport, callback_class, require_one_process

TrainerCallback: Any = callback_class("TrainerCallback", "transformers")


class TransformersReport(EpochReport, TrainerCallback):
    """Reports a metric of a `Trainer` to a trial after each evaluation.

    With ``save_strategy="epoch"``, the trainer saves a checkpoint where the training ends, too.

    Args:
      trial: as `Optimizer.ask` or `Optimizer.optimize` gave it.
      metric: name of a metric of the evaluation, as the trainer logs it: "eval_loss".
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Raises `ConfigError` for a training in several processes."""
        require_one_process(args.world_size)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any], **kwargs: Any) -> None:
        """Reports the metric, and ends the training where the trial says."""
        if self._report(metrics, state.epoch):
            control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Raises `ConfigError` if no evaluation had such a metric."""
        self._check()
