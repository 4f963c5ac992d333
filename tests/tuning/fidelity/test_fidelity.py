"""Budgets and rungs."""

from typing import Any

import pytest

from dre_jax.errors import ConfigError, DataError
from dre_jax.tuning import Fidelity


def test_rungs_are_halves_of_the_highest_budget() -> None:
    assert Fidelity("epochs", 1, 32).budgets == (1, 2, 4, 8, 16, 32)
    assert Fidelity("share", 0.1, 1.0).budgets == (0.1, 0.125, 0.25, 0.5, 1.0)
    assert Fidelity("epochs", 20, 27).budgets == (20, 27)


def test_given_rungs_stay() -> None:
    assert Fidelity("epochs", 1, 27, rungs=[3, 9, 27]).budgets == (3, 9, 27)
    assert Fidelity("epochs", 1, 27, rungs=[27]).budgets == (27,)


@pytest.mark.parametrize(
    ("arguments", "subject"),
    [
        (("", 1, 2), "name"),
        (("epochs", 0, 2), "lowest"),
        (("epochs", 1, float("inf")), "highest"),
        (("epochs", 1, float("nan")), "highest"),
        (("epochs", True, 2), "lowest"),
        (("epochs", 3, 3), "below"),
        (("epochs", "1", 3), "lowest"),
    ],
)
def test_budgets_are_positive_and_increase(arguments: tuple[Any, ...], subject: str) -> None:
    with pytest.raises(ConfigError, match=subject):
        Fidelity(*arguments)


@pytest.mark.parametrize("rungs", [(), (9, 3, 27), (1, 3, 9), (0.5, 27), (3, 3, 27)])
def test_rungs_increase_to_the_highest_budget(rungs: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="rungs"):
        Fidelity("epochs", 1, 27, rungs=rungs)


def test_a_budget_is_within_the_range() -> None:
    fidelity = Fidelity("epochs", 1, 27)
    assert fidelity.check(5) == 5
    for budget in (0, 28, "five", None):
        with pytest.raises(DataError, match="epochs"):
            fidelity.check(budget)


def test_a_study_file_has_all_of_it() -> None:
    for fidelity in (Fidelity("epochs", 1, 27, rungs=(3, 27)), Fidelity("share", 0.1, 1.0, log=False)):
        assert Fidelity(**fidelity.to_json()) == fidelity
