"""Study files: JSON, replaced by an atomic rename, so that the file is complete at any moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dre_jax.data.files import read_json, write_json
from dre_jax.errors import ConfigError, DataError, DreError
from dre_jax.tuning.space.json_format import from_json, to_json
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.trial import Trial, validate_study

FORMAT = 1
_STATES = ("running", "complete", "failed")
_INFINITIES = {"inf": math.inf, "-inf": -math.inf}


class Study(NamedTuple):
    """The content of a study file."""

    space: Space
    direction: str
    seed: int
    trials: list[Trial]


def write_study(path: Path, space: Space, direction: str, seed: int, trials: Sequence[Trial]) -> None:
    """Writes a study, completely or not at all.

    Raises:
      DataError: if the file cannot be written; an existing file stays unchanged.
    """
    content = {
        "dre_jax_study": FORMAT,
        "direction": direction,
        "seed": seed,
        "space": to_json(space),
        "trials": [_trial(trial) for trial in trials],
    }
    write_json(path, content, indent=1)


def read_study(path: Path) -> Study:
    """Returns the study in a file.

    Raises:
      DataError: if the file is truncated, of another version, or not a study; the message names the fault.
    """
    content = read_json(path)
    if not isinstance(content, dict) or "dre_jax_study" not in content:
        raise DataError(f"{path} must hold a study, but does not")
    if isinstance(content["dre_jax_study"], bool) or content["dre_jax_study"] != FORMAT:
        raise DataError(f"{path} must hold a study of format {FORMAT}, but is of {content['dre_jax_study']!r}")
    try:
        space, direction, seed = from_json(content["space"]), content["direction"], content["seed"]
        validate_study(direction, seed)
        trials = []
        for number, record in enumerate(content["trials"]):
            state, value = record["state"], record.get("value")
            value = _INFINITIES.get(value, value) if isinstance(value, str) else value
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)
            if state not in _STATES or is_number != (state == "complete"):
                raise ConfigError(
                    f"a trial is running, failed or complete with a value, but trial {number} is {record!r}"
                )
            trials.append(Trial(number, space.check(record["params"]), state, float(value) if is_number else None))
    except (DreError, KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        reason = str(error) if isinstance(error, DreError) else repr(error)
        reason = f"{error} is missing" if isinstance(error, KeyError) else reason
        raise DataError(f"{path} must hold a whole study, but: {reason}") from error
    return Study(space, direction, seed, trials)


def _trial(trial: Trial) -> dict[str, Any]:
    record: dict[str, Any] = {"params": trial.params, "state": trial.state}
    if trial.value is not None:
        finite = math.isfinite(trial.value)
        record["value"] = trial.value if finite else next(k for k, v in _INFINITIES.items() if v == trial.value)
    return record
