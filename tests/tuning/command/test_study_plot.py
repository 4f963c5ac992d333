"""A study as a picture."""

import math

from dre_jax.tuning import Trial
from dre_jax.tuning.command.study_plot import plot_study, study_plot_data


def trials_of(values):
    states = {None: "failed", "running": "running"}
    return [
        Trial(i, {}, states.get(value, "complete"), value if isinstance(value, float) else None)
        for i, value in enumerate(values)
    ]


def test_what_is_drawn():
    data = study_plot_data(trials_of([3.0, None, 1.0, "running", 2.0]), "minimize")
    assert data.numbers.tolist() == [0, 2, 4]
    assert data.values.tolist() == [3.0, 1.0, 2.0]
    assert data.best.tolist() == [3.0, 1.0, 1.0]
    assert data.failed.tolist() == [1]
    assert not data.clipped.any()
    assert study_plot_data(trials_of([3.0, None, 1.0, "running", 4.0]), "maximize").best.tolist() == [3.0, 3.0, 4.0]


def test_pictures(tmp_path):
    for name, values in {
        "some": [1.0, None, 2.0, math.inf, "running"],
        "none": [],
        "failed": [None],
        "one": [5.0],
    }.items():
        plot_study(study_plot_data(trials_of(values), "maximize"), tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
