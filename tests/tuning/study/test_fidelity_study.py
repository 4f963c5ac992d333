"""Studies whose trials pause and are resumed."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import (
    Evaluated,
    Fidelity,
    Float,
    Int,
    Optimizer,
    Space,
    Surrogate,
    Trial,
    from_csv,
    from_studies,
    past_of,
)
from dre_jax.tuning.optuna import to_study

SPACE = Space({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
EPOCHS = Fidelity("epochs", 1, 8)


def loss(params: Any, budget: float) -> float:
    """Curves that cross: a large y learns fast and ends high."""
    return float((params["x"] - 0.3) ** 2 + 0.3 * params["y"] + (1.0 - params["y"]) / budget)


def run(optimizer: Optimizer, n: int, value: Callable[[Any, float], float] = loss) -> list[Trial]:
    trials = []
    for _ in range(n):
        trial = optimizer.ask()
        assert trial.budget is not None
        trials.append(optimizer.tell(trial, value(trial.params, trial.budget)))
    return trials


@pytest.fixture(scope="module")
def surrogate() -> Surrogate:
    past = {
        name: [Evaluated(params := {"x": i / 7, "y": (3 * i % 8) / 7}, loss(params, 8) + shift) for i in range(8)]
        for name, shift in (("a", 0.0), ("b", 0.1), ("c", 0.2))
    }
    return Surrogate.fit(past_of(SPACE, past, direction="minimize"), quiet=True)


def test_trials_pause_and_go_on_from_the_latest_budget() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    trials = run(optimizer, 30)
    assert {trial.state for trial in trials} == {"paused", "complete"}
    for trial in trials:
        assert (trial.state == "complete") == (trial.budget == 8)
        if trial.resumes is None:
            assert trial.budget == 1
        else:
            resumed = trials[trial.resumes]
            assert resumed.params == trial.params
            assert resumed.number < trial.number
            assert EPOCHS.budgets.index(trial.budget) == EPOCHS.budgets.index(resumed.budget) + 1
    resumed_numbers = [trial.resumes for trial in trials if trial.resumes is not None]
    assert len(set(resumed_numbers)) == len(resumed_numbers)
    spent = sum(trial.budget - (0 if trial.resumes is None else trials[trial.resumes].budget) for trial in trials)
    assert optimizer.total_budget == spent


def test_best_is_at_the_highest_budget_and_best_so_far_at_any() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    with pytest.raises(DataError, match="has a value"):
        _ = optimizer.best_so_far
    trials = run(optimizer, 1)
    with pytest.raises(DataError, match="complete"):
        _ = optimizer.best
    assert optimizer.best_so_far == trials[0]
    trials += run(optimizer, 29)
    assert optimizer.best.value == min(trial.value for trial in trials if trial.budget == 8)
    assert optimizer.best_so_far.value == min(trial.value for trial in trials)


def test_the_same_seed_gives_the_same_trials_and_a_file_goes_on(tmp_path: Path) -> None:
    first, second = (Optimizer(SPACE, fidelity=EPOCHS, seed=3) for _ in range(2))
    expected = run(first, 24)
    assert run(second, 17) == expected[:17]
    running = second.ask()
    second.save(tmp_path / "study.json")
    third = Optimizer.load(tmp_path / "study.json")
    assert third.fidelity == EPOCHS
    assert third.trials == second.trials
    third.tell(running.number, loss(running.params, running.budget))
    assert [*third.trials, *run(third, 6)][:24] == expected


@pytest.mark.slow
def test_with_a_past_the_first_training_goes_to_the_end_at_once(surrogate: Surrogate) -> None:
    optimizer = Optimizer(SPACE, surrogate, fidelity=EPOCHS, seed=0)
    trials = run(optimizer, 5)
    assert [trial.budget for trial in trials] == [1, 2, 4, 8, 1]
    assert trials[3].state == "complete"


def test_several_workers_get_different_trainings() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    run(optimizer, 8)
    batch = optimizer.ask(5)
    assert len({tuple(trial.params.values()) for trial in batch}) == 5
    others = [optimizer.ask() for _ in range(3)]
    resumed = [trial.resumes for trial in [*batch, *others] if trial.resumes is not None]
    assert len(set(resumed)) == len(resumed)
    for trial in [*batch, *others]:
        optimizer.tell(trial, loss(trial.params, trial.budget))


@pytest.mark.slow
def test_failed_and_diverged_trainings_are_not_resumed() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    values = iter([math.nan, 1e30, math.inf, -math.inf] * 10)
    bad = run(optimizer, 4, lambda params, budget: next(values))
    assert bad[0].state == "failed"
    trials = run(optimizer, 24)
    assert all(trial.resumes not in (0, 1, 2) for trial in trials)
    assert optimizer.best.state == "complete"


def test_a_lost_checkpoint_starts_over_and_counts_as_spent() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    trial = optimizer.ask()
    while trial.resumes is None:
        optimizer.tell(trial, loss(trial.params, trial.budget))
        trial = optimizer.ask()
    before = optimizer.total_budget
    resumed = optimizer.trials[trial.resumes]
    trial.restart()
    assert optimizer.trials[trial.number].restarts
    assert optimizer.total_budget == before + resumed.budget
    assert optimizer.tell(trial, loss(trial.params, trial.budget)).restarts
    with pytest.raises(DataError, match="already"):
        optimizer.restart(trial)


@pytest.mark.slow
def test_constraints_and_costs_belong_to_paused_trials_too() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    for _ in range(24):
        trial = optimizer.ask()
        constraints = {"memory": trial["y"] - 0.5}
        optimizer.tell(trial, loss(trial.params, trial.budget), constraints=constraints, cost=1.0 + trial["x"])
    resumed = [optimizer.trials[trial.resumes] for trial in optimizer.trials if trial.resumes is not None]
    assert resumed
    assert all(trial.is_feasible for trial in resumed)


@pytest.mark.slow
def test_a_small_space_is_trained_to_the_end() -> None:
    space = Space({"x": Int(0, 2)})
    optimizer = Optimizer(space, fidelity=EPOCHS, seed=0)
    trials = run(optimizer, 12, lambda params, budget: params["x"] + 1.0 / budget)
    assert sorted(trial["x"] for trial in trials if trial.budget == 8) == [0, 1, 2]


def test_optimize_spends_a_budget_in_folders_of_trainings(tmp_path: Path) -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)

    def train(trial: Trial) -> float:
        assert trial.checkpoint is not None
        assert trial.budget is not None
        file, done = trial.checkpoint / "epochs", 0.0
        if trial.resumes is not None:
            done = float(file.read_text())
            assert done == optimizer.trials[trial.resumes].budget
        assert done < trial.budget
        file.write_text(str(trial.budget))
        return loss(trial.params, trial.budget)

    optimizer.optimize(train, total_budget=40, checkpoints=tmp_path / "checkpoints")
    assert 40 <= optimizer.total_budget < 48
    firsts = {str(trial.number) for trial in optimizer.trials if trial.resumes is None}
    assert {folder.name for folder in (tmp_path / "checkpoints").iterdir()} == firsts


def test_a_past_study_has_the_final_values_of_its_finished_trainings(tmp_path: Path) -> None:
    """A paused trial is no final value, in any form of the study, and the past says how many there are."""
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    for i in range(12):
        optimizer.add({"x": i / 11, "y": (5 * i % 12) / 11}, i / 3, budget=8 if i < 4 else 2)
    optimizer.save(tmp_path / "study.json")
    optimizer.to_frame().assign(task="a").to_csv(tmp_path / "study.csv", index=False)
    pasts = [
        past_of(SPACE, {"a": optimizer}, direction="minimize"),
        past_of(SPACE, {"a": Optimizer.load(tmp_path / "study.json").trials}, direction="minimize"),
        from_csv(tmp_path / "study.csv", SPACE, direction="minimize"),
        from_studies([to_study(optimizer, name="a")], SPACE),
    ]
    for past in pasts:
        assert sorted(-past.tasks["a"].y) == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert [str(past.exclusions[0]) for past in pasts[:3]] == [
        "a: a trial must be complete, but is paused (8 trials)"
    ] * 3


def test_enqueued_values_start_at_the_lowest_budget() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    optimizer.enqueue({"x": 0.25})
    trial = optimizer.ask()
    assert (trial["x"], trial.budget, trial.resumes) == (0.25, 1, None)
    assert optimizer.enqueued == ()


def test_predictions_are_of_final_values() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    run(optimizer, 30)
    params = {"x": 0.35, "y": 0.2}
    mean, _ = optimizer.predict([params])
    assert abs(float(mean[0]) - loss(params, 8)) < 0.15
    assert len(optimizer.to_frame()["budget"]) == 30


@pytest.mark.parametrize(
    ("call", "subject"),
    [
        (lambda: Optimizer(SPACE).add({"x": 0.5, "y": 0.5}, 1.0, budget=3), "needs a study with a fidelity"),
        (lambda: Optimizer(SPACE, fidelity=EPOCHS).add({"x": 0.5, "y": 0.5}, 1.0, budget=9), "from 1 to 8"),
        (lambda: Optimizer(SPACE).optimize(len, total_budget=3), "total_budget needs"),
        (lambda: Optimizer(SPACE, fidelity=EPOCHS).optimize(len, total_budget=0), "total_budget"),
    ],
)
def test_errors_name_what_is_missing(call: Callable[[], Any], subject: str) -> None:
    with pytest.raises((ConfigError, DataError), match=subject):
        call()


def test_trials_of_a_study_with_a_fidelity_are_not_stopped() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    with pytest.raises(DataError, match="pauses trials by itself"):
        optimizer.ask().should_stop()


@pytest.mark.parametrize(
    "change",
    [{"budget": 9}, {"budget": None}, {"resumes": 0}, {"resumes": 7}, {"state": "complete"}, {"resumes": "one"}],
)
def test_a_file_with_a_wrong_trial_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    run(optimizer, 6)
    file = tmp_path / "study.json"
    optimizer.save(file)
    content = json.loads(file.read_text())
    content["trials"][4] |= change
    file.write_text(json.dumps(content))
    with pytest.raises(DataError, match="must hold a whole study"):
        Optimizer.load(file)


def test_costs_of_trainings_are_those_of_the_highest_budget() -> None:
    optimizer = Optimizer(SPACE, fidelity=EPOCHS, seed=0)
    for _ in range(24):
        trial = optimizer.ask()
        started = 0 if trial.resumes is None else optimizer.trials[trial.resumes].budget
        cost = (1.0 + trial["x"]) * (trial.budget - started)
        optimizer.tell(trial, loss(trial.params, trial.budget), cost=cost)
    assert optimizer._fidelity_search is not None
    for trial in optimizer._fidelity_search.observations(optimizer.trials):
        assert trial.cost == pytest.approx(8 * (1.0 + trial["x"]))


def test_a_search_does_not_end_before_a_trial_is_complete() -> None:
    optimizer = Optimizer(SPACE, fidelity=Fidelity("epochs", 1, 512), seed=0)
    run(optimizer, 7)
    optimizer._improvements = [0.0] * 10
    assert not optimizer.gain_is_below(1.0)
