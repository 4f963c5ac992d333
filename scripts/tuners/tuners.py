"""Tuners by name: this library's with and without a surrogate, and Optuna's."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from live.contestants import suggest

from dre_jax.tuning import Surrogate
from dre_jax.tuning.past.tasks import PastTasks
from tuners.objectives import Objective, space_of

if TYPE_CHECKING:
    pass

WITH_SURROGATE = ("dre-surrogate",)
TUNERS = ("dre-surrogate", "dre", "tpe", "gp-sampler", "random")


@cache
def surrogate(model: str, **settings: Any) -> Surrogate:
    """The recommended method, meta-trained on the bundled training tasks of a model."""
    from dre_jax.data import bundled

    return Surrogate.fit(PastTasks(space_of(model), dict(bundled.load(model).train)), **settings)


def sampler(tuner: str, objective: Objective, seed: int) -> Any:
    """Optuna's sampler of a tuner."""
    import optuna

    from dre_jax.tuning.optuna import DRESampler

    if tuner.startswith("dre"):
        known = surrogate(objective.model) if tuner in WITH_SURROGATE and objective.model else None
        return DRESampler(known, objective.space, seed=seed)
    return {
        "tpe": optuna.samplers.TPESampler,
        "gp-sampler": optuna.samplers.GPSampler,
        "random": optuna.samplers.RandomSampler,
    }[tuner](seed=seed)


def run(tuner: str, objective: Objective, seed: int, trials: int) -> list[float]:
    """The values of a study's trials, in their order."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(direction="maximize", sampler=sampler(tuner, objective, seed))
        study.optimize(lambda trial: objective.evaluate(suggest(trial, objective.space)), n_trials=trials)
    return [float(trial.value) for trial in study.trials if trial.value is not None]
