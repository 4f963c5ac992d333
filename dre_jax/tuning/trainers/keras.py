"""Keras: a callback of `Model.fit`, with any backend."""

from collections.abc import Mapping
from typing import Any

from dre_jax.tuning.trainers.epochs import EpochReport, callback_class

Callback: Any = callback_class("Callback", "keras.callbacks")


class KerasReport(EpochReport, Callback):
    """Reports a metric of Keras to a trial after each epoch that has it.

    Args:
      trial: as `Optimizer.ask` or `Optimizer.optimize` gave it.
      metric: name of a metric, as Keras prints it: "val_loss".
    """

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Reports the metric, and ends the training where the trial says."""
        if self._report(logs or {}, epoch + 1):
            self.model.stop_training = True

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """Raises `ConfigError` if Keras has had no such metric."""
        self._check()
