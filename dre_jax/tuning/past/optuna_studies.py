"""Past Optuna studies as tasks to learn from."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dre_jax.data.features import FeatureType
from dre_jax.errors import DataError, DreError, import_extra
from dre_jax.space.space import Space
from dre_jax.tuning.past.overlap import SpaceChanges
from dre_jax.tuning.past.task_features import feature_names
from dre_jax.tuning.past.tasks import Evaluated, Exclusion, Past, past_of
from dre_jax.tuning.past.trial_attributes import cost_of

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    Studies = str | os.PathLike[str] | BaseStorage | Study | Iterable[Study]


def from_studies(
    studies: Studies,
    space: Space,
    *,
    objective: int | None = None,
    absent: Mapping[str, Any] | None = None,
    renamed: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    feature_types: Mapping[str, FeatureType] | None = None,
) -> Past:
    """Returns past tasks from Optuna studies.

    Every study has its own direction. Only complete trials count; see `past_of` for trials that violate constraints.
    Values of inactive hyperparameters are dropped. The cost of a trial is the one that
    `dre_jax.tuning.optuna.report_cost` told; in a study without any of these, its duration in seconds.

    Args:
      studies: one study or several; or all studies of a storage, by the storage itself, its address
        (`sqlite:///studies.db`), or the path of a journal or an SQLite file.
      space: the search space. A study without any of its hyperparameters is excluded.
      objective: number of the objective, from 0; None excludes studies of several objectives.
      absent: values of hyperparameters that earlier models did not set, as in `past_of`.
      renamed: new names of hyperparameters by their old ones.
      features: user attributes of studies that are features of the tasks: `study.set_user_attr("parameters", 1e9)`.
      feature_types: descriptions of features, as in `past_of`.

    Returns:
      A task per study, by its name; `exclusions` lists the studies and trials that do not fit, with the reason. The
      direction and the metric are those of the studies, None if the studies differ.

    Raises:
      DataError: if a storage cannot be read, an argument is not a study, or no study has a feature; and as `past_of`
        for features.
      MissingExtraError: without Optuna.

    Example:
      >>> import optuna
      >>> from dre_jax.tuning import Float
      >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
      >>> study = optuna.create_study(study_name="wine", sampler=optuna.samplers.RandomSampler(seed=0))
      >>> study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=5)
      >>> list(from_studies([study], Space({"x": Float(0.0, 1.0)})).tasks)
      ['wine']
    """
    changes, features = SpaceChanges(space, absent or {}, renamed or {}), feature_names(features)
    tasks: dict[str, list[Evaluated]] = {}
    exclusions: list[Exclusion] = []
    directions, metrics = set[str](), set[str | None]()
    attributes: dict[str, dict[str, Any]] = {}
    for study in open_studies(studies):
        name = unused_name(study.study_name, tasks)
        n = len(study.directions)
        if n > 1 and objective is None:
            exclusions.append(Exclusion(name, f"a study must have one objective, but has {n}: pass objective="))
        elif not 0 <= (objective or 0) < n:
            exclusions.append(Exclusion(name, f"a study must have objective {objective}, but has {n}, from 0"))
        else:
            tasks[name] = list(_read_evaluations(study, changes, objective or 0))
            attributes[name] = study.user_attrs if features else {}
            directions.add(study.directions[objective or 0].name.lower())
            metrics.add(study.metric_names[objective or 0] if study.metric_names else None)
    for feature in features:
        if tasks and not any(feature in values for values in attributes.values()):
            raise DataError(f"features are user attributes of studies, but no study has {feature!r}")
    past = past_of(
        space,
        tasks,
        direction="maximize",  # these are responses, whatever the directions
        exclusions=exclusions,
        absent=absent,
        renamed=renamed,
        features={name: {feature: values.get(feature) for feature in features} for name, values in attributes.items()},
        feature_types=feature_types,
    )
    return replace(past, direction=_only(directions), metric=_only(metrics))


def _only(names: set[str] | set[str | None]) -> str | None:
    return next(iter(names)) if len(names) == 1 else None


def _read_evaluations(study: Study, changes: SpaceChanges, objective: int) -> Iterator[Evaluated]:
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    sign = 1.0 if study.directions[objective].name == "MAXIMIZE" else -1.0
    costs = [cost_of(trial) for trial in trials]
    costs = costs if any(costs) else list(map(_seconds, trials))
    for trial, cost in zip(trials, costs, strict=True):
        params = changes.without_inactive(trial.params)
        yield Evaluated(params, sign * trial.values[objective], cost, trial.constraints)


def _seconds(trial: FrozenTrial) -> float | None:
    seconds = trial.duration.total_seconds() if trial.duration is not None else 0.0
    return seconds if seconds > 0 else None


def unused_name(name: str, names: Iterable[str]) -> str:
    """Returns the name, with a number if a study of another storage has the same name."""
    number, unique = 1, name
    while unique in names:
        number += 1
        unique = f"{name} ({number})"
    return unique


def open_studies(studies: Any) -> Iterator[Study]:
    """Yields the studies."""
    optuna = import_extra("optuna", "optuna", "optuna")
    if isinstance(studies, (str, os.PathLike, optuna.storages.BaseStorage)):
        yield from _in_storage(studies)
        return
    if isinstance(studies, optuna.Study):
        studies = [studies]
    if not isinstance(studies, Iterable):
        raise DataError(f"past studies must be Optuna's, a storage or its address, but got {studies!r}")
    for study in studies:
        if not isinstance(study, optuna.Study):
            raise DataError(f"past studies must be Optuna's, but got {study!r}")
        yield study


def _in_storage(source: str | os.PathLike[str] | BaseStorage) -> Iterator[Study]:
    from optuna.study import get_all_study_names, load_study

    address = address_without_password(str(source))
    opened_storage: BaseStorage | None = None
    with storage_errors(address):
        if isinstance(source, (str, os.PathLike)):
            storage = opened_storage = open_storage(os.fspath(source))
        else:
            storage = source
        studies = [load_study(study_name=name, storage=storage) for name in get_all_study_names(storage)]
    if not studies:
        raise DataError(f"{address} must hold studies, but holds none")
    try:
        yield from studies
    finally:
        if opened_storage is not None:  # Optuna leaves connections to a database to the garbage collector
            opened_storage.remove_session()
            if (engine := getattr(opened_storage, "engine", None)) is not None:
                engine.dispose()


def open_storage(address: str, *, create: bool = False) -> BaseStorage:
    """Returns the storage at the address of a database, or at the path of an SQLite or a journal file.

    With ``create``, a missing file is created: a database at an address, a journal at a path. Otherwise, a missing file
    raises `DataError`.
    """
    from optuna.storages import JournalStorage, RDBStorage

    from dre_jax.tuning.past.journal import WholeLineJournal

    if "://" in address and not address.startswith("sqlite:///"):
        return RDBStorage(address)
    path = Path(address.removeprefix("sqlite:///"))
    if create and not path.exists():
        return RDBStorage(address) if "://" in address else JournalStorage(WholeLineJournal(address))
    if not path.is_file():
        raise DataError(f"{path}: there is no file with Optuna's studies")
    with path.open("rb") as stream:
        is_database = stream.read(16).startswith(b"SQLite format 3")
    if is_database or "://" in address:
        return RDBStorage(f"sqlite:///{path}", skip_table_creation=True)
    return JournalStorage(WholeLineJournal(str(path)))


def is_new_file(address: str) -> bool:
    """Returns whether `open_storage` would create the file of a storage.

    Example:
      >>> is_new_file("sqlite:///no.db"), is_new_file("mysql://host/name"), is_new_file("/dev/null")
      (True, False, False)
    """
    path = address.removeprefix("sqlite:///")
    return "://" not in path and not os.path.exists(path)


def address_without_password(address: str) -> str:
    """Returns the address of a storage as messages show it."""
    return re.sub(r"//[^@/]*@", "//", address)


@contextlib.contextmanager
def storage_errors(address: str, kinds: Any = Exception) -> Iterator[None]:
    """Raises `DataError` for exceptions of a storage, by default those of any database and driver."""
    try:
        yield
    except DreError:
        raise
    except kinds as error:
        line = next(iter(str(error).strip().splitlines()), repr(error))  # drivers add pages
        raise DataError(f"{address} must be a storage of Optuna's studies, but: {line}") from error
