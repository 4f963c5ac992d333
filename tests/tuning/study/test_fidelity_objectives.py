"""Studies of several objectives whose trials pause and are resumed."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dre_jax.errors import DataError
from dre_jax.tuning import (
    Evaluated,
    Fidelity,
    Float,
    Optimizer,
    Space,
    Surrogate,
    Trial,
    from_csv,
    from_studies,
    past_of,
)
from dre_jax.tuning.fidelity.trainings import trainings_of
from dre_jax.tuning.optuna import to_study

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
DIRECTIONS = {"near": "minimize", "far": "maximize"}
EPOCHS = Fidelity("epochs", 1, 8)


def values_of(params: Any, budget: float) -> dict[str, float]:
    """An error that falls, fast where y is large, and a number that the budget does not change."""
    error = (params["x"] - 0.3) ** 2 + 0.3 * params["y"] + (1.0 - params["y"]) / budget
    return {"near": error, "far": -((params["x"] - 0.8) ** 2)}


@pytest.fixture(scope="module")
def study() -> Optimizer:
    optimizer = Optimizer(SPACE, directions=DIRECTIONS, fidelity=EPOCHS, seed=0)
    optimizer.optimize(lambda trial: values_of(trial, trial.budget or 0), 16)
    return optimizer


def front_by_definition(trials: list[Trial]) -> list[Trial]:
    def is_better(a: dict[str, float], b: dict[str, float]) -> bool:
        return a["near"] <= b["near"] and a["far"] >= b["far"] and a != b

    return [trial for trial in trials if not any(is_better(other.values, trial.values) for other in trials)]


def test_the_front_is_at_the_highest_budget_and_so_far_at_any(study: Optimizer) -> None:
    trials, complete = list(study.trials), [trial for trial in study.trials if trial.state == "complete"]
    assert {trial.state for trial in trials} == {"paused", "complete"}
    assert all((trial.state == "complete") == (trial.budget == 8) for trial in trials)
    assert list(study.front) == front_by_definition(complete)
    assert list(study.front_so_far) == front_by_definition(trials)
    assert any(trial.state == "paused" for trial in study.front_so_far)
    with pytest.raises(DataError, match="front_so_far"):
        _ = study.best_so_far


def test_the_first_training_that_goes_on_is_on_the_front(study: Optimizer) -> None:
    """It explains itself by its rank among those of its budget."""
    first = next(trial for trial in study.trials if trial.resumes is not None)
    resumed = study.trials[first.resumes or 0]
    earlier = list(study.trials[: first.number])
    assert resumed in front_by_definition(earlier)
    explanation = study.explain(first)
    assert (explanation.origin, set(explanation.expected_values)) == ("resumed", {"near", "far"})
    assert str(explanation).startswith(
        f"trial {first.number} resumes trial {resumed.number}, whose values at budget 1 ranked 1 of {len(earlier)}"
    )


def test_a_file_goes_on_as_the_study(study: Optimizer, tmp_path: Path) -> None:
    study.save(tmp_path / "study.json")
    again = Optimizer.load(tmp_path / "study.json")
    assert (again.trials, again.fidelity, again.total_budget) == (study.trials, EPOCHS, study.total_budget)
    batch, expected = again.ask(3), Optimizer.load(tmp_path / "study.json").ask(3)
    assert batch == expected
    assert len({trial.resumes for trial in batch if trial.resumes is not None}) + len(
        {tuple(trial.params.values()) for trial in batch if trial.resumes is None}
    ) == len(batch)


def test_final_values_are_forecast_by_objective(study: Optimizer) -> None:
    """As studies of one objective forecast them; those that the budget does not change are known."""
    assert study._fidelity_search is not None
    observations = study._fidelity_search.observations(study.trials)
    assert len(observations) == len(trainings_of(study.trials))
    for name, direction in DIRECTIONS.items():
        single = Optimizer(SPACE, direction=direction, fidelity=EPOCHS)
        single._trials = [trial.with_objective(name) for trial in study.trials]
        assert single._fidelity_search is not None
        expected = single._fidelity_search.observations(single.trials)
        np.testing.assert_array_equal(
            study.predict([{"x": 0.2, "y": 0.6}], objective=name), single.predict([{"x": 0.2, "y": 0.6}])
        )
        for trial, other in zip(observations, expected, strict=True):
            assert trial.with_objective(name) == other
            if trial.state == "stopped":
                assert (trial._stderrs["near"] > 0, trial._stderrs["far"]) == (True, 0.0)
                assert trial.values["far"] == pytest.approx(values_of(trial, 1)["far"])


def test_paused_trials_are_no_past_and_say_so(tmp_path: Path) -> None:
    optimizer = Optimizer(SPACE, directions=DIRECTIONS, fidelity=EPOCHS, seed=0)
    for i in range(12):
        optimizer.add({"x": i / 11, "y": (5 * i % 12) / 11}, (i / 3, 1.0), budget=8 if i < 4 else 2)
    optimizer.to_frame().assign(task="a").to_csv(tmp_path / "study.csv", index=False)
    near = {"a": [trial.with_objective("near") for trial in optimizer.trials]}
    pasts = [
        past_of(SPACE, near, direction="minimize"),
        from_csv(tmp_path / "study.csv", SPACE, direction="minimize", value="values_near"),
        from_studies([to_study(optimizer, name="a")], SPACE, objective=0),
    ]
    for past in pasts:
        assert sorted(-past.tasks["a"].y) == pytest.approx([0, 1 / 3, 2 / 3, 1])
    for past in pasts[:2]:
        assert str(past.exclusions[0]) == "a: a trial must be complete, but is paused (8 trials)"


def test_optimize_spends_a_budget(tmp_path: Path) -> None:
    """Within the first trials, which need no suggestion of the method; a lost checkpoint counts twice."""
    optimizer = Optimizer(SPACE, directions=DIRECTIONS, fidelity=EPOCHS, seed=0)

    def train(trial: Trial) -> dict[str, float]:
        assert trial.checkpoint is not None
        if trial.resumes == 8:
            trial.restart()
        return values_of(trial, trial.budget or 0)

    for i in range(8):
        optimizer.enqueue({"x": i / 7, "y": (3 * i % 8) / 7})
    optimizer.optimize(train, total_budget=17, checkpoints=tmp_path)
    assert [trial.budget for trial in optimizer.trials] == [*[1] * 8, 2, 4, 8]
    assert optimizer.trials[9].restarts
    assert optimizer.total_budget == 8 + 1 + 4 + 4


def test_a_small_front_is_trained_to_the_end() -> None:
    """Once the space has no other configuration, the best paused training of the highest budget goes on."""
    optimizer = Optimizer(Space({"x": Float(0.0, 1.0)}), directions=DIRECTIONS, fidelity=EPOCHS, seed=0)
    for x, budget in ((0.0, 1), (0.3, 2), (0.5, 2), (0.4, 1)):
        optimizer.add({"x": x}, values_of({"x": x, "y": 0.0}, budget), budget=budget)
    assert optimizer._fidelity_search is not None
    paused = optimizer._fidelity_search.best_paused(optimizer.trials)
    assert paused is not None
    assert (paused.resumes, paused.budget) == (1, 4)


def test_diverged_trainings_rank_last() -> None:
    """Although one is the best in the other objective."""
    optimizer = Optimizer(SPACE, directions=DIRECTIONS, fidelity=EPOCHS, seed=0)
    random = np.random.default_rng(0)
    for _ in range(8):
        params = {"x": float(random.random()), "y": float(random.random())}
        optimizer.add(params, values_of(params, 1), budget=1)
    optimizer.add({"x": 0.5, "y": 0.5}, {"near": math.inf, "far": 9.0}, budget=1)
    assert optimizer._fidelity_search is not None
    paused = optimizer.trials[8]
    assert optimizer._fidelity_search.standing(optimizer.trials, paused).rank == 9


def test_infeasible_and_failed_trainings_are_not_resumed() -> None:
    optimizer = Optimizer(SPACE, directions=DIRECTIONS, fidelity=EPOCHS, seed=0)
    for i in range(8):
        trial = optimizer.add_running({"x": i / 7, "y": 0.5}, budget=1)
        values = {"near": i / 7, "far": math.nan if i == 0 else -1.0}
        optimizer.tell(trial, values, constraints={"memory": 2.5 - i}, cost=2.0 + i)
    assert [trial.state for trial in optimizer.trials] == ["failed", *["paused"] * 7]
    optimizer.add({"x": 0.5, "y": 0.1}, {"near": 0.9, "far": 0.0}, budget=1, constraints={"memory": -1.0})
    trial = optimizer.ask()
    assert (trial.resumes, trial.budget) == (8, 2)


@pytest.mark.thorough
def test_with_pasts_the_first_training_goes_to_the_end_at_once() -> None:
    """One objective has a surrogate and the other none; later configurations are better than the first ones."""
    past = {
        name: [
            Evaluated(params := {"x": i / 7, "y": (3 * i % 8) / 7}, values_of(params, 8)["near"] + shift)
            for i in range(8)
        ]
        for name, shift in (("a", 0.0), ("b", 0.1), ("c", 0.2))
    }
    near = Surrogate.fit(past_of(SPACE, past, direction="minimize"), quiet=True)
    optimizer = Optimizer(SPACE, {"near": near, "far": None}, directions=DIRECTIONS, fidelity=EPOCHS, seed=0)
    optimizer.optimize(lambda trial: values_of(trial, trial.budget or 0), 16)
    assert [trial.budget for trial in optimizer.trials[:5]] == [1, 2, 4, 8, 1]
    assert optimizer.trials[3].state == "complete"
    assert len({tuple(trial.params.values()) for trial in optimizer.trials if trial.resumes is None}) > 2
    optimizer.ask()
