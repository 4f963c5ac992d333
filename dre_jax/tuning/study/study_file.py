"""Study files: JSON, replaced by an atomic rename, so that the file is complete at any moment."""

import dataclasses
import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from dre_jax.checks import check_seed
from dre_jax.data.features import FeatureValue, plain_features
from dre_jax.data.files import check_kind, read_json, stamp, write_json
from dre_jax.data.streams import is_stream
from dre_jax.errors import ConfigError, DataError, DataWarning, DreError
from dre_jax.methods.entries.settings import leaves, to_text
from dre_jax.runtime.locks import folder_lock
from dre_jax.space.json_format import from_json, to_json
from dre_jax.space.scalars import is_choice
from dre_jax.space.space import Params, Space
from dre_jax.tuning.engine.engine_config import EngineConfig
from dre_jax.tuning.fidelity.fidelity import Fidelity
from dre_jax.tuning.objectives.criterion import surrogates_by_objective
from dre_jax.tuning.surrogates.surrogate import Surrogate
from dre_jax.tuning.trials.objectives import Objectives, objectives_of, value_or_mapping
from dre_jax.tuning.trials.trial import VALUE, Trial, constraint_values, objective_value

FORMAT = 1
_STATES = ("running", "complete", "paused", "stopped", "failed")
_WITH_VALUE = ("complete", "paused", "stopped")
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


Stamp = tuple[int, ...]
"""Differs after each change of a file; see `dre_jax.data.files.stamp`."""


class Origin(NamedTuple):
    """The description of a surrogate in a study file."""

    fingerprint: str
    path: str | None
    """Folder of its checkpoint, if it has one."""
    method: str
    configuration: dict[str, str]
    """Settings of the method: texts by dotted field."""

    def __str__(self) -> str:
        """The fingerprint, the method and the folder."""
        return f"{self.fingerprint} ({self.method}{'' if self.path is None else f' of {self.path}'})"


class Study(NamedTuple):
    """The content of a study file."""

    space: Space
    objectives: Objectives
    seed: int
    trials: Sequence[Trial]
    enqueued: Sequence[Params] = ()
    """Values of hyperparameters that the next trials have, in order."""
    config: EngineConfig = EngineConfig()
    origins: Mapping[str, Origin | None] = MappingProxyType({VALUE: None})
    """Descriptions of the surrogates by objective; None without a surrogate."""
    features: Mapping[str, FeatureValue] = MappingProxyType({})
    """Features of the task, by name."""
    fidelity: Fidelity | None = None
    """The budgets of trials; None without one."""
    study_id: str | None = None
    """Identifies the study to trackers of experiments; None in files of earlier versions."""


def origin_of(surrogate: Surrogate | None) -> Origin | None:
    """Returns the description of a surrogate in a study file, without the features of its task; None without one."""
    if surrogate is None:
        return None
    surrogate = surrogate.general or surrogate
    configuration: dict[str, str] = {}
    if dataclasses.is_dataclass(surrogate.method):
        configuration = {name: to_text(value) for name, value in leaves(surrogate.method)}
    return Origin(surrogate.fingerprint, surrogate.path, surrogate.name, configuration)


def resume_surrogates(path: Path, study: Study, surrogate: Any) -> dict[str, Surrogate | None]:
    """Returns the surrogates by objective that a study continues with; warns if one differs from the previous one.

    ``surrogate`` is None for none, by objective if there are several, and `...` if the caller did not pass any: then a
    study with a surrogate raises `DataError`, which says what to pass.
    """
    surrogates: dict[str, Any] = {objective.name: surrogate for objective in study.objectives}
    if surrogate is not ...:
        surrogates = dict(surrogates_by_objective(surrogate, study.objectives))
    for name, origin in study.origins.items():
        rule = f"{path} is a study with the surrogate {origin}"
        if origin is not None and surrogates[name] is ...:
            where = "the one that it had" if origin.path is None else f"Surrogate.load({origin.path!r})"
            remedy = f"pass surrogate={where}, or surrogate=None to continue without (--surrogate DIR or none)"
            raise DataError(f"{rule}: {remedy}")
        present = None if surrogates[name] is ... else origin_of(surrogates[name])
        if origin is not None and present is not None and present.fingerprint != origin.fingerprint:
            warnings.warn(f"{rule}, and continues with another one", DataWarning, stacklevel=3)
    return {name: None if fitted is ... else fitted for name, fitted in surrogates.items()}


def resume_features(path: Path, study: Study, features: Mapping[str, Any] | None) -> Mapping[str, FeatureValue] | None:
    """Returns the features of the task that a study continues with, None if it has none; warns if they are others."""
    if features is None:
        return study.features or None
    values = plain_features(features)
    if study.features and values != study.features:
        rule = f"{path} is a study with the features {dict(study.features)}"
        warnings.warn(f"{rule}, and continues with {values}", DataWarning, stacklevel=3)
    return values


