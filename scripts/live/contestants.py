"""Tuners that are compared on live tasks."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from dre_jax.errors import ConfigError
from dre_jax.functions.bench import at_best, regrets, search_tasks
from dre_jax.tuning import Categorical, Evaluated, Float, Optimizer, Space, Surrogate
from live.functions import Task

OPTUNA = ("tpe", "gp-sampler", "random")
"""Optuna's samplers by name; they know no past task."""
ALONE = ("gp-mixture", "gp", *OPTUNA)
"""Tuners without a past; the first is that of `Optimizer`, the second runs on functions in JAX only."""


def run_group(
    tuner: str, family: Any, tasks: Mapping[int, Task], trials: int, seed: int, past: Surrogate | None
) -> list[list[float]]:
    """Regrets of tasks that share a past, by number; as of `run`, in one program if tuner and functions are in JAX."""
    drawn = [task.drawn for task in tasks.values() if task.drawn is not None]
    if tuner == "gp" and not drawn:
        raise ConfigError(f"gp needs functions in JAX, but {family.name} is not: choose gp-mixture")
    if tuner in OPTUNA or not drawn:
        return [run(tuner, task, trials, seed, number, past) for number, task in tasks.items()]
    options: dict[str, Any] = {"method": tuner} if past is None else {"surrogate": past}
    searches = search_tasks(family, drawn, n_trials=trials, seeds=[seed], **options)
    return regrets(family, drawn, searches)[:, 0].tolist()


def run(tuner: str, task: Task, trials: int, seed: int, number: int, past: Surrogate | None) -> list[float]:
    """Regret of the trial with the best value so far, after every trial; of its value without noise."""
    random = np.random.default_rng([seed, number])
    evaluate = partial(task.evaluate, random=random)
    if tuner in OPTUNA:
        trials_run = optuna_study(tuner, task.space, evaluate, trials, random)
    else:
        optimizer = Optimizer(task.space, past, direction="minimize", seed=seed)
        optimizer.optimize(lambda trial: evaluate(trial.params), trials)
        trials_run = [Evaluated(trial.params, trial.value) for trial in optimizer.trials if trial.value is not None]
    values, exact = zip(*((trial.value, task.regret(task.exact(trial.params))) for trial in trials_run), strict=True)
    return at_best(np.array(values), np.array(exact)).tolist()


def optuna_study(
    tuner: str, space: Space, evaluate: Callable[[Mapping[str, Any]], float], n: int, random: np.random.Generator
) -> list[Evaluated]:
    """The trials of one of Optuna's samplers, in their order."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed = int(random.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(direction="minimize", sampler=optuna_sampler(tuner, seed))
        study.optimize(lambda trial: evaluate(suggest(trial, space)), n_trials=n)
    return [Evaluated(trial.params, float(trial.value)) for trial in study.trials if trial.value is not None]


def optuna_sampler(tuner: str, seed: int) -> Any:
    """One of Optuna's samplers, by a name of `OPTUNA`."""
    import optuna

    samplers: dict[str, Callable[[], Any]] = {
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
        "gp-sampler": lambda: optuna.samplers.GPSampler(seed=seed),
        "random": lambda: optuna.samplers.RandomSampler(seed=seed),
    }
    return samplers[tuner]()


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
            params[name] = trial.suggest_int(name, parameter.low, parameter.high, log=parameter.log)  # type: ignore[union-attr]
    return params
