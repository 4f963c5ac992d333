"""TensorBoard: event files of each trial, with its hyperparameters for the plugin HParams."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre_jax.data.files import make_folder
from dre_jax.errors import import_extra
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.trackers.tracker import Tracker, curve_of, metrics_of
from dre_jax.tuning.trials.trial import Trial

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WRITTEN = "trial-"
"""Prefix of the folder of a trial that is written completely."""


class TensorBoardTracker(Tracker):
    """Writes a study to TensorBoard: a folder with event files for the study with its figures, and one for each trial.

    The dashboard HParams has the hyperparameters, the values and the status of each trial. The scalar "report" is the
    learning curve; the scalars of a trial have its number as their step.

    Example:
      >>> import tempfile
      >>> from dre_jax.tuning import Float
      >>> folder, optimizer = tempfile.mkdtemp(), Optimizer({"x": Float(-1.0, 1.0)})
      >>> optimizer.optimize(lambda trial: trial["x"] ** 2, 3, callbacks=TensorBoardTracker(folder))
      >>> sorted(path.name for path in Path(folder).glob("*/*"))
      ['trial-0', 'trial-1', 'trial-2']
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Creates the folder.

        Args:
          folder: of TensorBoard's ``--logdir``; each study has one of its own in it.

        Raises:
          MissingExtraError: without tensorboardX or Optuna.
          DataError: if the folder cannot be made.
        """
        super().__init__()
        self._writer = import_extra("tensorboardX", "tensorboardX", "tensorboard").SummaryWriter
        self._folder = Path(folder)
        make_folder(self._folder)

    def _open(self, optimizer: Optimizer) -> set[int]:
        self._folder /= optimizer.study_id
        make_folder(self._folder)
        return {int(path.name.removeprefix(_WRITTEN)) for path in self._folder.glob(f"{_WRITTEN}*")}

    def _write(self, trial: Trial) -> None:
        part = self._folder / f"part-{trial.number}"
        shutil.rmtree(part, ignore_errors=True)
        with self._writer(str(part)) as writer:
            for name, value in metrics_of(trial).items():
                writer.add_scalar(name, value, trial.number)
            for step, value in curve_of(trial):
                writer.add_scalar("report", value, step)
            for summary in _session(trial):
                writer.file_writer.add_summary(summary)
        part.rename(self._folder / f"{_WRITTEN}{trial.number}")

    def _finish(self, figures: Mapping[str, Figure], *, failed: bool) -> None:
        with self._writer(str(self._folder)) as writer:
            for heading, figure in figures.items():
                writer.add_figure(heading, figure, len(self._written), close=False)


def _session(trial: Trial) -> tuple[Any, Any]:
    """Returns the summaries by which HParams knows a trial: the start with the hyperparameters, and the end."""
    from tensorboardX.proto import api_pb2, plugin_hparams_pb2

    start = plugin_hparams_pb2.SessionStartInfo(group_name=f"trial {trial.number}")
    for name, value in trial.params.items():
        if isinstance(value, bool):
            start.hparams[name].bool_value = value
        elif isinstance(value, (int, float)):
            start.hparams[name].number_value = value
        else:
            start.hparams[name].string_value = str(value)
    status = api_pb2.STATUS_FAILURE if trial.state == "failed" else api_pb2.STATUS_SUCCESS
    end = plugin_hparams_pb2.SessionEndInfo(status=status)
    return _summary("start", start), _summary("end", end)


def _summary(kind: str, info: Any) -> Any:
    from tensorboardX.proto import plugin_hparams_pb2, summary_pb2

    data = plugin_hparams_pb2.HParamsPluginData(**{f"session_{kind}_info": info})
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="hparams", content=data.SerializeToString())
    metadata = summary_pb2.SummaryMetadata(plugin_data=plugin)
    return summary_pb2.Summary(
        value=[summary_pb2.Summary.Value(tag=f"_hparams_/session_{kind}_info", metadata=metadata)]
    )
