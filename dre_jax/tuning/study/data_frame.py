"""The trials of a study as a data frame."""

from collections.abc import Sequence
from typing import Any

from dre_jax.errors import import_extra
from dre_jax.space.space import Space
from dre_jax.tuning.trials.trial import Trial


def frame_of(space: Space, trials: Sequence[Trial]) -> Any:
    """Returns trials of a space as a data frame of pandas, see `dre_jax.tuning.Optimizer.to_frame`."""
    pandas = import_extra("pandas", "pandas", "pandas")
    constraints = dict.fromkeys(f"constraints_{name}" for trial in trials for name in trial.constraints)
    values = dict.fromkeys(f"values_{name}" for trial in trials for name in trial.values) or ("value",)
    optional = [
        name
        for name in ("stderr", "cost", "budget", "resumes", "repeats")
        if any(getattr(trial, name) is not None for trial in trials)
    ]
    optional += [] if all(trial.in_space for trial in trials) else ["in_space"]
    reserved_names = ("number", "state", *values, *optional, *constraints, "task")
    columns = {name: f"params_{name}" if name in reserved_names else name for name in space}
    rows = [
        dict[str, Any](number=trial.number, state=trial.state, value=trial.value)
        | {f"values_{name}": value for name, value in trial.values.items()}
        | {name: getattr(trial, name) for name in optional}
        | {f"constraints_{name}": value for name, value in trial.constraints.items()}
        | {columns[name]: value for name, value in trial.params.items()}
        for trial in trials
    ]
    return pandas.DataFrame(rows, columns=[*reserved_names[:-1], *columns.values()])