def write_study(path: Path, study: Study, known_stamp: Stamp | None = None) -> Stamp | None:
    """Writes a study, completely or not at all; returns the stamp of the new file, None of a stream.

    ``known_stamp`` is the file's stamp if its content is part of this study.

    Raises `DataError` if the file cannot be written, or has trials that the study does not have; it stays unchanged.
    """
    content = {
        "dre_jax_study": FORMAT,
        "id": study.study_id,
        "direction": value_or_mapping(dict(study.objectives)),
        "seed": study.seed,
        "space": to_json(study.space),
        "trials": [trial_record(trial) for trial in study.trials],
    }
    content |= {"fidelity": study.fidelity.to_json()} if study.fidelity is not None else {}
    content |= {"enqueued": list(study.enqueued)} if study.enqueued else {}
    content |= {"features": dict(study.features)} if study.features else {}
    content |= {"config": dataclasses.asdict(study.config)} if study.config != EngineConfig() else {}
    origins = {name: None if origin is None else origin._asdict() for name, origin in study.origins.items()}
    content["surrogate"] = value_or_mapping(origins)
    check_kind(path)
    if is_stream(path):
        write_json(path, content, indent=1)
        return None
    with folder_lock(path.parent):
        current = stamp(path)
        if current is not None and current != known_stamp and path.stat().st_size:
            _check_nothing_lost(read_study(path), study, path)
        write_json(path, content, indent=1)
        return stamp(path)


def _check_nothing_lost(old: Study, new: Study, path: Path) -> None:
    """Raises `DataError` if a study has a trial that its replacement lacks."""
    advice = "load it by Optimizer.load, or save to another file"
    if old.trials and (old.space, old.objectives) != (new.space, new.objectives):
        raise DataError(f"{path} must hold an earlier state of the study, but holds another study: {advice}")
    for before, now in zip_longest(old.trials, new.trials[: len(old.trials)]):
        # Records, as in the file: NaN, which a report may be, differs from itself in a trial that was read again.
        is_kept = now is not None and trial_record(before) == trial_record(now)
        if not is_kept and (now is None or before.state != "running" or before.params != now.params):
            other = f"has another trial {before.number}, written by another session"
            raise DataError(f"{path} must hold an earlier state of the study, but {other}: {advice}")


