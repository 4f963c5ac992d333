"""Functions where trials fail, against their optima, and a small study."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script(part):
    return part("compare_feasibility")


@pytest.mark.parametrize("name", ["edge", "disc", "gardner"])
def test_no_feasible_point_is_better_than_the_optimum(script, name):
    problem, random = script.PROBLEMS[name], np.random.default_rng(0)
    axis = np.linspace(0.0, 1.0, 201)
    points = [np.array([x, y]) for x in axis for y in axis]
    losses = [
        problem.loss(x)
        for x in points
        if not problem.fails(x, random) and (problem.constraint is None or problem.constraint(x) <= 0)
    ]
    assert problem.optimum - 1e-9 <= min(losses) < problem.optimum + 0.05


def test_a_study_counts_what_fails(script):
    study = script.Study("edge", "random", 0)
    found, result = script.run(study, 20)
    assert found == study
    assert 5 <= result.bad <= 15
    assert 0.0 < result.regret < 0.4
