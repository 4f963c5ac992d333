"""Pasts of a family: how many studies, of how many trials, and how their configurations came about."""

from dataclasses import replace
from functools import partial

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.functions.families import FAMILIES, Family
from dre_jax.tuning import Evaluated, past_of
from dre_jax.tuning.past.tasks import Past
from live.contestants import optuna_study
from live.functions import draw_task
from live.wide import WideFamily

KINDS = ("random", "tpe", "sub-region", "irrelevant", "reversed")
_REGION = (0.1, 0.5)  # of every edge of the cube


def draw_past(name: str, family: Family | WideFamily, random: np.random.Generator) -> Past:
    """Studies of a family by the name of a past, such as "random 3x20": a kind, studies and trials.

    Raises:
      ConfigError: for another name.
    """
    kind, _, size = name.partition(" ")
    numbers = size.split("x")
    if kind not in KINDS or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        raise ConfigError(f"a past is one of {', '.join(KINDS)}, then STUDIESxTRIALS, but got {name!r}")
    if isinstance(family, WideFamily) and kind not in ("random", "tpe"):
        raise ConfigError(f"pasts of {family.name} are random or tpe, but got {name!r}")
    studies, trials = map(int, numbers)
    past = {f"study {i}": _study(kind, family, trials, random) for i in range(studies)}
    return past_of(family.space, past, direction="minimize")


def _study(kind: str, family: Family | WideFamily, trials: int, random: np.random.Generator) -> list[Evaluated]:
    source = _other(family, random) if kind == "irrelevant" and isinstance(family, Family) else family
    task = draw_task(source, random, reverse=kind == "reversed", past=True)
    if kind == "tpe":
        return optuna_study("tpe", task.space, partial(task.evaluate, random=random), trials, random)
    low, high = _REGION if kind == "sub-region" else (0.0, 1.0)
    points = low + (high - low) * random.random((trials, family.n_columns))
    return [Evaluated(params, task.evaluate(params, random)) for params in map(family.space.params, points)]


def _other(family: Family, random: np.random.Generator) -> Family:
    """A function that has nothing to do with a family, on its space: formulas that fit any number of columns."""
    of_any_size = [f for f in FAMILIES.values() if not f.name.startswith(("branin", "hartmann"))]
    others = [f for f in of_any_size if f.formula is not family.formula]
    other = others[random.integers(len(others))]
    return replace(
        other,
        name=f"{other.name} {random.integers(10**6)}",
        n_columns=family.n_columns,
        shift=0.5,
        rotated=not family.mixed,
        noise=0.0,
        minimiser=0.0,
        mixed=family.mixed,
    )