def read_study(path: Path) -> Study:
    """Returns the study in a file.

    Raises `DataError` if the file is truncated, of another version, or not a study; the message names the fault.
    """
    content = read_json(path)
    if not isinstance(content, dict) or "dre_jax_study" not in content:
        raise DataError(f"{path} must hold a study, but does not")
    if isinstance(content["dre_jax_study"], bool) or content["dre_jax_study"] != FORMAT:
        raise DataError(f"{path} must hold a study of format {FORMAT}, but is of {content['dre_jax_study']!r}")
    try:
        space, direction, seed = from_json(content["space"]), content["direction"], content["seed"]
        is_named = isinstance(direction, dict)
        objectives = objectives_of(directions=direction) if is_named else objectives_of(direction)
        check_seed(seed)
        fidelity = None if content.get("fidelity") is None else Fidelity(**content["fidelity"])
        trials: list[Trial] = []
        for record in content["trials"]:
            trials.append(_read_trial(record, space, objectives, fidelity, trials))
        queue = [space.check_part(params) for params in content.get("enqueued", ())]
        config = EngineConfig(**content.get("config", {}))
        features = plain_features(content.get("features", {}))
        surrogate_contents = content["surrogate"] if is_named else {VALUE: content["surrogate"]}
        origins = {name: _origin_of_content(surrogate_contents[name]) for name, _ in objectives}
    except (DreError, KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        reason = str(error) if isinstance(error, DreError) else repr(error)
        reason = f"{error} is missing" if isinstance(error, KeyError) else reason
        raise DataError(f"{path} must hold a whole study, but: {reason}") from error
    study_id = content.get("id") if isinstance(content.get("id"), str) else None
    return Study(space, objectives, seed, trials, queue, config, origins, features, fidelity, study_id)


def _read_trial(
    record: Mapping[str, Any],
    space: Space,
    objectives: Objectives,
    fidelity: Fidelity | None,
    earlier: Sequence[Trial],
) -> Trial:
    """Returns the trial of a record after earlier ones."""
    number, state, is_single = len(earlier), record["state"], len(objectives) == 1
    contents = record.get("values", {}) if record.get("value") is None else {VALUE: record["value"]}
    values: Any = {name: _number(content) for name, content in contents.items()}
    has_value = bool(values)

    def require(holds: bool, rule: str) -> None:
        if not holds:
            raise ConfigError(f"{rule}, but trial {number} is {record!r}")

    is_whole = values.keys() == dict(objectives).keys() and None not in values.values()
    is_of_kind = is_single != bool(record.get("values"))
    require((is_whole and is_of_kind) or not values, "values are numbers of all objectives")
    is_valid = state in _STATES and has_value == (state in _WITH_VALUE)
    require(is_valid, "a trial is running, failed or complete with a value")
    stderr, cost = (None if record.get(name) is None else float(record[name]) for name in ("stderr", "cost"))
    is_error = stderr is None or (has_value and 0 <= stderr < math.inf)
    require(is_error, "a standard error is a finite number from 0 with a value")
    has_ended = has_value or state == "failed"
    require(cost is None or (has_ended and 0 < cost < math.inf), "a cost is positive and finite, of a trial that ended")
    reports = {float(step): objective_value(float(report)) for step, report in record.get("reports", ())}
    constraints = constraint_values(record.get("constraints", {}), earlier if state == "complete" else ())
    require(not constraints or has_value, "a trial with constraints is complete")
    measurements, repeats = tuple(map(float, record.get("measurements", ()))), record.get("repeats")
    require(not measurements or has_value, "a trial with measurements has a value")
    in_space = record.get("in_space", True) is not False
    params = space.check(record["params"]) if in_space else _plain_values(record["params"], space)
    is_repeat = isinstance(repeats, int) and 0 <= repeats < number and earlier[repeats].params == params
    require(repeats is None or is_repeat, "a trial repeats an earlier one of its configuration")
    former, value = _plain_values(record.get("former", {})), values.pop(VALUE, None) if is_single else None
    fields: dict[str, Any] = {"cost": cost, "in_space": in_space, "former": former}
    fields |= {"measurements": measurements, "repeats": repeats}
    trial = Trial(number, params, state, value, stderr, constraints, reports, values, **fields)
    return trial if fidelity is None else _with_budget(trial, record, fidelity, earlier)


def _plain_values(params: Any, space: Space | None = None) -> Params:
    """Returns values by name that a space, if one is given, need not have. Raises `ConfigError` for anything else."""
    if not isinstance(params, dict) or not all(map(_is_value, params.values())):
        rule = "values outside of the space are texts and numbers by name, or lists of them"
        raise ConfigError(f"{rule}, but got {params!r}")
    params = {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}
    if space is not None:
        space.check_names(params)
    return params


def _is_value(value: Any) -> bool:
    return all(map(is_choice, value)) if isinstance(value, list) else is_choice(value)


def _with_budget(trial: Trial, record: Mapping[str, Any], fidelity: Fidelity, earlier: Sequence[Trial]) -> Trial:
    """Returns a trial of a study with a fidelity. Raises `ConfigError` if it does not resume a paused trial."""
    budget, resumes = fidelity.check(record["budget"]), record.get("resumes")
    if (trial.state == "paused") != (trial.has_value and budget < fidelity.highest):
        rule = "a trial is paused with a value below the highest budget"
        raise ConfigError(f"{rule}, but trial {trial.number} is {record!r}")
    if resumes is not None:
        is_earlier = isinstance(resumes, int) and 0 <= resumes < len(earlier)
        is_own = is_earlier and earlier[resumes].state == "paused" and earlier[resumes].params == trial.params
        if not is_own or any(other.resumes == resumes for other in earlier):
            rule = "a trial resumes an earlier paused one of its configuration, once"
            raise ConfigError(f"{rule}, but trial {trial.number} is {record!r}")
    return trial.with_fields(budget=budget, resumes=resumes, restarts=bool(record.get("restarts")))


def _origin_of_content(content: Any) -> Origin | None:
    origin = Origin(**content) if isinstance(content, dict) else content
    if origin is not None and not isinstance(origin, Origin):
        raise ConfigError(f"a surrogate is null or described by its fields, but the study has {content!r}")
    return origin


def _number(value: Any) -> float | None:
    """Returns the number in a file; None if the value is not a number."""
    value = _INFINITIES.get(value, value) if isinstance(value, str) else value
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)
    return float(value) if is_number else None


def _plain_number(value: float) -> float | str:
    """Returns a number as it is, or as text where JSON has none."""
    return value if math.isfinite(value) else str(value)


def trial_record(trial: Trial) -> dict[str, Any]:
    """Returns a trial as JSON, with infinite numbers as text."""
    record: dict[str, Any] = {"params": trial.params, "state": trial.state}
    record |= {} if trial.in_space else {"in_space": False}
    record |= {"former": dict(trial._former)} if trial._former else {}
    if trial._reports:
        record["reports"] = [[step, _plain_number(number)] for step, number in trial._reports.items()]
    record |= {} if trial.cost is None else {"cost": trial.cost}
    record |= {} if trial.budget is None else {"budget": trial.budget}
    record |= {} if trial.resumes is None else {"resumes": trial.resumes}
    record |= {"restarts": True} if trial.restarts else {}
    record |= {} if trial.repeats is None else {"repeats": trial.repeats}
    if trial.state in _WITH_VALUE:
        record |= {} if trial.stderr is None else {"stderr": trial.stderr}
        record |= {"measurements": list(map(_plain_number, trial.measurements))} if trial.measurements else {}
        constraints = {name: None if math.isnan(value) else value for name, value in trial._constraints.items()}
        record |= {"constraints": constraints} if constraints else {}
        if trial.value is not None:
            record["value"] = _plain_number(trial.value)
        else:
            record["values"] = {name: _plain_number(value) for name, value in trial.values.items()}
    return record
