"""Trackers of experiments: callbacks that write the trials of a study to MLflow, TensorBoard, Weights & Biases."""

from dre_jax.tuning.trackers.mlflow import MLflowTracker
from dre_jax.tuning.trackers.tensorboard import TensorBoardTracker
from dre_jax.tuning.trackers.tracker import Tracker
from dre_jax.tuning.trackers.wandb import WandbTracker

__all__ = ["MLflowTracker", "TensorBoardTracker", "Tracker", "WandbTracker"]
