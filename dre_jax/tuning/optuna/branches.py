"""The conditions of a define-by-run objective, learned from the hyperparameters that its trials have."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from dre_jax.space.conditions import Interval
from dre_jax.space.parameters import Categorical
from dre_jax.space.space import Space
from dre_jax.tuning.optuna.distributions import Translation, translation_of
from dre_jax.tuning.optuna.trials import common_names

_CHANCE = 0.05
"""Maximum probability that an interval separates trials by chance, if a hyperparameter is to depend on a number."""
Numbers = dict[str, float]
"""A trial's values by name, choices by their index, in the order in which the objective suggested them."""
Region = frozenset[float] | Interval
"""Values of a hyperparameter: indices of choices, or the numbers between two bounds."""
Conjunction = dict[str, Region]
"""Conditions that hold together, by the name of the hyperparameter that each is on."""


def learn_translation(
    trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution]
) -> Translation | None:
    """Returns the translation of a space that is conditional where the trials are; None if it is empty.

    The space has the hyperparameters of all complete trials. It has another one if values of hyperparameters that the
    objective suggests before explain which trials have it: choices, or an interval of a number if enough trials agree.

    Args:
      trials: of a study, in any state.
      distributions: of the hyperparameters to search, by name; a space can hold all of them.
    """
    common = common_names(trials)
    if not distributions or not common:
        return None
    if common >= distributions.keys():
        return translation_of(distributions)
    complete, pruned = (_numbers(trials, distributions, state) for state in (TrialState.COMPLETE, TrialState.PRUNED))
    if not complete:  # a pruned trial may end before the objective has suggested all
        complete = [numbers for numbers in pruned if numbers.keys() >= common & distributions.keys()][:1]
    counts = Counter(name for numbers in (*complete, *pruned) for name in numbers)
    rules: dict[str, list[Conjunction]] = {}
    for name, _ in counts.most_common():  # so that those on which others depend come first
        alternatives = _learn_rules(name, complete, pruned, {parent: distributions[parent] for parent in rules})
        if alternatives is not None:
            rules[name] = alternatives
    if not rules:
        return None
    plain = translation_of({name: distributions[name] for name in distributions if name in rules})
    conditions = {name: [_when(rule, plain.space) for rule in rules[name] if rule] for name in plain.space}
    parameters = {name: replace(plain.space[name], when=when or None) for name, when in conditions.items()}
    return replace(plain, space=Space(parameters))


def _numbers(
    trials: Sequence[FrozenTrial], distributions: Mapping[str, BaseDistribution], state: TrialState
) -> list[Numbers]:
    """Returns the values of the trials in a state."""
    return [
        {
            name: float(distributions[name].to_internal_repr(value))
            for name, value in trial.params.items()
            if name in distributions
        }
        for trial in trials
        if trial.state == state
    ]


def _learn_rules(
    name: str, complete: Sequence[Numbers], pruned: Sequence[Numbers], distributions: Mapping[str, BaseDistribution]
) -> list[Conjunction] | None:
    """Returns alternative conditions that hold in all trials with a hyperparameter, and in no complete one without.

    One empty conjunction if all complete trials have the hyperparameter, and None if there are no such conditions.
    ``distributions`` are those of the hyperparameters that conditions may be on.
    """
    present = [numbers for numbers in (*complete, *pruned) if name in numbers]
    absent = [numbers for numbers in complete if name not in numbers]
    # The objective suggests a parent before its child, and in more trials.
    latest = list(present[-1])
    earlier_names = reversed(latest[: latest.index(name)])
    learned_names = [parent for parent in earlier_names if parent in distributions]
    shared = [parent for parent in learned_names if all(parent in numbers for numbers in present)]
    parents = [parent for parent in shared if any(parent in numbers for numbers in absent)]
    choices = [parent for parent in parents if isinstance(distributions[parent], CategoricalDistribution)]
    numeric = [parent for parent in parents if parent not in choices]
    for candidates in (choices, [*choices, *numeric]):
        rule = _learn_conjunction(present, absent, candidates, numeric)
        if rule is not None:
            return [rule]
    return next(_alternatives_by_choice(present, absent, choices, numeric), None)


def _alternatives_by_choice(
    present: Sequence[Numbers], absent: Sequence[Numbers], choices: Sequence[str], numeric: Sequence[str]
) -> Iterator[list[Conjunction]]:
    """Yields alternatives with one condition for each value of a categorical, for every categorical that has these."""
    for parent in choices:
        other_names = [other for other in (*choices, *numeric) if other != parent]
        rules: list[Conjunction | None] = []
        for value in sorted({numbers[parent] for numbers in present}):
            present_here, absent_here = (
                [numbers for numbers in group if numbers.get(parent) == value] for group in (present, absent)
            )
            rule = _learn_conjunction(present_here, absent_here, other_names, numeric)
            rules.append(None if rule is None else {parent: frozenset([value]), **rule})
        if None not in rules:
            yield [rule for rule in rules if rule is not None]


def _learn_conjunction(
    present: Sequence[Numbers], absent: Sequence[Numbers], parents: Sequence[str], numeric: Collection[str]
) -> Conjunction | None:
    """Returns conditions on some of the parents that hold for all of ``present`` and for none of ``absent``, or None.

    Each step adds the condition that excludes most trials; of equal ones, that of the first parent.
    """
    conjunction: Conjunction = {}
    while absent:
        best: tuple[str, Region, list[Numbers]] | None = None
        for parent in parents:
            values = [numbers[parent] for numbers in present]
            absent_values = [numbers[parent] for numbers in absent if parent in numbers]
            region = _interval(values, absent_values) if parent in numeric else frozenset(values)
            if region is not None:
                rest = [numbers for numbers in absent if parent in numbers and numbers[parent] in region]
                if len(rest) < len(absent if best is None else best[2]):
                    best = parent, region, rest
        if best is None:
            return None
        parent, conjunction[parent], absent = best[0], best[1], best[2]
    return conjunction


def _interval(values: Sequence[float], absent_values: Sequence[float]) -> Interval | None:
    """Returns an interval with all values and as few absent ones as possible; None if chance may have made it."""
    low, high = min(values), max(values)
    below, above = [other for other in absent_values if other < low], [other for other in absent_values if other > high]
    n_outside = len(below) + len(above)
    positions = 2 if not below or not above else n_outside + 1
    if not n_outside or positions > _CHANCE * math.comb(len(values) + n_outside, n_outside):
        return None
    return Interval(
        above=_round_number(max(below), low) if below else None,
        below=_round_number(high, min(above)) if above else None,
    )


def _round_number(low: float, high: float) -> float:
    """Returns a number between two others that has as few digits as possible: conditions that change rarely.

    Example:
      >>> _round_number(0.4372, 0.5216), _round_number(2.0, 3.0), _round_number(3e-5, 0.2)
      (0.5, 2.5, 0.1)
    """
    exponent = math.ceil(math.log10(high - low))
    while True:
        number = float(f"{round((low + high) / 2 / 10.0**exponent)}e{exponent}")
        if low < number < high:
            return number
        exponent -= 1


def _when(rule: Conjunction, space: Space) -> dict[str, Any]:
    """Returns conditions as hyperparameters have them."""
    when: dict[str, Any] = {}
    for name, region in rule.items():
        parameter = space[name]
        if isinstance(parameter, Categorical) and not isinstance(region, Interval):
            when[name] = [parameter.choices[int(index)] for index in sorted(region)]
        else:
            when[name] = region
    return when
