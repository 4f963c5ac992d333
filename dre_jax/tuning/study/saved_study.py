"""Studies that are saved in files, and that continue in another search space."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import EllipsisType
from typing import Any, Self

from dre_jax.data.files import stamp
from dre_jax.errors import DataError, DataWarning
from dre_jax.space.completion import complete_part
from dre_jax.space.space import Space
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.past.curves import PastCurves
from dre_jax.tuning.study.space_change import changed_study, warn_of_outside
from dre_jax.tuning.study.study_file import (
    Stamp,
    Study,
    origin_of,
    read_study,
    resume_features,
    resume_surrogates,
    write_study,
)
from dre_jax.tuning.study.study_record import StudyRecord
from dre_jax.tuning.surrogates.sources import PastCheck
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import direction_arguments, value_or_mapping


class SavedStudy(StudyRecord):
    """A study that can be saved, loaded, and moved to another space: a part of `Optimizer`."""

    def __init__(self, *arguments: Any) -> None:
        """Creates a study without trials, as `StudyRecord`."""
        super().__init__(*arguments)
        self._stamps: dict[str, Stamp | None] = {}  # of the files whose content is part of this study
        self._past_check = PastCheck()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the study to a file, completely or not at all, or to a stream such as a pipe.

        Raises:
          DataError: if the file cannot be written, or has trials that this study does not have, of another session for
            example; it stays unchanged.
        """
        with self._lock:
            file = os.path.realpath(path)
            self._stamps[file] = write_study(Path(path), self._study(), known_stamp=self._stamps.get(file))

    def _study(self) -> Study:
        origins = {name: origin_of(surrogate) for name, surrogate in self.named_surrogates.items()}
        state = (list(self._trials), self._enqueued, self._engine.config, origins, self.features, self.fidelity)
        return Study(self.space, self.objectives, self._engine.seed, *state, self.study_id)

    def with_space(
        self,
        space: Space | Mapping[str, Any],
        surrogate: Surrogate | Mapping[str, Surrogate | None] | EllipsisType | None = ...,
        *,
        absent: Mapping[str, Any] | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> Self:
        """Returns the study in another space, with all trials; this one stays as it is.

        Bounds, choices, hyperparameters and rules may differ. A trial whose configuration is not in the new space has
        `Trial.in_space` False: it is not the best, but suggestions learn from it where they can. Values of
        hyperparameters that are gone are kept, in case these return. Tell the values of running trials to the new
        study.

        Args:
          space: the new space.
          surrogate: knowledge of past tasks; by default that of this study, which must know the new space, see
            `Surrogate.for_space`.
          absent: values that the trials had for hyperparameters that are new: ``{"dropout": 0.0}``; by default those
            that the space has as defaults. None if there was no such value, as in `past_of`.
          renamed: new names of hyperparameters by their old ones.

        Raises:
          ConfigError: for two old names of a hyperparameter.
          DataError: if a trial lacks the value of a new hyperparameter, for an unknown hyperparameter or a value that
            it does not take in ``absent`` and ``renamed``, and for a surrogate that does not know the new space.

        Warns:
          DataWarning: of trials outside of the space, with the reason, of hyperparameters that are gone, of defaults
            that trials get, and of enqueued values that the space does not have.

        Example:
          >>> from dre_jax.tuning import Float, Optimizer
          >>> optimizer = Optimizer({"x": Float(-1.0, 1.0)}, seed=0)
          >>> optimizer.optimize(lambda trial: (trial["x"] - 2.0) ** 2, 3)
          >>> wider = optimizer.with_space({"x": Float(-1.0, 3.0), "y": Float(0.0, 1.0)}, absent={"y": 0.5})
          >>> len(wider.trials), wider.best["y"]
          (3, 0.5)
        """
        space = space if isinstance(space, Space) else Space(space)
        surrogates = {name: fitted and (fitted.general or fitted) for name, fitted in self.named_surrogates.items()}
        surrogate = value_or_mapping(surrogates) if isinstance(surrogate, EllipsisType) else surrogate
        with self._lock:
            study, stamps = changed_study(self._study(), space, absent=absent, renamed=renamed), dict(self._stamps)
        optimizer = self._of_study(study, surrogate, past_curves=self._curves.past)
        optimizer._stamps = stamps
        warn_of_outside(optimizer._engine, optimizer.trials)
        return optimizer

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        surrogate: Surrogate | Mapping[str, Surrogate | None] | EllipsisType | None = ...,
        *,
        space: Space | None = None,
        change_space: bool = False,
        config: EngineConfig | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> Self:
        """Reads a study that `save` wrote. Running trials stay running: tell their values, or that they failed.

        Args:
          path: the file.
          surrogate: knowledge of past tasks; the file has only its fingerprint. A study with a surrogate needs it
            again; None continues without one.
          space: the expected space, its hyperparameters in any order; by default any.
          change_space: whether a study of another space continues in the expected one; see `with_space`.
          config: treatment of pending and failed trials; by default the study's.
          features: features of the task; by default the study's.

        Raises:
          DataError: if the file is truncated, of another version, or not a study, of another space, or needs a
            surrogate; the file stays unchanged. As `with_space`, if the space changes.

        Warns:
          DataWarning: for another surrogate or other features than the study's, and for enqueued values that no
            configuration has; as a new study, and as `with_space` if the space changes.
        """
        path = Path(path)
        before = stamp(path)
        study = read_study(path)
        surrogates = value_or_mapping(resume_surrogates(path, study, surrogate))
        study = study._replace(features=resume_features(path, study, features) or {}, config=config or study.config)
        is_other = space is not None and not study.space.is_reordered(space)
        if space is not None and is_other:
            if not change_space:
                rule = f"{path} must hold a study of the space given, but holds one of {study.space!r}"
                raise DataError(f"{rule}: pass change_space=True to continue in this one (--change-space)")
            study = changed_study(study, space)
        optimizer = cls._of_study(study, surrogates, subject=f"{path}: ")
        optimizer._stamps[os.path.realpath(path)] = before
        if is_other:
            warn_of_outside(optimizer._engine, optimizer.trials)
        return optimizer

    @classmethod
    def _of_study(
        cls, study: Study, surrogates: Any, *, past_curves: PastCurves | None = None, subject: str = ""
    ) -> Self:
        """Returns an optimizer with the trials of a study and surrogates as a new one gets them.

        Warns of enqueued values that no configuration has, after the subject of the message.
        """
        make: Any = cls  # with the arguments of `Optimizer`
        options: dict[str, Any] = {**direction_arguments(study.objectives), "seed": study.seed, "config": study.config}
        options |= {"features": study.features or None, "fidelity": study.fidelity, "past_curves": past_curves}
        optimizer: Self = make(study.space, surrogates, **options)
        optimizer._trials = list(study.trials)
        optimizer.study_id = study.study_id or optimizer.study_id
        for values in study.enqueued:
            try:
                optimizer._enqueued.append(complete_part(study.space, values))
            except DataError as error:
                warnings.warn(f"{subject}enqueued values are dropped: {error}", DataWarning, stacklevel=3)
        optimizer._past_check = PastCheck(sum(trial.state == "complete" for trial in study.trials))
        return optimizer
