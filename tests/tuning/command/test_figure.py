"""A study as a picture."""

import math

import numpy as np

from dre_jax.tuning import Trial
from dre_jax.tuning.command.figure import course_of, draw_course


def trials_of(values):
    states = {None: "failed", "running": "running"}
    return [
        Trial(i, {}, states.get(value, "complete"), value if isinstance(value, float) else None)
        for i, value in enumerate(values)
    ]


def test_what_is_drawn():
    found = course_of(trials_of([3.0, None, 1.0, "running", 2.0]), "minimize")
    assert found.numbers.tolist() == [0, 2, 4]
    assert found.values.tolist() == [3.0, 1.0, 2.0]
    assert found.best.tolist() == [3.0, 1.0, 1.0]
    assert found.failed.tolist() == [1]
    assert not found.moved.any()
    assert course_of(trials_of([3.0, None, 1.0, "running", 4.0]), "maximize").best.tolist() == [3.0, 3.0, 4.0]


def test_trials_far_off_do_not_press_the_others_together():
    found = course_of(trials_of([1.0, 2.0, 1e12, 3.0, math.inf, 0.5]), "minimize")
    assert np.isfinite(found.values).all()
    assert found.moved.tolist() == [False, False, True, False, True, False]
    assert found.values.max() < 50
    assert found.best.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 0.5]


def test_pictures(tmp_path):
    for name, values in {
        "some": [1.0, None, 2.0, math.inf, "running"],
        "none": [],
        "failed": [None],
        "one": [5.0],
    }.items():
        draw_course(course_of(trials_of(values), "maximize"), tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
