"""Trackers as `dre-jax tune --track` names them."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dre_jax.errors import ConfigError, DataError, DreError
from dre_jax.tuning.study.optimizer import Optimizer
from dre_jax.tuning.trackers.mlflow import MLflowTracker
from dre_jax.tuning.trackers.tensorboard import TensorBoardTracker
from dre_jax.tuning.trackers.tracker import Tracker
from dre_jax.tuning.trackers.wandb import WandbTracker
from dre_jax.tuning.trials.trial import Trial

_TRACKERS: dict[str, Callable[[str | None, str], Tracker]] = {
    "mlflow": lambda address, name: MLflowTracker(name, address),
    "tensorboard": lambda folder, name: TensorBoardTracker(folder or "runs"),
    "wandb": lambda project, name: WandbTracker(project or name),
}
"""Functions of the text after "=" and the name of the study."""


def check_tracker(text: str) -> None:
    """Raises `ConfigError` unless a text names a tracker: ``mlflow=ADDRESS``, ``tensorboard=DIR``, ``wandb=PROJECT``.

    Example:
      >>> check_tracker("neptune=wine")
      Traceback (most recent call last):
          ...
      dre_jax.errors.ConfigError: a tracker must be mlflow, tensorboard or wandb, but got 'neptune=wine'
    """
    kind, equals, target = text.partition("=")
    if kind not in _TRACKERS or bool(equals) != bool(target):
        raise ConfigError(f"a tracker must be mlflow, tensorboard or wandb, but got {text!r}")


@contextlib.contextmanager
def tracking(texts: Sequence[str], name: str, optimizer: Any) -> Iterator[Callable[[Trial], None]]:
    """Yields a function that writes a trial that has ended to the trackers of some texts; their ends write figures.

    Args:
      texts: as `check_tracker` takes them.
      name: of the study, for trackers that name experiments or projects.
      optimizer: the study, whose trials so far are written first.

    Raises:
      ConfigError: as `check_tracker`.
      MissingExtraError: without the package of a tracker.
      DataError: if a tracker refuses the study.
    """
    with contextlib.ExitStack() as stack:
        trackers = [stack.enter_context(_tracker(text, name, optimizer)) for text in texts]

        def track(trial: Trial) -> None:
            for tracker in trackers:
                tracker(optimizer, trial)

        yield track


@contextlib.contextmanager
def _tracker(text: str, name: str, optimizer: Optimizer) -> Iterator[Tracker]:
    check_tracker(text)
    kind, _, target = text.partition("=")
    with _errors_of(text):
        tracker = _TRACKERS[kind](target or None, name)
        tracker.track(optimizer)
    failed = True
    try:
        yield tracker
        failed = False
    finally:
        with _errors_of(text):
            tracker.finish(failed=failed)


@contextlib.contextmanager
def _errors_of(text: str) -> Iterator[None]:
    """Raises `DataError` for an exception of a tracker's package."""
    try:
        yield
    except DreError:
        raise
    except Exception as error:
        raise DataError(f"the tracker {text!r} failed: {type(error).__name__}: {error}") from error
