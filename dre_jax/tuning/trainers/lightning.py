"""PyTorch Lightning: a callback of its `Trainer`."""

from typing import Any

from dre_jax.tuning.trainers.epochs import EpochReport, callback_class, require_one_process

Callback: Any = callback_class("Callback", "lightning.pytorch", "pytorch_lightning")


class LightningReport(EpochReport, Callback):
    """Reports a metric of Lightning to a trial after each epoch.

    With a validation, it reports after the epochs that the trainer validates.

    Args:
      trial: as `Optimizer.ask` or `Optimizer.optimize` gave it.
      metric: name of a metric that the module logs: "val_loss".
    """

    _is_validated = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Raises `ConfigError` for a trainer with several processes."""
        require_one_process(trainer.world_size)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Notes that the metrics are those of this epoch."""
        self._is_validated = not trainer.sanity_checking

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Reports the metric, and ends the training where the trial says."""
        has_metrics = self._is_validated or not trainer.enable_validation
        self._is_validated = False
        if has_metrics and self._report(trainer.callback_metrics, trainer.current_epoch + 1):
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Raises `ConfigError` if the module has logged no such metric."""
        self._check()
