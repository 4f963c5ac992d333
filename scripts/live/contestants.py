"""Tuners that are compared on live tasks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dre_jax.methods import find
from dre_jax.tuning import Categorical, Evaluated, Float, Optimizer, Space, Surrogate
from live import rivals
from live.functions import Task
from live.rivals import Studies

OPTUNA = ("tpe", "gp-sampler", "random")
"""Optuna's samplers by name; they know no past task."""
BELIEFS = {"gp-right-belief": 0.0, "gp-wrong-belief": 0.5}
"""`gp` with a likely fifth of the range of each real number: how far it is from the optimum."""
METHODS = ("gp", "hebo")
"""Methods that need no past; `Optimizer` uses the first."""
ALONE = (*METHODS, *BELIEFS, *OPTUNA)
"""Tuners without a past."""


def run(tuner: str, task: Task, trials: int, seed: int, past: Surrogate | Studies | None) -> list[float]:
    """Regret of the trial with the best value so far, after every trial; of its value without noise.

    The past is what a method of this library learned, studies for a rival, or None.
    """
    random = np.random.default_rng([seed, 1])
    if tuner in OPTUNA:
        evaluations = optuna_study(tuner, task, trials, random)
    elif tuner in rivals.RIVALS:
        assert isinstance(past, Mapping)
        evaluations = rivals.run(tuner, task, trials, past, random)
    else:
        space = with_belief(task, BELIEFS[tuner], random) if tuner in BELIEFS else task.space
        assert past is None or isinstance(past, Surrogate)
        optimizer = Optimizer(space, past, direction="minimize", seed=seed)
        if tuner in METHODS[1:]:
            optimizer._engine._method = find(tuner).make({})
        optimizer.optimize(lambda trial: task.evaluate(trial.params, random), trials)
        evaluations = [Evaluated(one.params, one.value) for one in optimizer.trials if one.value is not None]
    return list(regrets(task, evaluations))


def with_belief(task: Task, away: float, random: np.random.Generator) -> Space:
    """The space of a task with a likely range of a fifth for each real number in [0, 1].

    Its middle is up to a tenth from the optimum, or as much further as asked for, in the direction where there is room.
    """
    assert task.optimum is not None
    space = dict(task.space)
    for name, optimum in zip(task.space, task.optimum, strict=True):
        if isinstance(space[name], Float):
            middle = optimum + random.uniform(-0.1, 0.1) + (away if optimum < 0.5 else -away)
            low = float(np.clip(middle - 0.1, 0.0, 0.8))
            space[name] = replace(space[name], likely=(low, low + 0.2))
    return Space(space)


def regrets(task: Task, trials: list[Evaluated]) -> Iterator[float]:
    """Regret of the best trial so far, after every trial."""
    best = np.inf
    regret = np.inf
    for trial in trials:
        if trial.value < best:
            best, regret = trial.value, task.regret(task.exact(trial.params))
        yield regret


def optuna_study(tuner: str, task: Task, n: int, random: np.random.Generator) -> list[Evaluated]:
    """The trials of one of Optuna's samplers, in their order."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed = int(random.integers(2**31))
    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
        "gp-sampler": lambda: optuna.samplers.GPSampler(seed=seed),
        "random": lambda: optuna.samplers.RandomSampler(seed=seed),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(direction="minimize", sampler=samplers[tuner]())
        study.optimize(lambda trial: task.evaluate(suggest(trial, task.space), random), n_trials=n)
    return [Evaluated(trial.params, float(trial.value)) for trial in study.trials if trial.value is not None]


def suggest(trial: Any, space: Space) -> dict[str, Any]:
    """A configuration as Optuna's users write it: what is inactive is not asked for."""
    params: dict[str, Any] = {}
    for name in space.sequence:
        parameter = space[name]
        if any(params.get(parent) not in values for parent, values in parameter.when):
            continue
        if isinstance(parameter, Categorical):
            params[name] = trial.suggest_categorical(name, parameter.choices)
        elif isinstance(parameter, Float):
            params[name] = trial.suggest_float(name, parameter.low, parameter.high, log=parameter.log)
        else:
            params[name] = trial.suggest_int(name, parameter.low, parameter.high, log=parameter.log)
    return params
