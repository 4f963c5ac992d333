"""A study as one self-contained HTML page: its figures and its trials."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dre_jax.data.files import write_text
from dre_jax.report.figures import data_uri
from dre_jax.report.page import render
from dre_jax.report.style import write_to
from dre_jax.tuning.figures.study import StudyFigure, study_figures
from dre_jax.tuning.space.space import Space
from dre_jax.tuning.trial import Trial

if TYPE_CHECKING:
    from dre_jax.tuning.command.shared_study import SharedStudy
    from dre_jax.tuning.study_record import StudyRecord


def write_study_page(path: Path, title: str, study: StudyRecord | SharedStudy, best: Sequence[Trial]) -> None:
    """Writes the page of a study.

    Args:
      path: of the page.
      title: of the page.
      study: its trials.
      best: the best trial, or the front.

    Raises:
      DataError: if the page cannot be written.
    """
    space, trials, directions = study.space, study.trials, study.named_directions
    n_complete = sum(trial.state == "complete" for trial in trials)
    names = [name or "value" for name in directions]
    numbers = {trial.number for trial in best}
    others = [trial for trial in trials if trial.number not in numbers]
    purpose = " and ".join(f"{direction} {name or 'the value'}" for name, direction in directions.items())
    page = {
        "title": title,
        "summary": f"{len(trials)} trials, of which {n_complete} are complete; to {purpose}.",
        "figures": [(heading, _source(one), one.caption) for heading, one in study_figures(study, best).items()],
        "columns": ("trial", "state", *names, *space),
        "rows": [_row(trial, trial.number in numbers, directions, space) for trial in [*best, *others]],
    }
    write_text(path, render("study.html.jinja", page))


def _source(one: StudyFigure) -> str:
    with io.BytesIO() as file:
        write_to(file, one.figure)
        return data_uri(file.getvalue(), "png")


def _row(trial: Trial, is_best: bool, directions: Mapping[str, str], space: Space) -> list[str]:
    values = [trial.values.get(name) if name else trial.value for name in directions]
    cells = [f"{trial.number}{' (best)' if is_best else ''}", trial.state]
    return [*cells, *("" if one is None else f"{one:.6g}" for one in values), *map(_cell, map(trial.params.get, space))]


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
